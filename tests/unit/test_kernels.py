"""Every kernel against formulas by hand and scikit-learn, its derivatives against central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from sklearn.metrics import pairwise

from hyperjax import kernels
from hyperjax.domains import NonNegative, Positive

X64 = jax.config.jax_enable_x64
RTOL = 1e-12 if X64 else 2e-5
needs_x64 = pytest.mark.skipif(not X64, reason="differences need 64 bits")
NAMES = [f"{type(kernel).__name__}-{number}" for number, kernel in enumerate(kernels.EXAMPLES)]
each_example = pytest.mark.parametrize("kernel", kernels.EXAMPLES, ids=NAMES)

X = np.random.default_rng(1).uniform(0.1, 2.0, (6, 3))
Z = np.random.default_rng(2).uniform(0.1, 2.0, (4, 3))


def formula(kernel, hp, x, z):
    """k(x, z) in plain numpy, written from the definitions."""
    if kernel.columns is not None:
        x, z = x[list(kernel.columns)], z[list(kernel.columns)]
    name = type(kernel).__name__
    if "kernels" in hp:
        parts = [formula(kernel.kernels[p], h, x, z) for p, h in enumerate(hp["kernels"])]
        if name == "Weighted":
            return sum(float(b) * part for b, part in zip(hp["beta"], parts, strict=True))
        return np.prod(parts) if name == "Product" else sum(parts)
    if name == "Scaled":
        return float(hp["scale"]) * formula(kernel.kernel, hp["kernel"], x, z)
    plain = {
        "Linear": lambda: np.dot(x, z),
        "RBF": lambda: np.exp(-float(hp["gamma"]) * np.sum((x - z) ** 2)),
        "ARD": lambda: np.exp(-np.sum(np.asarray(hp["gamma"]) * (x - z) ** 2)),
        "Polynomial": lambda: (float(hp["gamma"]) * np.dot(x, z) + float(hp["coef0"])) ** float(hp["degree"]),
        "Laplacian": lambda: np.exp(-float(hp["gamma"]) * np.sum(np.abs(x - z))),
        "ExpChi2": lambda: np.exp(-float(hp["gamma"]) * np.sum((x - z) ** 2 / (x + z))),
        "Function": lambda: 1 / (1 + np.sum((x - z) ** 2)),
    }
    return plain[name]()


def differences(f, tree, step=1e-5):
    """Central differences of a scalar function of a pytree, flat."""
    flat, back = ravel_pytree(tree)
    return np.array([(f(back(flat + step * e)) - f(back(flat - step * e))) / (2 * step) for e in np.eye(flat.size)])


def gram(kernel, **hp):
    return np.asarray(kernel.cross(hp, jnp.asarray(X), jnp.asarray(Z)))


def test_every_kernel_is_collected():
    wanted = "Linear RBF ARD Polynomial Laplacian ExpChi2 Precomputed Function Sum Product Scaled Weighted".split()
    assert all(issubclass(getattr(kernels, name), kernels.Kernel) and name in kernels.__all__ for name in wanted)
    shown = {type(kernel).__name__ for kernel in kernels.EXAMPLES}
    assert shown == set(wanted) - {"Precomputed"}


@each_example
def test_matrix_equals_the_formula(kernel):
    hp = kernel.init(jnp.asarray(X), None)
    expected = [[formula(kernel, hp, x, z) for z in Z] for x in X]
    np.testing.assert_allclose(kernel.cross(hp, jnp.asarray(X), jnp.asarray(Z)), expected, rtol=RTOL)
    np.testing.assert_allclose(
        kernel.diagonal(hp, jnp.asarray(X)), [formula(kernel, hp, x, x) for x in X], rtol=10 * RTOL
    )
    one_pair = kernel.replace(columns=None).k(kernel.select(jnp.asarray(X))[0], kernel.select(jnp.asarray(Z))[1], hp)
    np.testing.assert_allclose(one_pair, expected[0][1], rtol=10 * RTOL)


@pytest.mark.parametrize(
    ("kernel", "hp", "peer"),
    [
        (kernels.Linear(), {}, lambda: pairwise.linear_kernel(X, Z)),
        (kernels.RBF(), {"gamma": 0.3}, lambda: pairwise.rbf_kernel(X, Z, gamma=0.3)),
        (kernels.Laplacian(), {"gamma": 0.3}, lambda: pairwise.laplacian_kernel(X, Z, gamma=0.3)),
        (kernels.ExpChi2(), {"gamma": 0.3}, lambda: pairwise.chi2_kernel(X, Z, gamma=0.3)),
        (
            kernels.Polynomial(),
            {"gamma": 0.3, "coef0": 0.5, "degree": 4.0},
            lambda: pairwise.polynomial_kernel(X, Z, degree=4, gamma=0.3, coef0=0.5),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_matrix_equals_scikit_learn(kernel, hp, peer):
    np.testing.assert_allclose(gram(kernel, **hp), peer(), rtol=RTOL)


@each_example
def test_symmetric_and_positive_semidefinite(kernel):
    K = np.asarray(kernel.cross(kernel.init(jnp.asarray(X), None), jnp.asarray(X), jnp.asarray(X)))
    eps = np.finfo(K.dtype).eps
    np.testing.assert_allclose(K, K.T, rtol=0, atol=20 * eps * np.abs(K).max())
    if not (isinstance(kernel, kernels.Polynomial) and kernel.degree == 2.5):
        values = np.linalg.eigvalsh(K.astype(float))
        assert values[0] >= -50 * eps * values[-1]


@needs_x64
@each_example
def test_derivatives_equal_central_differences(kernel):
    rng = np.random.default_rng(3)
    u, v = jnp.asarray(rng.standard_normal(6)), jnp.asarray(rng.standard_normal(6))
    hp = kernel.init(jnp.asarray(X), None)
    value = jax.jit(lambda hp, X: u @ kernel.cross(hp, X, X) @ v)
    for argument, tree in enumerate((hp, jnp.asarray(X))):
        flat, back = ravel_pytree(tree)
        if flat.size == 0:
            continue
        f = (lambda h: value(h, jnp.asarray(X))) if argument == 0 else (lambda x: value(hp, x))
        expected = differences(f, tree)
        scale = np.abs(expected).max()
        reverse = ravel_pytree(jax.jit(jax.grad(f))(tree))[0]
        np.testing.assert_allclose(reverse, expected, rtol=1e-6, atol=1e-7 * scale)
        forward = jax.jit(jax.jacfwd(lambda t, f=f, back=back: f(back(t))))(flat)
        np.testing.assert_allclose(forward, reverse, rtol=1e-10, atol=1e-12 * scale)


@needs_x64
@each_example
def test_hessian_in_the_hyperparameters(kernel):
    u = jnp.asarray(np.random.default_rng(4).standard_normal(6))
    flat, back = ravel_pytree(kernel.init(jnp.asarray(X), None))
    if flat.size == 0:
        return
    value = lambda t: u @ kernel.cross(back(t), jnp.asarray(X), jnp.asarray(X)) @ u
    slope = jax.jit(jax.grad(value))
    expected = np.array([(slope(flat + 1e-5 * e) - slope(flat - 1e-5 * e)) / 2e-5 for e in np.eye(flat.size)])
    np.testing.assert_allclose(
        jax.jit(jax.hessian(value))(flat), expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max()
    )


@each_example
def test_float32_is_kept(kernel):
    x = jnp.asarray(X, jnp.float32)
    hp = kernel.init(x, None)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(hp))
    assert kernel.cross(hp, x, x).dtype == jnp.float32 and kernel.diagonal(hp, x).dtype == jnp.float32
    plain = jax.tree.map(lambda leaf: leaf.tolist() if leaf.ndim == 0 else leaf, hp)
    assert kernel.cross(plain, x, x).dtype == jnp.float32


@each_example
def test_instances_are_pytrees(kernel):
    leaves, structure = jax.tree.flatten(kernel)
    jax.tree.unflatten(structure, [object()] * len(leaves))
    hp = kernel.init(jnp.asarray(X), None)
    through = jax.jit(lambda kernel, x: kernel.cross(hp, x, x))(kernel, jnp.asarray(X))
    np.testing.assert_allclose(through, kernel.cross(hp, jnp.asarray(X), jnp.asarray(X)), rtol=10 * RTOL)
    assert kernel.problem_with(X, hp) is None


@each_example
def test_domains_lie_beside_the_hyperparameters(kernel):
    hp = kernel.init(jnp.asarray(X), None)
    tree = kernel.domain_tree(hp)
    pairs = jax.tree.map(lambda value, domain: domain.problem_with(np.asarray(value)), hp, tree)
    assert jax.tree.leaves(pairs) == []


def test_domains_of_weights_and_of_a_polynomial():
    kernel = kernels.Weighted([kernels.Polynomial(), kernels.RBF()])
    tree = kernel.domain_tree(kernel.init(jnp.asarray(X), None))
    assert isinstance(tree["beta"], NonNegative) and isinstance(tree["kernels"][0]["coef0"], NonNegative)
    assert isinstance(tree["kernels"][1]["gamma"], Positive)
    assert kernel.held == ("kernels.0.coef0", "kernels.0.degree")
    assert kernels.Scaled(kernel).held == ("kernel.kernels.0.coef0", "kernel.kernels.0.degree")


def test_default_width():
    np.testing.assert_allclose(kernels.RBF().init(X, None)["gamma"], 1 / (3 * X.var()), rtol=RTOL)
    picked = X[:, [0, 2]]
    for kernel in (kernels.RBF, kernels.ARD, kernels.Laplacian, kernels.ExpChi2, kernels.Polynomial):
        gamma = kernel(columns=(0, 2)).init(X, None)["gamma"]
        np.testing.assert_allclose(gamma, np.full(np.shape(gamma), 1 / (2 * picked.var())), rtol=RTOL)
        assert float(np.max(kernel(gamma=0.25).init(X, None)["gamma"])) == 0.25
    assert kernels.ARD().init(X, None)["gamma"].shape == (3,)
    np.testing.assert_allclose(kernels.RBF().init(np.ones((4, 2)), None)["gamma"], 0.5)
    np.testing.assert_allclose(kernels.RBF().init(np.array([[0, 4], [4, 0]]), None)["gamma"], 1 / 8)


@needs_x64
def test_distances_far_from_the_origin_in_float32():
    far = (X + 1000.0).astype(np.float32)
    exact = pairwise.rbf_kernel(far.astype(float), gamma=0.5)
    close = kernels.RBF().cross({"gamma": jnp.float32(0.5)}, jnp.asarray(far), jnp.asarray(far))
    np.testing.assert_allclose(close, exact, rtol=0, atol=2e-5)


@needs_x64
def test_width_and_curvature_on_identical_rows():
    x = jnp.asarray(X[0])
    k = lambda t: kernels.ARD().cross({"gamma": jnp.asarray([0.2, 0.3, 0.4])}, t[None, :], jnp.asarray(X))[0, 0]
    np.testing.assert_allclose(jax.grad(k)(x), 0.0, atol=1e-14)
    np.testing.assert_allclose(jax.hessian(k)(x), np.diag([-0.4, -0.6, -0.8]), atol=1e-12)
    off = jax.grad(lambda g: kernels.ARD().cross({"gamma": g}, jnp.asarray(X), jnp.asarray(Z))[1, 2])(jnp.zeros(3))
    np.testing.assert_allclose(off, -((X[1] - Z[2]) ** 2), rtol=1e-10)


@needs_x64
@pytest.mark.parametrize("degree", [1.0, 2.0, 3.0, 4.0])
def test_polynomial_of_negative_and_zero_bases(degree):
    x, z = jnp.asarray([[1.0], [-2.0], [0.0]]), jnp.asarray([[1.5]])
    base, n = np.array([1.5, -3.0, 0.0]) * 0.7, int(degree)
    kernel, hp = kernels.Polynomial(), {"gamma": jnp.asarray(0.7), "coef0": jnp.asarray(0.0), "degree": degree}
    column = lambda hp: kernel.cross(hp, x, z)[:, 0]
    np.testing.assert_allclose(column(hp), base**n, rtol=1e-13)
    np.testing.assert_allclose(jax.jacrev(column)(hp)["coef0"], n * base ** (n - 1), rtol=1e-13)
    second = jax.jacfwd(jax.jacrev(column))(hp)["coef0"]["coef0"]
    np.testing.assert_allclose(second, n * (n - 1) * base ** max(n - 2, 0), rtol=1e-12, atol=1e-14)
    in_degree = jax.jacfwd(lambda q: column({**hp, "degree": q}))(jnp.asarray(degree))
    logs = np.log(np.where(base == 0, 1, np.abs(base)))
    np.testing.assert_allclose(in_degree, base**n * logs, rtol=1e-11, atol=1e-13)
    everything = jax.tree.leaves(jax.hessian(lambda hp: column(hp).sum())({**hp, "degree": jnp.asarray(degree)}))
    assert np.all(np.isfinite(np.array(everything)))


def test_chi_squared_of_empty_bins():
    x = jnp.asarray([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    value = lambda x: kernels.ExpChi2().cross({"gamma": 0.5}, x, x).sum()
    K = kernels.ExpChi2().cross({"gamma": 0.5}, x, x)
    np.testing.assert_allclose(K, np.exp(-0.5 * np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]])), rtol=RTOL)
    assert np.all(np.isfinite(jax.grad(value)(x))) and kernels.ExpChi2().problem_with(np.asarray(x), {}) is None


@pytest.mark.parametrize("kernel", [kernels.Laplacian(), kernels.ExpChi2()], ids=str)
def test_no_array_of_all_pairs_and_features(kernel):
    x, z = jnp.ones((11, 7)), jnp.full((13, 7), 2.0)
    slope = jax.grad(lambda gamma, x, z: kernel.cross({"gamma": gamma}, x, z).sum(), argnums=(0, 1, 2))
    text = jax.jit(slope).lower(jnp.ones(()), x, z).as_text()
    assert "11x13x" in text
    assert not any(shape in text for shape in ("7x11x13x", "11x13x7x", "11x7x13x", "13x11x7x"))


@needs_x64
def test_features_reproduce_the_matrix():
    tree = kernels.Sum(
        [kernels.Linear(columns=(0,)), kernels.Scaled(kernels.Linear(columns=(1,)), 3.0)], columns=(1, 2)
    )
    hp, x = tree.init(jnp.asarray(X), None), jnp.asarray(X)
    phi = tree.features(hp, x)
    np.testing.assert_allclose(phi, np.stack([X[:, 1], np.sqrt(3.0) * X[:, 2]], axis=1), rtol=1e-14)
    np.testing.assert_allclose(phi @ phi.T, tree.cross(hp, x, x), rtol=1e-13)
    for kernel in (kernels.RBF(), kernels.Sum([kernels.Linear(), kernels.RBF()]), kernels.Weighted([kernels.Linear()])):
        assert kernel.features(kernel.init(x, None), x) is None
    assert kernels.Product([kernels.Linear()]).features({"kernels": [{}]}, x) is None
    assert kernels.Scaled(kernels.RBF()).features({"scale": 1.0, "kernel": {"gamma": 1.0}}, x) is None


def test_columns_in_every_spelling():
    for columns in ([1, 2], range(1, 3), np.array([1, 2]), np.array([False, True, True]), (1, 2)):
        assert kernels.Linear(columns=columns).columns == (1, 2)
    np.testing.assert_allclose(gram(kernels.Linear(columns=1)), np.outer(X[:, 1], Z[:, 1]), rtol=RTOL)
    for wrong, text in (((0, 3), "looks at columns [3], and X has columns 0 to 2"), ((), "columns=()")):
        assert text in kernels.Linear(columns=wrong).problem_with(X, {})
    nested = kernels.Sum([kernels.Linear(columns=(2,))], columns=(0, 1))
    assert nested.problem_with(X, {"kernels": [{}]}).startswith("kernels[0]: Linear looks at columns [2]")


def test_algebra_and_bare_callables():
    dot = lambda x, z: jnp.sum(x * z)
    kernel = 2.0 * (kernels.Linear() + dot) * kernels.RBF(gamma=0.3) + kernels.Scaled(dot)
    hp = kernel.init(jnp.asarray(X), None)
    inner = X @ Z.T
    expected = 4 * inner * pairwise.rbf_kernel(X, Z, gamma=0.3) + inner
    np.testing.assert_allclose(kernel.cross(hp, jnp.asarray(X), jnp.asarray(Z)), expected, rtol=10 * RTOL)
    assert isinstance(kernels.as_kernel(dot), kernels.Function) and kernels.as_kernel(kernel) is kernel


def test_what_is_wrong_with_a_callable():
    for wrong, text in (
        (lambda x, z: jnp.sum(x * z * z), "not symmetric"),
        (lambda x, z: x * z, "scalar for two rows, and returned shape (3,)"),
        (lambda x, z: 1 / jnp.sum((x - z) ** 2), "not finite"),
    ):
        assert text in kernels.Function(wrong).problem_with(X, {})


def test_what_is_wrong_with_data_and_hyperparameters():
    mixed = X - 1.0
    assert "column 2 reaches -2" in kernels.ExpChi2(columns=(0, 2)).problem_with(
        np.array([[1.0, 1, -2]]), {"gamma": 1.0}
    )
    polynomial = {"gamma": 1.0, "coef0": 0.0, "degree": 2.5}
    assert "degree 2.5" in kernels.Polynomial().problem_with(mixed, polynomial)
    assert kernels.Polynomial().problem_with(mixed, {**polynomial, "degree": 3.0}) is None
    assert kernels.Polynomial().problem_with(mixed, {**polynomial, "coef0": 10.0}) is None
    assert "shape (3,)" in kernels.ARD().problem_with(X, {"gamma": np.ones(2)})
    weighted = kernels.Weighted([kernels.Linear(), kernels.Linear()])
    assert "all beta 0" in weighted.problem_with(X, {"beta": np.zeros(2), "kernels": [{}, {}]})
    assert "shape (2,)" in weighted.problem_with(X, {"beta": np.ones(3), "kernels": [{}, {}]})
    assert weighted.problem_with(X, {"beta": np.array([0.0, 1.0]), "kernels": [{}, {}]}) is None
    scaled = kernels.Scaled(kernels.ExpChi2())
    assert scaled.problem_with(mixed, {"scale": 1.0, "kernel": {"gamma": 1.0}}).startswith("kernel: ExpChi2")
    assert "at least one kernel" in kernels.Sum([]).problem_with(X, {"kernels": []})


def test_precomputed_reads_the_matrix():
    K, K_new = X @ X.T, Z @ X.T
    kernel = kernels.Precomputed()
    assert kernel.init(K, None) == {} and kernel.problem_with(K, {}) is None
    np.testing.assert_array_equal(kernel.cross({}, jnp.asarray(K_new), jnp.asarray(K)), jnp.asarray(K_new))
    np.testing.assert_allclose(kernel.diagonal({}, jnp.asarray(K)), np.sum(X * X, axis=1), rtol=RTOL)
    side_by_side = jnp.asarray(np.hstack([K, K * K]))
    pair = kernels.Weighted([kernels.Precomputed(columns=range(6)), kernels.Precomputed(columns=range(6, 12))])
    hp = {"beta": jnp.asarray([0.5, 2.0]), "kernels": [{}, {}]}
    np.testing.assert_allclose(pair.cross(hp, side_by_side, side_by_side), 0.5 * K + 2 * K * K, rtol=RTOL)
    with pytest.raises(ValueError, match="all 6 training rows, and has 4 columns"):
        kernel.cross({}, jnp.asarray(K_new[:, :4]), jnp.asarray(K))


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_wrong_with_a_kernel_matrix(n, dtype):
    rows = np.random.default_rng(5).standard_normal((n, 10))
    good = (rows @ rows.T).astype(dtype)
    kernel = kernels.Precomputed()
    assert kernel.problem_with(good, {}) is None
    assert kernel.problem_with(np.zeros((n, n), dtype), {}) is None
    assert kernel.problem_with(np.eye(n, dtype=dtype), {}) is None
    assert "shape" in kernel.problem_with(good[:, 1:], {})
    crooked = good.copy()
    crooked[0, 1] += dtype(0.01) * np.abs(good).max()
    assert "not symmetric" in kernel.problem_with(crooked, {})
    direction = np.random.default_rng(6).standard_normal(n)
    shift = 1.1 * np.linalg.eigvalsh(good.astype(float))[-1] / (direction @ direction)
    indefinite = (good - shift * np.outer(direction, direction)).astype(dtype)
    low, high = np.linalg.eigvalsh(indefinite.astype(float))[[0, -1]]
    message = kernel.problem_with(indefinite, {})
    assert f"eigenvalue {low:.2g}"[:12] in message and "positive semidefinite" in message
    found = float(message.split("eigenvalue ")[1].split()[0])
    np.testing.assert_allclose(found, low, rtol=1e-2)
    assert low < -0.5 * high
