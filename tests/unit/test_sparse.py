"""Sparse rows: the products against SciPy, everything above them against the same rows made dense, and LIBLINEAR."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import hyperjax as hj
from hyperjax import sparse

pytestmark = pytest.mark.no_extras

LINEAR = hj.kernels.Linear()
N, D = 40, 70


def sample(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(n, d, 0.1, random_state=seed, format="csr")
    X.data[:] = rng.normal(size=X.nnz)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0.1, 1.0, -1.0)
    return X, y


def messy():
    """Duplicates, columns out of order, an explicit zero, an empty row and an empty column, 64-bit indices."""
    data = np.asarray([1.0, 2.0, 3.0, 0.0, -1.5, 4.0, 5.0, -5.0])
    columns, starts = np.asarray([3, 0, 3, 1, 2, 0, 4, 4], np.int64), np.asarray([0, 4, 4, 6, 8], np.int64)
    X = scipy.sparse.csr_matrix((4, 6))
    X.data, X.indices, X.indptr = data, columns, starts
    return X


@pytest.mark.parametrize("X", [messy(), sample(300, 3)[0]])
def test_products_are_those_of_scipy(X):
    dense, own = X.toarray(), sparse.matrix(X)
    rng = np.random.default_rng(1)
    v, w = rng.normal(size=(3, X.shape[0])), rng.normal(size=(3, X.shape[1]))
    products = jax.jit(lambda A, v, w: (v @ A, v[:1] @ A, v[0] @ A, w @ A.T, A.diagonal()))
    for found, known in zip(
        products(own, v, w), (v @ dense, v[:1] @ dense, v[0] @ dense, w @ dense.T, np.sum(dense**2, 1)), strict=True
    ):
        np.testing.assert_allclose(found, known, atol=1e-13)
    np.testing.assert_array_equal(own.to_scipy().toarray(), dense)
    wide = np.hstack([dense, np.ones((len(dense), 1))])
    more = own.with_ones()
    w = np.hstack([w, w[:, :1]])
    found = jax.jit(lambda A, v, w: (v @ A, w @ A.T, A.diagonal()))(more, v, w)
    for one, known in zip(found, (v @ wide, w @ wide.T, np.sum(wide**2, axis=1)), strict=True):
        np.testing.assert_allclose(one, known, atol=1e-13)
    assert own.shape == X.shape and more.shape == wide.shape and more.T.shape == wide.T.shape


def test_the_users_matrix_stays_as_it_is():
    X = messy()
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    sparse.matrix(X)
    assert all(np.array_equal(*pair) for pair in zip(before, (X.data, X.indices, X.indptr), strict=True))


def test_products_transform():
    X, _ = sample()
    own, dense = sparse.matrix(X), jnp.asarray(X.toarray())
    v = jnp.asarray(np.random.default_rng(1).normal(size=(3, N)))

    def value(v, A):
        return jnp.sum(jnp.sin(v @ A))

    for transform in (jax.grad, jax.hessian):
        of = jax.jit(transform(value))
        np.testing.assert_allclose(of(v[:1], own), of(v[:1], dense), atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(lambda row: row @ own))(v), v @ dense, atol=1e-13)


@pytest.mark.parametrize("kind", [np.int64, bool, np.longdouble, np.float32])
def test_entries_become_the_working_float_type(kind):
    X = sample()[0].astype(bool).astype(kind)
    own = sparse.matrix(X)
    assert own.dtype == (jnp.float32 if kind is np.float32 else jnp.float64)
    np.testing.assert_array_equal(own.to_scipy().toarray(), X.toarray().astype(float))


@pytest.mark.parametrize(
    ("change", "kernel", "message"),
    [
        (lambda X: X.astype(complex), LINEAR, "X holds complex numbers"),
        (lambda X: X, hj.kernels.RBF(), r"X is sparse and the kernel is a RBF.*kernels.Linear\(\).*X.toarray\(\)"),
        (lambda X: X, hj.kernels.Linear(columns=(0, 1)), "over chosen columns"),
        (lambda X: X[:1], LINEAR, "X has 1 row"),
        (lambda X: X[:5], LINEAR, "y has shape"),
    ],
)
def test_bad_input_is_refused_in_words(change, kernel, message):
    X, y = sample()
    problem = hj.Problem(hj.losses.Logistic(), kernel, False)
    hp = {"loss": {"C": 1.0}, "kernel": {"gamma": 1.0} if isinstance(kernel, hj.kernels.RBF) else {}}
    with pytest.raises(ValueError, match=message):
        hj.solve(problem, hp, change(X), y)
    with pytest.raises(ValueError, match=r"(?s)sparse|complex|rows?"):
        hj.tune(problem, change(X), y, folds=3, progress=False)


def test_a_nan_is_refused_with_its_place():
    X, y = sample()
    X.data[4] = np.nan
    at = np.repeat(np.arange(N), np.diff(X.indptr))[4], X.indices[4]
    with pytest.raises(
        ValueError, match=rf"X holds 1 NaN or infinite value\(s\), the first nan at \({at[0]}, {at[1]}\)"
    ):
        hj.solve(hj.Problem(hj.losses.Logistic(), LINEAR, False), {"loss": {"C": 1.0}, "kernel": {}}, X, y)


def test_it_is_never_made_dense_unasked():
    own = sparse.matrix(sample()[0])
    with pytest.raises(ValueError, match="to_scipy"):
        np.asarray(own)
    with pytest.raises(ValueError, match="sparse"):
        hj.loo_decision(
            hj.Problem(hj.losses.Logistic(), LINEAR, False), {"loss": {"C": 1.0}, "kernel": {}}, own, sample()[1]
        )
    for solver in (hj.solvers.DCD(), hj.solvers.SGD(), hj.solvers.Decomposition()):
        with pytest.raises(ValueError, match="X is sparse"):
            problem = hj.Problem(hj.losses.Hinge(), LINEAR, False)
            hj.solve(problem, {"loss": {"C": 1.0}, "kernel": {}}, own, sample()[1], solver=solver)


def shapes(jaxpr):
    """Shapes of all values of a program and of those inside it."""
    for equation in jaxpr.eqns:
        yield from (v.aval.shape for v in equation.outvars if hasattr(v.aval, "shape"))
        for inside in jax.tree.leaves(
            equation.params, is_leaf=lambda leaf: hasattr(leaf, "jaxpr") or hasattr(leaf, "eqns")
        ):
            inside = getattr(inside, "jaxpr", inside)
            if hasattr(inside, "eqns"):
                yield from shapes(inside)


@pytest.mark.parametrize("bias", [True, "regularised"])
def test_no_program_holds_a_dense_matrix(bias):
    n, d = 97, 211
    X, y = sample(n, d)
    problem, folds = hj.Problem(hj.losses.SquaredHinge(), LINEAR, bias), hj.folds.stratified(y, 3, seed=0)
    own, hp = sparse.matrix(X), problem.init(X, y)

    def value(hp, X):
        return jnp.sum(hj.cross_decision(problem, hp, X, jnp.asarray(y), folds) ** 2)

    program = jax.make_jaxpr(jax.value_and_grad(value))(hp, own)
    found = set(shapes(program.jaxpr))
    assert len(found) > 20  # the walk goes into loops and branches
    large = [shape for shape in found if len([k for k in shape if k >= 97]) > 1]
    assert not large


@pytest.mark.parametrize(("loss", "bias"), [(hj.losses.Logistic(), True), (hj.losses.SquaredHinge(), "regularised")])
def test_values_and_derivatives_are_those_of_dense_rows(loss, bias):
    X, y = sample()
    problem, folds = hj.Problem(loss, LINEAR, bias), hj.folds.stratified(y, 3, seed=0)
    hp = problem.init(X, y)

    @jax.jit
    def all_of(hp, X):
        def value(hp):
            o = hj.cross_decision(problem, hp, X, jnp.asarray(y), folds, tol=1e-12)
            return hj.criteria.LogLoss()(o, jnp.asarray(y), folds), o

        gradient = jax.grad(value, has_aux=True)
        C = hp["loss"]["C"]
        curve = jax.jvp(lambda C: gradient({**hp, "loss": {"C": C}})[0]["loss"]["C"], (C,), (jnp.ones_like(C),))[1]
        return gradient(hp), curve

    (own, o), curve = all_of(hp, sparse.matrix(X))
    (dense, o_dense), curve_dense = all_of(hp, jnp.asarray(X.toarray()))
    np.testing.assert_allclose(o, o_dense, atol=1e-10)
    np.testing.assert_allclose(own["loss"]["C"], dense["loss"]["C"], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(curve, curve_dense, rtol=1e-7, atol=1e-10)
    assert abs(float(dense["loss"]["C"])) > 1e-4


def test_wide_rows_end_at_the_minimum_scipy_finds():
    X, y = sample(60, 200_000, seed=3)
    X = scipy.sparse.random(60, 200_000, 2e-4, random_state=3, format="csr")
    problem = hj.Problem(hj.losses.SquaredHinge(), LINEAR, "regularised")
    solution = hj.solve(problem, {"loss": {"C": 2.0}, "kernel": {}}, X, y).raise_if_failed()
    K = (X @ X.T).toarray() + 1.0

    def primal(z):
        margin = np.maximum(1.0 - y * (K @ z), 0.0)
        return 0.5 * z @ K @ z + 2.0 * np.sum(margin**2), K @ (z - 4.0 * y * margin)

    best = scipy.optimize.minimize(
        primal, np.zeros(60), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}
    )
    assert primal(np.asarray(solution.z))[0] == pytest.approx(best.fun, rel=1e-10)
    new = X[:7]
    np.testing.assert_allclose(solution.decision(new), (K @ np.asarray(solution.z))[:7], atol=1e-10)
    assert solution.X.to_scipy().shape == (60, 200_000)
