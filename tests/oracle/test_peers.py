"""The same problems through other programs: LIBSVM, LIBLINEAR and SciPy, at their tolerance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import hyperjax as hj

svm = pytest.importorskip("sklearn.svm")
linear_model = pytest.importorskip("sklearn.linear_model")

N, D = 40, 4
COSTS = (0.05, 1.0, 30.0)
LIBSVM = 1e-5
"""LIBSVM keeps the kernel matrix in float32, whatever its tolerance: seven digits of K, times |z|."""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N, D))
    target = X[:, 0] - X[:, 1] * X[:, 2] + 0.8 * rng.normal(size=N)
    return X, np.where(target > 0, 1.0, -1.0), target


def solver(problem, tol=1e-11):
    return jax.jit(lambda hp, X, y: hj.solve(problem, hp, X, y, tol=tol))


def test_libsvm_classifier(rows):
    X, y, _ = rows
    run = solver(hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), True))
    for C in COSTS:
        peer = svm.SVC(C=C, gamma=0.3, tol=1e-9).fit(X, y)
        hp = {"loss": {"C": jnp.asarray(C)}, "kernel": {"gamma": jnp.asarray(0.3)}}
        found = run(hp, jnp.asarray(X), jnp.asarray(y))
        np.testing.assert_allclose(found.outputs, peer.decision_function(X), atol=LIBSVM)


def test_libsvm_class_weights(rows):
    X, y, _ = rows
    run = solver(hj.Problem(hj.losses.WeightedHinge(), hj.kernels.RBF(), True))
    peer = svm.SVC(C=1.0, gamma=0.3, class_weight={1: 2.0, -1: 0.5}, tol=1e-9).fit(X, y)
    costs = {"C_pos": 2.0, "C_neg": 0.5, "m_pos": 1.0, "m_neg": 1.0}
    hp = jax.tree.map(jnp.asarray, {"loss": costs, "kernel": {"gamma": 0.3}})
    np.testing.assert_allclose(run(hp, jnp.asarray(X), jnp.asarray(y)).outputs, peer.decision_function(X), atol=LIBSVM)


def test_libsvm_regression(rows):
    X, _, target = rows
    run = solver(hj.Problem(hj.losses.EpsilonInsensitive(), hj.kernels.RBF(), True))
    for C in COSTS:
        peer = svm.SVR(C=C, gamma=0.3, epsilon=0.2, tol=1e-9).fit(X, target)
        hp = jax.tree.map(jnp.asarray, {"loss": {"C": C, "eps": 0.2}, "kernel": {"gamma": 0.3}})
        np.testing.assert_allclose(run(hp, jnp.asarray(X), jnp.asarray(target)).outputs, peer.predict(X), atol=LIBSVM)


LINEAR = {
    "hinge": (hj.losses.Hinge(), lambda C: svm.LinearSVC(C=C, loss="hinge", tol=1e-9, max_iter=10**7, random_state=0)),
    "squared_hinge": (hj.losses.SquaredHinge(), lambda C: svm.LinearSVC(C=C, tol=1e-11, max_iter=10**6, dual=False)),
    "logistic": (
        hj.losses.Logistic(),
        lambda C: linear_model.LogisticRegression(C=C, tol=1e-11, max_iter=10**6, solver="liblinear"),
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_liblinear_classifiers(rows, name):
    """Its appended constant column is the regularised bias."""
    X, y, _ = rows
    loss, peer_of = LINEAR[name]
    run = solver(hj.Problem(loss, hj.kernels.Linear(), "regularised"))
    for C in (0.05, 1.0):
        peer = peer_of(C).fit(X, y)
        found = run({"loss": {"C": jnp.asarray(C)}, "kernel": {}}, jnp.asarray(X), jnp.asarray(y))
        np.testing.assert_allclose(found.outputs, peer.decision_function(X), atol=1e-6)
        np.testing.assert_allclose(found.b, peer.intercept_[0], atol=1e-6)


def test_liblinear_squared_regression(rows):
    X, _, target = rows
    run = solver(hj.Problem(hj.losses.SquaredEpsilonInsensitive(), hj.kernels.Linear(), "regularised"))
    peer = svm.LinearSVR(
        C=0.7, epsilon=0.2, loss="squared_epsilon_insensitive", dual=False, tol=1e-11, max_iter=10**6
    ).fit(X, target)
    hp = jax.tree.map(jnp.asarray, {"loss": {"C": 0.7, "eps": 0.2}, "kernel": {}})
    np.testing.assert_allclose(run(hp, jnp.asarray(X), jnp.asarray(target)).outputs, peer.predict(X), atol=1e-6)


@pytest.mark.parametrize("bias", [True, False, "regularised"])
def test_pinball_by_quadratic_programming(rows, bias):
    """The dual min 1/2 z'Kz - y'z over C (tau - 1) <= z <= C tau (and sum z = 0) by SciPy's SLSQP."""
    X, _, target = rows
    X, target = X[:20], target[:20]
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1)) + (1.0 if bias == "regularised" else 0.0)
    run = solver(hj.Problem(hj.losses.Pinball(), hj.kernels.RBF(), bias))
    for C, tau in ((0.5, 0.3), (3.0, 0.8)):
        plane = {"type": "eq", "fun": np.sum, "jac": np.ones_like}
        found = scipy.optimize.minimize(
            lambda z: 0.5 * z @ K @ z - target @ z,
            np.zeros(20),
            jac=lambda z: K @ z - target,
            bounds=[(C * (tau - 1.0), C * tau)] * 20,
            constraints=[plane] if bias is True else [],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        hp = jax.tree.map(jnp.asarray, {"loss": {"C": C, "tau": tau}, "kernel": {"gamma": 0.3}})
        solution = run(hp, jnp.asarray(X), jnp.asarray(target))
        z = np.asarray(solution.z)
        assert np.all((z >= C * (tau - 1.0) - 1e-12) & (z <= C * tau + 1e-12))
        np.testing.assert_allclose(z.sum() if bias is True else 0.0, 0.0, atol=1e-10)
        np.testing.assert_allclose(0.5 * z @ K @ z - target @ z, found.fun, rtol=1e-8)
        np.testing.assert_allclose(K @ z, K @ found.x, atol=1e-5)
