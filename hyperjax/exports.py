"""A solution as a fitted scikit-learn estimator; scikit-learn is imported only when asked for one.

Problem
    Hinge, WeightedHinge (both margins 1)    bias True           SVC
    EpsilonInsensitive                       bias True           SVR
    the same and their squares               linear kernel, bias False or "regularised"    LinearSVC, LinearSVR
    Logistic                                 linear kernel       LogisticRegression
    SVC and SVR take Linear, Polynomial of a whole degree, RBF, ARD and Precomputed, and multiples of them (Scaled): c K
    with C is K with c C.  ARD's widths and a kernel's `columns` become a step before the estimator, in a Pipeline.
    Fitted again on the same rows, the estimator finds the same function: interop.problem_of backwards.
"""

import dataclasses
from typing import Any

import jax
import numpy as np
import scipy.sparse

from . import losses
from .libsvm_model import PlainKernel, plain_kernel, single

__all__ = ["scaled_columns", "to_sklearn"]

FITS = (
    "scikit-learn has Hinge, WeightedHinge with margins 1 and EpsilonInsensitive with bias=True (any kernel it knows); "
    'on the linear kernel also SquaredHinge, SquaredEpsilonInsensitive, the hinge with bias=False or "regularised", '
    "and Logistic; hyperjax.libsvm_model.write takes every loss"
)


def to_sklearn(solution: Any, classes: Any = (-1, 1)) -> Any:
    """A fitted SVC, SVR, LinearSVC, LinearSVR or LogisticRegression with the decision function of `solution`.

    `solution` is a Solution of one problem on all rows, or the result of a tuning.  `classes` are the two labels that
    stand for -1 and +1.  Kernels with a width a column, or that look at some columns only, come as a Pipeline.
    """
    try:
        import sklearn  # noqa: F401  # told here, in words, before anything else
    except ImportError:
        raise ImportError("to_sklearn needs scikit-learn: install hyperjax[sklearn]") from None
    solution = single(solution)
    hp = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), solution.hp)
    kernel = plain_kernel(solution.problem.kernel, hp["kernel"])
    labels = np.unique(np.asarray(classes))
    if labels.shape != (2,) or list(labels) != list(classes):
        raise ValueError(f"classes={classes!r}: give the two labels of -1 and +1, the smaller one first")
    if kernel.kind == "precomputed" and kernel.columns is not None:
        raise ValueError("the kernel is Precomputed with columns: scikit-learn takes one square matrix; export that")
    X, step = _prepared(np.asarray(solution.X, np.float64), kernel)
    maker = _linear if solution.problem.bias is not True or _only_linear(solution.problem.loss) else _machine
    estimator = maker(solution, hp["loss"], dataclasses.replace(kernel, columns=None, widths=None), X, labels)
    if step is None:
        return estimator
    from sklearn.pipeline import Pipeline

    return Pipeline([("columns", step), ("svm", estimator)])


def scaled_columns(X: Any, columns: Any = None, factors: Any = None) -> Any:
    """The chosen columns of X, each multiplied by its factor: what an exported Pipeline does first."""
    X = X if columns is None else X[:, np.asarray(columns)]
    if factors is None:
        return X
    return X.multiply(factors).tocsr() if scipy.sparse.issparse(X) else X * factors


def _prepared(X: np.ndarray, kernel: PlainKernel) -> tuple[np.ndarray, Any]:
    """The training rows as the estimator sees them, and the step of the Pipeline that makes them so."""
    factors = None if kernel.widths is None else np.sqrt(kernel.widths)
    if factors is None and kernel.columns is None:
        return X, None
    from sklearn.preprocessing import FunctionTransformer

    options = {"columns": kernel.columns, "factors": factors}
    step = FunctionTransformer(scaled_columns, kw_args=options, accept_sparse=True, validate=True)
    return scaled_columns(X, **options), step.fit(X)


def _only_linear(loss: Any) -> bool:
    return type(loss) in (losses.SquaredHinge, losses.SquaredEpsilonInsensitive, losses.Logistic)


def _machine(solution: Any, hp: dict[str, Any], kernel: PlainKernel, X: np.ndarray, classes: np.ndarray) -> Any:
    """An SVC or SVR: LIBSVM's solvers."""
    from sklearn.svm import SVC, SVR

    loss = solution.problem.loss
    weights = None
    if type(loss) is losses.Hinge:
        C = hp["C"]
    elif type(loss) is losses.WeightedHinge and hp["m_pos"] == hp["m_neg"] == 1.0:
        C, weights = np.float64(1.0), [kernel.factor * hp["C_neg"], kernel.factor * hp["C_pos"]]
    elif type(loss) is losses.EpsilonInsensitive:
        C = hp["C"]
    else:
        raise _refusal(solution)
    names = {"linear": "linear", "rbf": "rbf", "polynomial": "poly", "precomputed": "precomputed"}
    options = {"kernel": names[kernel.kind], "C": float(C) * (1.0 if weights else kernel.factor)}
    if kernel.kind in ("rbf", "polynomial"):
        options["gamma"] = kernel.gamma
    if kernel.kind == "polynomial":
        options.update(coef0=kernel.coef0, degree=kernel.degree)
    if type(loss) is losses.EpsilonInsensitive:
        return _filled(SVR(epsilon=float(hp["eps"]), **options), solution, kernel, X, None)
    balance = None if weights is None else dict(zip(classes.tolist(), map(float, weights), strict=True))
    return _filled(SVC(class_weight=balance, **options), solution, kernel, X, classes)


