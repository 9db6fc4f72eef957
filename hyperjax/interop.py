"""The problem a scikit-learn estimator solves; scikit-learn itself is never imported.

Problem
    SVC, SVR                 hinge, eps-insensitive;           any kernel, bias unregularised
    LinearSVC, LinearSVR     the same or squared;              linear kernel, bias "regularised" (a column of ones)
    LogisticRegression       log(1 + e^{-m}), penalty l2;      linear kernel, bias unregularised
    All minimise 1/2 |f|^2 + C sum of losses, hyperjax's own scale, so every value carries over as it is.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .kernels.linear import Linear
from .kernels.polynomial import Polynomial
from .kernels.precomputed import Precomputed
from .kernels.rbf import RBF
from .losses.base import Loss
from .losses.epsilon_insensitive import EpsilonInsensitive
from .losses.hinge import Hinge
from .losses.logistic import Logistic
from .losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from .losses.squared_hinge import SquaredHinge
from .losses.weighted_hinge import WeightedHinge
from .problem import Problem

__all__ = ["AutoPolynomial", "AutoRBF", "problem_of"]


class AutoRBF(RBF):
    """The Gaussian kernel whose width starts at 1/d, scikit-learn's gamma="auto"."""

    def init(self, X, y):
        return {**super().init(X, y), "gamma": _one_over_d(self.select(X))}


class AutoPolynomial(Polynomial):
    """The polynomial kernel whose gamma starts at 1/d, scikit-learn's gamma="auto"."""

    def init(self, X, y):
        return {**super().init(X, y), "gamma": _one_over_d(self.select(X))}


def _one_over_d(X: Any) -> Any:
    return jnp.asarray(1.0 / X.shape[1], X.dtype)


def problem_of(estimator: Any) -> Problem:
    """The problem that `estimator` (fitted or not) solves; its `init` gives the estimator's own values."""
    for cls in type(estimator).__mro__:
        if cls.__module__.split(".")[0] == "sklearn" and cls.__name__ in READERS:
            _two_classes(estimator)
            return READERS[cls.__name__](estimator)
    raise ValueError(f"estimator is a {type(estimator).__name__}: hyperjax reads scikit-learn's {', '.join(READERS)}")


def _svc(estimator: Any) -> Problem:
    return Problem(_hinge(estimator), _kernel(estimator), True)


def _svr(estimator: Any) -> Problem:
    return Problem(EpsilonInsensitive(C=_C(estimator), eps=float(estimator.epsilon)), _kernel(estimator), True)


def _linear_svc(estimator: Any) -> Problem:
    if estimator.penalty != "l2":
        raise _refusal(estimator, "penalty", "hyperjax minimises the squared norm, penalty='l2'")
    if estimator.multi_class != "ovr":
        raise _refusal(estimator, "multi_class", "use 'ovr': one problem of two classes at a time")
    if estimator.loss == "hinge":
        loss = _hinge(estimator)
    elif estimator.loss == "squared_hinge":
        _unweighted(estimator)
        loss = SquaredHinge(C=_C(estimator))
    else:
        raise _refusal(estimator, "loss", "use 'hinge' or 'squared_hinge'")
    return Problem(loss, Linear(), _column_of_ones(estimator))


