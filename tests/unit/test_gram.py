"""Products with a kernel matrix that is built again in blocks: each block once for both sides of the diagonal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.operators import Gram, gram

pytestmark = [
    pytest.mark.no_extras,
    pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances"),
]

N = 23
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.uniform(0.5, 2.0, size=(N, 3)))
V, U = (jnp.asarray(RNG.normal(size=(2, N))) for _ in range(2))


class Angle(hj.kernels.Kernel):
    """Not defined at a row of zeros, where a filled block must not look."""

    def k(self, x, z, hp):
        return hp["scale"] * (x @ z) / (jnp.sqrt(x @ x) * jnp.sqrt(z @ z))

    def init(self, X, y):
        return {"scale": 1.5}


KERNELS = [
    hj.kernels.RBF(gamma=0.6), hj.kernels.ARD(gamma=0.4), hj.kernels.Laplacian(gamma=0.7), hj.kernels.ExpChi2(), Angle()
]  # fmt: skip


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of 5 x 5, of which 23 rows leave the last one unfinished."""
    monkeypatch.setattr(gram, "BLOCK_ENTRIES", 25)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("offset", [False, True])
def test_every_derivative_is_that_of_the_whole_matrix(blocks, kernel, offset):
    hp = jax.tree.map(jnp.asarray, kernel.init(X, None))

    def ours(hp, X):
        return jnp.vdot(U, Gram.build(kernel, hp, X, offset).matmul(V) ** 2)

    def right(hp, X):
        return jnp.vdot(U, (V @ (kernel.cross(hp, X, X) + float(offset))) ** 2)

    for derivative in (
        lambda f: f,
        lambda f: jax.grad(f, argnums=(0, 1)),
        lambda f: jax.jacfwd(f, argnums=(0, 1)),
        jax.hessian,
    ):
        found, wanted = derivative(ours)(hp, X), derivative(right)(hp, X)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), found, wanted)


def test_a_matrix_given_whole_is_not_cut(blocks):
    kernel, K = hj.kernels.Precomputed() * 2.0, np.asarray(hj.kernels.RBF().cross({"gamma": 0.5}, X, X))
    hp = jax.tree.map(jnp.asarray, kernel.init(K, None))
    found = jax.grad(lambda hp: jnp.vdot(U, Gram.build(kernel, hp, jnp.asarray(K), False).matmul(V)))(hp)
    assert float(jax.tree.leaves(found)[0]) == pytest.approx(float(jnp.vdot(U, V @ K)), rel=1e-12)


def test_half_of_the_blocks_are_built(blocks):
    """Counted where the kernel is traced once and called for each pair."""
    seen = []

    class Counting(hj.kernels.Kernel):
        def cross(self, hp, X, Z):
            jax.debug.callback(lambda: seen.append(X.shape[0] * Z.shape[0]))
            return hp["scale"] * (X @ Z.T)

        def init(self, X, y):
            return {"scale": 1.0}

    kernel = Counting()
    _, moved = jax.jvp(lambda s: gram._matmul((kernel, {"scale": s}, X, None), V), (1.0,), (1.0,))
    jax.block_until_ready(moved)
    jax.effects_barrier()
    assert sum(seen) == 25 * 5 * 6 // 2
    np.testing.assert_allclose(moved, V @ (X @ X.T), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS[:4], ids=lambda kernel: type(kernel).__name__)
def test_what_is_read_off_a_stored_matrix_has_its_derivatives(kernel):
    """Values that have underflown included: 60 units apart an exponential is 0, and its derivative with it."""
    hp = jax.tree.map(jnp.asarray, kernel.init(X, None))
    far, v = jnp.concatenate([X, X + 60.0]), jnp.concatenate([V, U], axis=1)

    def ours(hp, X, v):
        return jnp.vdot(v[1], Gram.build(kernel, hp, X, False).matmul(v)[0])

    def right(hp, X, v):
        return jnp.vdot(v[1], v[0] @ kernel.cross(hp, X, X))

    # in float32 both lose digits to norms of 60 that cancel
    for dtype, rtol in ((jnp.float64, 1e-10), (jnp.float32, 2e-3)):
        given = jax.tree.map(lambda leaf, dtype=dtype: leaf.astype(dtype), (hp, far, v))
        assert dtype == jnp.float64 or float(jnp.min(kernel.cross(*given[:2], given[1]))) == 0.0
        jax.tree.map(
            lambda a, b, rtol=rtol: np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * float(jnp.max(jnp.abs(b)))),
            jax.grad(ours)(*given), jax.grad(right)(*given),
        )  # fmt: skip