def _filled(estimator: Any, solution: Any, kernel: PlainKernel, X: np.ndarray, classes: Any) -> Any:
    """The estimator with the solution in the place of what a fit would have found.

    A fit to two rows sets every attribute of the installed version; those that depend on the data are then replaced.
    """
    two = np.eye(2, 2 if kernel.kind == "precomputed" else X.shape[1])
    estimator.fit(two, [0.0, 1.0] if classes is None else classes)
    z, n = np.asarray(solution.z, np.float64) * kernel.factor, X.shape[0]
    rows = np.flatnonzero(z)
    rows = rows if rows.size else np.zeros(1, int)
    if classes is not None:
        rows = rows[np.argsort(z[rows] > 0, kind="stable")]
    negative = int(np.sum(z[rows] <= 0))
    counts = [rows.size, 0] if classes is None else [negative, rows.size - negative]
    coef, intercept = z[rows][None, :], np.asarray([float(solution.b)])
    # scikit-learn's own numbers are for its second class, LIBSVM's inside for the first
    sign = 1.0 if classes is None else -1.0
    precomputed = kernel.kind == "precomputed"
    values = {
        "support_": rows.astype(np.int32),
        "support_vectors_": np.empty((0, 0)) if precomputed else np.ascontiguousarray(X[rows]),
        "_n_support": np.asarray(counts, np.int32),
        "dual_coef_": coef,
        "intercept_": intercept,
        "_dual_coef_": sign * coef,
        "_intercept_": sign * intercept,
        "shape_fit_": (n, n) if precomputed else X.shape,
        "n_features_in_": n if precomputed else X.shape[1],
    }
    for name, value in values.items():
        setattr(estimator, name, value)
    return estimator


def _linear(solution: Any, hp: dict[str, Any], kernel: PlainKernel, X: np.ndarray, classes: np.ndarray) -> Any:
    """A LinearSVC, LinearSVR or LogisticRegression: weights in the place of support vectors."""
    problem = solution.problem
    if kernel.kind != "linear":
        raise _refusal(solution)
    if problem.bias == "regularised" and kernel.factor != 1.0:
        raise ValueError('the kernel is Scaled with bias="regularised", which scikit-learn has not: export it unscaled')
    estimator = _linear_estimator(solution, hp, kernel.factor, classes)
    # any two rows will do: the fit sets what the installed version sets, the weights are replaced
    targets = [0.0, 1.0] if not problem.loss.labels else classes
    C, class_weight = estimator.C, getattr(estimator, "class_weight", None)
    estimator.set_params(C=1.0, **({"class_weight": None} if class_weight else {}))
    estimator.fit(np.eye(2, X.shape[1]), targets)
    estimator.set_params(C=C, **({"class_weight": class_weight} if class_weight else {}))
    w = (np.asarray(solution.z, np.float64) * kernel.factor) @ X
    b = float(solution.b)
    estimator.coef_ = w[None, :] if problem.loss.labels else w
    if estimator.fit_intercept or b:  # without a bias b is a tuned threshold
        estimator.intercept_ = np.asarray([b])
    return estimator


def _linear_estimator(solution: Any, hp: dict[str, Any], factor: float, classes: np.ndarray) -> Any:
    """The estimator without a fit, its C that of an unscaled kernel."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC, LinearSVR

    problem, loss = solution.problem, solution.problem.loss
    bias = problem.bias
    if type(loss) is losses.Logistic:
        if bias == "regularised":
            return LogisticRegression(C=factor * float(hp["C"]), solver="liblinear")
        return LogisticRegression(C=factor * float(hp["C"]), fit_intercept=bool(bias))
    if bias is True:
        raise _refusal(solution)
    options = {"fit_intercept": bias == "regularised", "dual": True}
    if type(loss) in (losses.Hinge, losses.SquaredHinge):
        name = "hinge" if type(loss) is losses.Hinge else "squared_hinge"
        return LinearSVC(loss=name, C=factor * float(hp["C"]), **options)
    if type(loss) is losses.WeightedHinge and hp["m_pos"] == hp["m_neg"] == 1.0:
        costs = dict(zip(classes.tolist(), (factor * float(hp["C_neg"]), factor * float(hp["C_pos"])), strict=True))
        return LinearSVC(loss="hinge", C=1.0, class_weight=costs, **options)
    if type(loss) in (losses.EpsilonInsensitive, losses.SquaredEpsilonInsensitive):
        name = "epsilon_insensitive" if type(loss) is losses.EpsilonInsensitive else "squared_epsilon_insensitive"
        return LinearSVR(loss=name, C=factor * float(hp["C"]), epsilon=float(hp["eps"]), **options)
    raise _refusal(solution)


def _refusal(solution: Any) -> ValueError:
    problem = solution.problem
    found = f"{type(problem.loss).__name__}, {type(problem.kernel).__name__}, bias={problem.bias!r}"
    return ValueError(f"no estimator of scikit-learn solves this problem ({found}): {FITS}")
