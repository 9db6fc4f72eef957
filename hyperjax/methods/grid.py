"""Every point of a grid."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..coordinates import dotted
from ..criteria.error_rate import ErrorRate
from ..criteria.squared_error import SquaredError
from ..domains import Interval, NonNegative, Positive
from ..problem import Problem
from ..tune import TuneResult
from .base import Search, Takes

__all__ = ["grid"]

TAKES = Takes(rough=True)
DEFAULTS = {
    "C": 2.0 ** np.arange(-5, 10),
    "gamma": 2.0 ** np.arange(-12, 3),
    "eps": 2.0 ** np.arange(-10, 0),
}
"""Values of the hyperparameters everybody searches, by the last part of their name."""


def grid(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    values: dict[str, Any] | None = None,
    weights: Any = None,
    groups: Any = None,
    hold: Any = None,
    solver: Any = None,
    inner_tol: Any = "auto",
    batch: int = 15,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Evaluate every point of a grid and train at the best.

    Problem:    minimise the criterion over the product of `values`, {"loss.C": [..], "kernel.gamma": [..]}, in natural
                units.  By default every hyperparameter that is not held has 15 values: C = 2^-5 .. 2^9,
                gamma = 2^-12 .. 2^2, eps = 2^-10 .. 2^-1 (10), others e^-3 .. e^3 times their start; vectors as one.
    Optimality: the smallest value; of equal ones the first, where the first name varies slowest and values rise.
    Derivative: none is needed, so `criterion` may be a hard one; the error rate (squared error) by default.
    Source:     Keerthi, Sindhwani & Chapelle, section 4 (15 x 15); Hsu, Chang & Lin, A practical guide to SVC.

    `inner_tol` bounds kkt of the folds' solutions: "auto" is 1e-3, or what rounding allows.  `batch` points share
    one program with one kernel matrix in memory at a time; all folds are solved together.
    """
    if criterion is None:
        criterion = ErrorRate() if problem.loss.labels else SquaredError()
    search = Search(
        "grid", TAKES, problem, X, y, folds, criterion, None, weights, groups, hold, None, solver, seed, max_seconds,
        callback, progress, compilation, "isotropic", inner_tol,
    )  # fmt: skip
    thetas = _points(search, values)

    reason = search.walk(lambda: search.sweep(thetas, batch))
    return search.result(search.best(), reason, points=len(thetas))


def _points(search: Search, values: dict[str, Any] | None) -> np.ndarray:
    """The grid in the coordinates theta."""
    coords = search.coords
    names = [dotted(path) for path in coords.paths]
    unknown = sorted(set(values or ()) - set(names))
    if unknown:
        raise ValueError(f"values names {unknown[0]!r}, which is not tuned: there are {', '.join(names)}")
    axes, at = [], 0
    for name, domain, size in zip(names, coords.domains, coords.sizes, strict=True):
        here = search.theta[at : at + size]
        at += size
        wanted = (values or {}).get(name)
        if wanted is None and values is not None:
            axes += [[value] for value in here]
            continue
        if wanted is None and size > 1:
            raise ValueError(f"a grid over the {size} values of {name} is too large: name it in hold, or use random")
        axes += [_axis(name, domain, wanted, float(value)) for value in here]
    return np.asarray(list(itertools.product(*axes)))


def _axis(name: str, domain: Any, wanted: Any, here: float) -> list[float]:
    if wanted is None:
        wanted = DEFAULTS.get(name.rsplit(".", 1)[-1])
    if wanted is None:
        if isinstance(domain, (Positive, Interval)):
            return list(here + np.linspace(-3.0, 3.0, 15))
        return list(here + np.linspace(0.0 if isinstance(domain, NonNegative) else -3.0, 3.0, 15))
    given = np.atleast_1d(np.asarray(wanted, float))
    wrong = domain.problem_with(given)
    if wrong or given.ndim != 1 or not np.all(np.isfinite(given)):
        raise ValueError(f"values[{name!r}] is {wanted!r}: it {wrong or 'must be a list of finite numbers'}")
    return [float(np.asarray(domain.to_real(value))) for value in given]