def test_the_width_is_differentiated_without_another_product_of_the_rows(blocks):
    kernel, hp = hj.kernels.RBF(), {"gamma": jnp.asarray(0.6)}

    def value(hp, X, V, U):
        return jnp.vdot(U, Gram.build(kernel, hp, X, False).matmul(V))

    def products(argnums):
        """How many make a block: where values have lost their distances, and where distances are read off them."""
        text = jax.jit(jax.grad(value, argnums=argnums)).lower(hp, X, V, U).compile().as_text()
        lines = [line for line in text.splitlines() if "f64[5,5]{1,0} dot(" in line]
        lost, kept = ([line for line in lines if f"branch_{branch}_fun" in line] for branch in (0, 1))
        assert len(lost) + len(kept) == len(lines)
        return len(lost), len(kept)

    assert products(0) == (1, 0)  # one number moves: a block has no cotangent of its own either
    assert products(1) == (3, 2)  # its cotangent is a sum of two, one a side of the diagonal


@pytest.mark.parametrize("gamma", [1e-1, 1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("kernel", [hj.kernels.RBF(), hj.kernels.Laplacian(), hj.kernels.ExpChi2()])
@pytest.mark.parametrize("outlier", [False, True])
def test_a_width_that_makes_all_rows_alike_keeps_its_derivative_in_float32(blocks, kernel, gamma, outlier):
    others = jnp.ones((1, N)).at[0, 0].set(0.0 if outlier else 1.0)
    rows, seen = jnp.where(others.T > 0, X, 1e3), V * others

    def value(log_gamma, X, V, U):
        return jnp.vdot(U, Gram.build(kernel, {"gamma": jnp.exp(log_gamma)}, X, False).matmul(V))

    even = seen - others * jnp.sum(seen, axis=1, keepdims=True) / jnp.sum(others)
    given = jnp.log(gamma), rows, even, U * others
    low = [jnp.asarray(leaf, jnp.float32) for leaf in given]
    assert float(jax.grad(value)(*low)) == pytest.approx(float(jax.grad(value)(*given)), rel=1e-3)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("offset", [False, True])
def test_one_number_that_moves_alone_has_every_derivative(blocks, kernel, offset):
    """The way of its own that a single width takes keeps the rules of what is inside, whatever is transposed."""
    hp = jax.tree.map(lambda leaf: jnp.ravel(leaf)[0], kernel.init(X, None))

    def whole(number):
        return jax.tree.map(lambda leaf: number * jnp.ones_like(jnp.asarray(leaf)), kernel.init(X, None))

    def ours(number):
        return jnp.vdot(U, Gram.build(kernel, whole(number), X, offset).matmul(V) ** 2)

    def right(number):
        return jnp.vdot(U, (V @ (kernel.cross(whole(number), X, X) + float(offset))) ** 2)

    number = jax.tree.leaves(hp)[0]
    for derivative in (
        jax.grad,
        jax.jacfwd,
        lambda f: jax.grad(jax.grad(f)),
        lambda f: jax.jacfwd(jax.grad(f)),
        lambda f: jax.grad(jax.jacfwd(f)),
        lambda f: jax.jacfwd(jax.jacfwd(f)),
        lambda f: jax.jacfwd(jax.grad(jax.grad(f))),
    ):
        np.testing.assert_allclose(derivative(ours)(number), derivative(right)(number), rtol=1e-9)
