"""hyperjax.Problem.from_sklearn: the same decision function as the fitted estimator, refusals in words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC

import hyperjax as hj

pytestmark = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compared with 64-bit solvers")

N, D = 60, 3
_draw = np.random.default_rng(4)
X = _draw.normal(size=(N, D)) * np.array([1.0, 2.0, 0.5]) + 0.3
LABELS = np.where(X @ np.array([1.0, -0.4, 0.7]) + 0.8 * _draw.normal(size=N) > 0.4, 1.0, -1.0)
TARGETS = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * _draw.normal(size=N)

EXACT = {"tol": 1e-9, "max_iter": 1_000_000}
KERNELS = {"tol": 1e-9, "cache_size": 50}


def compare(estimator, y, matrix=None):
    """Decisions on the training rows, ours from the start values that `init` gives."""
    data = X if matrix is None else matrix
    problem = hj.Problem.from_sklearn(estimator)
    estimator.fit(data, y)
    solution = hj.solve(problem, problem.init(data, y), data, y, tol=1e-9)
    assert bool(solution.kkt <= 1e-9), estimator
    theirs = estimator.decision_function(data) if hasattr(estimator, "decision_function") else estimator.predict(data)
    np.testing.assert_allclose(solution.decision(data), theirs, atol=2e-6, err_msg=repr(estimator))
    again = hj.Problem.from_sklearn(estimator)
    assert jax.tree.structure(again) == jax.tree.structure(problem), "a fitted estimator gives the same problem"


def test_svc():
    compare(SVC(C=2.0, **KERNELS), LABELS)
    compare(SVC(gamma="auto", **KERNELS), LABELS)
    compare(SVC(gamma=0.4, C=2.0, class_weight={1: 3.0}, **KERNELS), LABELS)
    compare(SVC(kernel="linear", C=0.5, **KERNELS), LABELS)
    compare(SVC(kernel="precomputed", C=1.5, **KERNELS), LABELS, matrix=np.exp(-0.2 * _squares()))


def test_svc_polynomial():
    compare(SVC(kernel="poly", degree=2, coef0=0.7, C=0.3, **KERNELS), LABELS)


def _squares():
    return np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2)


def test_svr():
    compare(SVR(C=2.0, epsilon=0.2, **KERNELS), TARGETS)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_svc(loss):
    compare(LinearSVC(C=0.6, loss=loss, dual=True, fit_intercept=loss == "hinge", random_state=0, **EXACT), LABELS)


def test_linear_svc_with_class_weights():
    weights = {-1: 0.5, 1: 2.0}
    compare(LinearSVC(C=0.6, loss="hinge", dual=True, class_weight=weights, random_state=0, **EXACT), LABELS)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_svr(loss):
    squared = loss.startswith("squared")
    compare(LinearSVR(C=0.6, epsilon=0.1, loss=loss, fit_intercept=squared, random_state=0, **EXACT), TARGETS)


def test_logistic_regression():
    compare(LogisticRegression(C=0.8, tol=1e-10, solver="newton-cholesky"), LABELS)
    compare(LogisticRegression(C=0.8, tol=1e-10, solver="liblinear"), LABELS)


def test_start_values_are_the_estimators():
    data, y = jnp.asarray(X), jnp.asarray(LABELS)
    init = hj.Problem.from_sklearn(SVC(C=7.0, gamma="scale")).init(data, y)
    assert float(init["loss"]["C"]) == 7.0
    np.testing.assert_allclose(init["kernel"]["gamma"], 1.0 / (D * X.var()), rtol=1e-14)
    init = hj.Problem.from_sklearn(SVC(kernel="poly", gamma="auto", degree=4, coef0=0.2)).init(data, y)
    assert {k: float(v) for k, v in init["kernel"].items()} == {"gamma": 1.0 / D, "degree": 4.0, "coef0": 0.2}
    init = hj.Problem.from_sklearn(SVC(C=2.0, class_weight={-1: 0.5})).init(data, y)["loss"]
    assert {k: float(v) for k, v in init.items()} == {"C_pos": 2.0, "C_neg": 1.0, "m_pos": 1.0, "m_neg": 1.0}


REFUSED = [
    (SVC(kernel="sigmoid"), "positive semidefinite"),
    (SVC(kernel=lambda A, B: A @ B.T), "two matrices"),
    (SVC(kernel="poly", coef0=-1.0), "coef0"),
    (SVC(class_weight="balanced"), "weights="),
    (SVC(class_weight={0: 1.0, 1: 2.0}), "labels -1 and 1"),
    (SVC(C=-1.0), "C=-1.0"),
    (SVC(gamma="wide"), "gamma"),
    (LinearSVC(penalty="l1"), "penalty"),
    (LinearSVC(multi_class="crammer_singer"), "multi_class"),
    (LinearSVC(intercept_scaling=10.0), "intercept_scaling"),
    (LinearSVC(class_weight={1: 2.0}), "weights="),
    (LinearSVR(loss="huber"), "loss"),
    (LogisticRegression(l1_ratio=0.5), "penalty"),
    (LogisticRegression(class_weight="balanced"), "weights="),
    (NuSVC(), "SVC, LinearSVC"),
    (RandomForestClassifier(), "RandomForestClassifier"),
    ("SVC", "str"),
]


@pytest.mark.parametrize(("estimator", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refusals(estimator, words):
    with pytest.raises(ValueError, match=words):
        hj.Problem.from_sklearn(estimator)


def test_a_fit_to_three_classes_is_refused():
    fitted = SVC().fit(X, np.arange(N) % 3)
    with pytest.raises(ValueError, match="3 classes"):
        hj.Problem.from_sklearn(fitted)
