"""to_sklearn: the estimator decides as the solution does, and fitted again on the same rows it still does."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import hyperjax as hj
from hyperjax import exports, kernels, losses

base = pytest.importorskip("sklearn.base")

N, D = 40, 4
_draw = np.random.default_rng(12)
X = _draw.normal(size=(N, D))
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.4 * _draw.normal(size=N) > 0.4, 1.0, -1.0)
VALUES = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * _draw.normal(size=N)
NEW = _draw.normal(size=(9, D))
WIDTHS = np.asarray([0.9, 0.0625, 0.4, 0.01])

HINGE, TUBE = losses.Hinge(C=1.5), losses.EpsilonInsensitive(C=2.0, eps=0.15)
WEIGHTED = losses.WeightedHinge(C_pos=2.0, C_neg=0.5)
POLYNOMIAL = kernels.Polynomial(gamma=0.3, coef0=1.5, degree=2.0)
LINEAR = kernels.Linear()
PROBLEMS = {
    "SVC rbf": hj.Problem(HINGE, kernels.RBF(gamma=0.4)),
    "SVC weighted": hj.Problem(WEIGHTED, kernels.Scaled(kernels.RBF(gamma=0.4), 2.0)),
    "SVC polynomial": hj.Problem(HINGE, kernels.Scaled(POLYNOMIAL, 0.5)),
    "SVC linear": hj.Problem(HINGE, LINEAR),
    "SVR polynomial": hj.Problem(TUBE, POLYNOMIAL),
    "SVR rbf": hj.Problem(TUBE, kernels.Scaled(kernels.RBF(gamma=0.4), 2.0)),
    "SVC ARD": hj.Problem(HINGE, kernels.ARD()),
    "SVR ARD, columns": hj.Problem(TUBE, kernels.Scaled(kernels.ARD(columns=(2, 0)), 3.0, columns=(1, 2, 3))),
    "SVC columns": hj.Problem(HINGE, kernels.RBF(gamma=0.4, columns=(3, 0))),
    "LinearSVC": hj.Problem(losses.SquaredHinge(C=0.7), LINEAR, "regularised"),
    "LinearSVC, no bias": hj.Problem(HINGE, kernels.Scaled(LINEAR, 2.0), False),
    "LinearSVC, weighted": hj.Problem(WEIGHTED, LINEAR, "regularised"),
    "LinearSVC, columns": hj.Problem(losses.SquaredHinge(C=0.7), kernels.Linear(columns=(3, 1)), False),
    "LinearSVR": hj.Problem(losses.SquaredEpsilonInsensitive(C=0.7, eps=0.1), LINEAR, "regularised"),
    "LinearSVR, no bias": hj.Problem(TUBE, LINEAR, False),
    "LogisticRegression": hj.Problem(losses.Logistic(C=1.5), kernels.Scaled(LINEAR, 2.0)),
    "LogisticRegression, no bias": hj.Problem(losses.Logistic(C=1.5), LINEAR, False),
    "LogisticRegression, regularised": hj.Problem(losses.Logistic(C=1.5), LINEAR, "regularised"),
}


def start(problem, X=X):
    """Hyperparameters with different ARD widths."""
    hp = problem.init(X, Y)
    inside = hp["kernel"].get("kernel", hp["kernel"])
    if jnp.ndim(inside.get("gamma", 0.0)) == 1:
        inside["gamma"] = jnp.asarray(WIDTHS[: inside["gamma"].shape[0]])
    return hp


def made(problem, X=X, z=None, b=-0.3):
    """A solution with planted coefficients: the export does not ask whether it is optimal."""
    z = np.random.default_rng(4).normal(size=N) * (np.arange(N) % 3 > 0) if z is None else z
    facts = dict.fromkeys(("kkt", "gap", "distance"), jnp.zeros(()))
    facts |= dict.fromkeys(("code", "iterations", "n_free", "degenerate"), jnp.zeros((), jnp.int32))
    b = 0.0 if problem.bias is False else b
    z, b, y = (jnp.asarray(part) for part in (z, b, Y))
    return hj.Solution(problem, start(problem, X), jnp.asarray(X), z=z, b=b, outputs=y, **facts)


def outputs(estimator, rows):
    return estimator.decision_function(rows) if hasattr(estimator, "decision_function") else estimator.predict(rows)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_decision_function(name):
    solution = made(PROBLEMS[name])
    if solution.problem.bias is not False:  # about as many outputs below 0 as above
        solution = solution.replace(b=solution.b - jnp.median(solution.decision(NEW)) + 0.01)
    estimator = exports.to_sklearn(solution)
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    assert type(last).__name__ == name.split()[0].rstrip(",")
    expected = np.asarray(solution.decision(NEW))
    np.testing.assert_allclose(outputs(estimator, NEW), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(outputs(pickle.loads(pickle.dumps(estimator)), NEW), expected, rtol=1e-9, atol=1e-9)
    if solution.problem.loss.labels:
        np.testing.assert_array_equal(estimator.predict(NEW), np.where(expected > 0, 1, -1))
        named = exports.to_sklearn(solution, classes=["no", "yes"])
        assert named.predict(NEW).tolist() == np.where(expected > 0, "yes", "no").tolist()
        assert 0 < np.sum(expected > 0) < len(NEW)
    else:
        np.testing.assert_allclose(estimator.predict(NEW), expected, rtol=1e-9, atol=1e-9)
    assert estimator.n_features_in_ == D
    with pytest.raises(ValueError, match="features"):
        estimator.predict(NEW[:, :2])


AGAIN = ["SVC rbf", "SVC weighted", "SVR rbf", "SVC ARD", "LinearSVC", "LinearSVC, no bias", "LinearSVR"]
AGAIN += ["LogisticRegression"]


@pytest.mark.parametrize("name", AGAIN)
def test_fitted_again_it_finds_the_same_function(name):
    """The estimator's own parameters state the same problem: scikit-learn's solvers are the oracle."""
    problem = PROBLEMS[name]
    y = Y if problem.loss.labels else VALUES
    solution = hj.solve(problem, start(problem), X, y, tol=1e-9)
    estimator = exports.to_sklearn(solution)
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    np.testing.assert_allclose(outputs(estimator, NEW), solution.decision(NEW), rtol=0, atol=1e-6)
    again = base.clone(estimator)
    fine = {"tol": 1e-10, "max_iter": 1_000_000}
    (again[-1] if hasattr(again, "steps") else again).set_params(**fine)
    again.fit(X, y)
    np.testing.assert_allclose(outputs(again, NEW), solution.decision(NEW), rtol=0, atol=1e-5)
    if hasattr(last, "support_"):
        refit = again[-1] if hasattr(again, "steps") else again
        np.testing.assert_array_equal(np.sort(last.support_), np.sort(refit.support_))
        np.testing.assert_array_equal(last.n_support_, refit.n_support_)
        np.testing.assert_allclose(last.dual_coef_.sum(), 0.0, atol=1e-8)


def test_attributes_are_those_of_a_fit():
    """What a fit sets, the export sets: names, shapes and types, in whichever version is installed."""
    svm = pytest.importorskip("sklearn.svm")
    problem = PROBLEMS["SVC rbf"]
    solution = hj.solve(problem, start(problem), X, Y, tol=1e-9)
    found, fitted = exports.to_sklearn(solution), svm.SVC(C=1.5, gamma=0.4, tol=1e-9).fit(X, Y)
    assert vars(found).keys() == vars(fitted).keys()
    for name in ("support_", "support_vectors_", "_n_support", "dual_coef_", "intercept_", "shape_fit_", "_gamma"):
        ours, theirs = np.asarray(getattr(found, name)), np.asarray(getattr(fitted, name))
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), name
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6, err_msg=name)


def test_kernel_matrices():
    for loss in (HINGE, TUBE):
        solution = made(hj.Problem(loss, kernels.Precomputed()), X=X @ X.T)
        estimator, K = exports.to_sklearn(solution), NEW @ X.T
        np.testing.assert_allclose(outputs(estimator, K), solution.decision(K), rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="40"):
            estimator.predict(NEW)


def test_sparse_rows_and_results():
    class Result:
        solution = made(PROBLEMS["SVC ARD"])

    estimator = exports.to_sklearn(Result())
    step = estimator[0].transform(scipy.sparse.csr_matrix(NEW))
    np.testing.assert_allclose(step.toarray(), NEW * np.sqrt(WIDTHS), rtol=1e-12)
    np.testing.assert_allclose(estimator.decision_function(NEW), Result.solution.decision(NEW), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["SVC rbf", "SVR rbf"])
@pytest.mark.parametrize("sign", [0.0, 1.0, -1.0])
def test_support_of_one_class_or_none(name, sign):
    solution = made(PROBLEMS[name], z=sign * np.arange(N))
    estimator = exports.to_sklearn(solution)
    np.testing.assert_allclose(outputs(estimator, NEW), solution.decision(NEW), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("problem", "match"),
    [
        (hj.Problem(losses.SquaredHinge()), "SquaredHinge, RBF, bias=True.*hyperjax.libsvm_model"),
        (hj.Problem(losses.SquaredHinge(), LINEAR), "SquaredHinge, Linear, bias=True"),
        (hj.Problem(HINGE, bias=False), "Hinge, RBF, bias=False"),
        (hj.Problem(losses.Logistic()), "Logistic, RBF"),
        (hj.Problem(losses.SmoothHinge(), LINEAR), "SmoothHinge, Linear"),
        (hj.Problem(losses.WeightedHinge(m_pos=1.5)), "WeightedHinge, RBF"),
        (hj.Problem(losses.PerSample(losses.Hinge())), "PerSample, RBF"),
        (hj.Problem(losses.Pinball(), LINEAR, False), "Pinball, Linear"),
        (hj.Problem(losses.SquaredHinge(), kernels.Scaled(LINEAR, 2.0), "regularised"), "Scaled with bias="),
        (hj.Problem(HINGE, kernels.Laplacian()), "the kernel is Laplacian: only Linear"),
        (hj.Problem(HINGE, kernels.Sum([LINEAR, LINEAR])), "the kernel is Sum"),
        (hj.Problem(HINGE, kernels.Polynomial(degree=2.5)), "degree 2.5"),
    ],
)
def test_what_scikit_learn_has_not(problem, match):
    with pytest.raises(ValueError, match=match):
        exports.to_sklearn(made(problem))


def test_wrong_arguments():
    for classes in ([1, -1], [1], [1, 1], [0, 1, 2]):
        with pytest.raises(ValueError, match="give the two labels of -1 and \\+1, the smaller one first"):
            exports.to_sklearn(made(PROBLEMS["SVC rbf"]), classes=classes)
    with pytest.raises(ValueError, match="solution is a dict"):
        exports.to_sklearn({})


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(ImportError, match="to_sklearn needs scikit-learn"):
        exports.to_sklearn(made(PROBLEMS["SVC rbf"]))


def test_a_tuned_threshold_goes_into_the_export():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 1.0, 1.0, -1.0)
    criterion = hj.criteria.WeightedError(kappa=0.1, threshold="tuned")
    result = hj.tune(hj.Problem(), X, y, 4, criterion, max_steps=2, progress=False)
    threshold = float(result.hp["criterion"]["threshold"])
    assert abs(threshold) > 0.05
    exported = result.to_sklearn()
    np.testing.assert_allclose(exported.decision_function(X), np.asarray(result.decision(X)) - threshold, atol=1e-9)
    np.testing.assert_array_equal(exported.predict(X) > 0, np.asarray(result.decision(X)) >= threshold)