def _linear_svr(estimator: Any) -> Problem:
    losses = {
        "epsilon_insensitive": EpsilonInsensitive,
        "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    }
    if estimator.loss not in losses:
        raise _refusal(estimator, "loss", f"use one of {', '.join(losses)}")
    loss = losses[estimator.loss](C=_C(estimator), eps=float(estimator.epsilon))
    return Problem(loss, Linear(), _column_of_ones(estimator))


def _logistic(estimator: Any) -> Problem:
    penalty = getattr(estimator, "penalty", "l2")
    if penalty not in ("l2", "deprecated") or getattr(estimator, "l1_ratio", None) not in (None, 0, 0.0):
        raise _refusal(estimator, "penalty", "hyperjax minimises the squared norm: penalty='l2' without an l1_ratio")
    _unweighted(estimator)
    # LIBLINEAR alone penalises the intercept with the weights
    bias = _column_of_ones(estimator) if estimator.solver == "liblinear" else bool(estimator.fit_intercept)
    return Problem(Logistic(C=_C(estimator)), Linear(), bias)


READERS: dict[str, Callable[[Any], Problem]] = {
    "SVC": _svc,
    "LinearSVC": _linear_svc,
    "SVR": _svr,
    "LinearSVR": _linear_svr,
    "LogisticRegression": _logistic,
}


def _refusal(estimator: Any, name: str, advice: str) -> ValueError:
    return ValueError(f"{type(estimator).__name__} has {name}={getattr(estimator, name, None)!r}: {advice}")


def _C(estimator: Any) -> float:
    C = float(estimator.C)
    if not (np.isfinite(C) and C > 0):
        raise _refusal(estimator, "C", "it must be positive and finite")
    return C


def _two_classes(estimator: Any) -> None:
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) > 2:
        raise ValueError(
            f"{type(estimator).__name__} was fitted to {len(classes)} classes: "
            "hyperjax solves two; set one against the rest as labels -1 and +1"
        )


def _unweighted(estimator: Any) -> None:
    if estimator.class_weight is not None:
        raise _refusal(estimator, "class_weight", "leave it None and pass weights= (one a row) to hyperjax.solve")


def _hinge(estimator: Any) -> Loss:
    """The hinge, with a cost a class where class_weight is a dict."""
    weights = estimator.class_weight
    if weights is None:
        return Hinge(C=_C(estimator))
    if not isinstance(weights, dict):
        _unweighted(estimator)
    if not set(weights) <= {-1, 1}:
        raise _refusal(estimator, "class_weight", "its keys must be the labels -1 and 1; map the two classes to them")
    C_neg, C_pos = (_C(estimator) * float(weights.get(label, 1.0)) for label in (-1, 1))
    if not (C_neg > 0 and C_pos > 0):
        raise _refusal(estimator, "class_weight", "both weights must be positive")
    return WeightedHinge(C_pos=C_pos, C_neg=C_neg)


def _column_of_ones(estimator: Any) -> bool | str:
    """LIBLINEAR's intercept is one more weight, of a feature that is intercept_scaling everywhere."""
    if not estimator.fit_intercept:
        return False
    if estimator.intercept_scaling != 1:
        raise _refusal(estimator, "intercept_scaling", 'hyperjax has bias="regularised", which is intercept_scaling=1')
    return "regularised"


def _kernel(estimator: Any) -> Any:
    kernel, gamma = estimator.kernel, estimator.gamma
    if kernel == "linear":
        return Linear()
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "sigmoid":
        raise _refusal(estimator, "kernel", "it is not positive semidefinite; use 'rbf', 'poly' or 'linear'")
    if callable(kernel):
        raise ValueError(
            f"{type(estimator).__name__} has a callable kernel, which takes two matrices: give hyperjax.Problem a "
            'function k(x, z) of two rows instead, or pass the matrix with kernel="precomputed"'
        )
    if kernel not in ("rbf", "poly"):
        raise _refusal(estimator, "kernel", "use 'linear', 'rbf', 'poly' or 'precomputed'")
    if isinstance(gamma, str) and gamma not in ("scale", "auto"):
        raise _refusal(estimator, "gamma", "use 'scale', 'auto' or a positive number")
    start = None if isinstance(gamma, str) else float(gamma)
    if kernel == "rbf":
        return AutoRBF() if gamma == "auto" else RBF(gamma=start)
    if estimator.coef0 < 0:
        raise _refusal(estimator, "coef0", "the polynomial kernel is positive semidefinite for coef0 >= 0 only")
    coef0, degree = float(estimator.coef0), float(estimator.degree)
    if gamma == "auto":
        return AutoPolynomial(coef0=coef0, degree=degree)
    return Polynomial(gamma=start, coef0=coef0, degree=degree)
