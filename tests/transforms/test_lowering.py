"""What the compiled programs hold: no array of folds by rows by rows, no callback to the host, little memory."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import hyperjax as hj
from hyperjax.operators import bordered, gram
from tests.transforms.common import FOLDS, HINGE, X, Y, run, softplus, values

N, T = 600, 5


def programs(jaxpr):
    """The jaxpr and all those inside it."""
    yield jaxpr
    for equation in jaxpr.eqns:
        for inside in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")):
            inside = getattr(inside, "jaxpr", inside)
            if hasattr(inside, "eqns"):
                yield from programs(inside)


def made(closed):
    """How many results there are, by shape and by primitive."""
    results = Counter()
    for program in programs(closed.jaxpr):
        for equation in program.eqns:
            results.update((getattr(out.aval, "shape", None), equation.primitive.name) for out in equation.outvars)
    return results


@pytest.fixture(scope="module")
def large():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(N, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.5 * draw.normal(size=N) > 0, 1.0, -1.0).astype(np.float32)
    return X, y, hj.folds.stratified(y, T, seed=0)


def loss(hp, X, y, folds):
    return softplus(hj.cross_decision(HINGE, hp, X, y, folds), y)


@pytest.mark.parametrize("direct", [True, False])
def test_no_array_of_folds_by_rows_by_rows(large, direct, monkeypatch):
    """Nor, without the direct solver, any square array but K: with small blocks its cotangent never exists.

    K's own making and the blocks rebuilt are what is left.
    """
    jax.clear_caches()
    monkeypatch.setattr(gram, "BLOCK_ENTRIES", 50 * 50)
    if not direct:
        monkeypatch.setattr(bordered, "DIRECT_SIZES", (64,))
    X, y, folds = large
    hp = jax.tree.map(jnp.float32, values())
    results = made(jax.make_jaxpr(jax.value_and_grad(loss))(hp, X, y, folds))
    shapes = {shape for shape, _ in results if shape is not None}
    assert not [shape for shape in shapes if len(shape) >= 3 and np.prod(shape) >= T * N * N]
    assert (50, 50) in shapes, "the derivative of K goes block by block"
    if not direct:
        kernel = made(jax.make_jaxpr(HINGE.kernel.cross)(hp["kernel"], X, X))
        for arithmetic in ("dot_general", "exp", "sub", "add_any", "scatter", "scatter-add", "transpose", "while"):
            assert results[(N, N), arithmetic] == kernel[(N, N), arithmetic], arithmetic
        masks = results[(N, N), "eq"]  # jnp.diagonal multiplies by an identity matrix, which XLA fuses away
        assert results[(N, N), "mul"] - masks == kernel[(N, N), "mul"]
    jax.clear_caches()


def test_programs_lower_for_every_platform():
    """The gradient, with the solve inside it, for accelerators this machine lacks and without calls to the host."""
    gradient = jax.jit(jax.grad(lambda hp, X, y: softplus(hj.cross_decision(HINGE, hp, X, y, FOLDS), y)))
    arguments = jax.tree.map(jnp.float32, (values(), X, Y))
    program = export.export(gradient, platforms=["cpu", "cuda", "tpu"])(*arguments)
    assert "callback" not in program.mlir_module()
    ours, again = gradient(*arguments), program.call(*arguments)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, again)


PREDICTION = """
import resource
import jax, jax.numpy as jnp, numpy as np
import hyperjax as hj
draw = np.random.default_rng(0)
n, m, d = 30_000, 100_000, 4
X, new = draw.normal(size=(n, d)).astype(np.float32), draw.normal(size=(m, d)).astype(np.float32)
z = draw.normal(size=n).astype(np.float32)
number, count = jnp.float32(0.0), jnp.int32(0)
facts = {name: number for name in ("kkt", "gap", "distance")}
facts |= {name: count for name in ("code", "iterations", "n_free", "degenerate")}
hp = {"loss": {"C": jnp.float32(1.0)}, "kernel": {"gamma": jnp.float32(0.5)}}
solution = hj.Solution(hj.Problem(), hp, jnp.asarray(X), jnp.asarray(z), jnp.float32(0.25), jnp.asarray(z), **facts)
outputs = np.asarray(solution.decision(new))
for i in (0, 54_321, m - 1):
    expected = np.exp(-0.5 * np.sum((new[i].astype(float) - X) ** 2, axis=1)) @ z + 0.25
    assert abs(outputs[i] - expected) < 1e-3 * np.abs(z).sum() ** 0.5, (i, outputs[i], expected)
assert outputs.shape == (m,)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_prediction_of_100_000_rows_from_30_000_stays_under_2_GB():
    kilobytes = int(run(PREDICTION).split()[-1])
    assert kilobytes < 2_000_000
