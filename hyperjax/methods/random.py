"""Points drawn at random."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..criteria.error_rate import ErrorRate
from ..criteria.squared_error import SquaredError
from ..problem import Problem
from ..tune import TuneResult
from .base import Search, Takes

__all__ = ["random"]

TAKES = Takes(rough=True)
SPREAD = 2.5
"""Standard deviation of unbounded coordinates around their start, in log units."""


def random(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    draws: int = 50,
    init: Any = None,
    bounds: Any = None,
    weights: Any = None,
    groups: Any = None,
    hold: Any = None,
    solver: Any = None,
    inner_tol: Any = "auto",
    batch: int = 10,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Evaluate points drawn at random and train at the best.

    Problem:    minimise the criterion over `draws` points: the start, and others with log-normal coordinates around it
                (standard deviation 2.5), or uniform in the logarithm between the ends of `bounds` where they are given.
    Optimality: the smallest value, of equal ones the first.
    Derivative: none is needed, so `criterion` may be a hard one; the error rate (squared error) by default.
    Source:     Bergstra & Bengio, Random search for hyper-parameter optimization, JMLR 13 (2012).

    The same seed draws the same points.  `batch` points share one program, all folds are solved together;
    `inner_tol` bounds kkt of their solutions: "auto" is 1e-3, or what rounding allows.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise ValueError(f"draws={draws!r}: give a whole number, at least 1")
    if criterion is None:
        criterion = ErrorRate() if problem.loss.labels else SquaredError()
    search = Search(
        "random", TAKES, problem, X, y, folds, criterion, init, weights, groups, hold, bounds, solver, seed,
        max_seconds, callback, progress, compilation, "full", inner_tol,
    )  # fmt: skip
    thetas = _points(search, bounds, draws, seed)

    reason = search.walk(lambda: search.sweep(thetas, batch))
    return search.result(search.best(), reason, points=draws)


def _points(search: Search, bounds: Any, draws: int, seed: int) -> np.ndarray:
    """The start and draws - 1 others, in the coordinates theta."""
    generator = np.random.default_rng(seed)
    shape = (draws, len(search.theta))
    normal, uniform = generator.normal(size=shape), generator.uniform(size=shape)
    bounded = [name.split("[")[0] in (bounds or {}) for name in search.coords.names]
    between = np.asarray(bounded) & np.isfinite(search.low) & np.isfinite(search.high)
    width = np.where(between, search.high - search.low, 0.0)
    low = np.where(between, search.low, 0.0)
    drawn = np.where(between, low + width * uniform, search.theta + SPREAD * normal)
    drawn[0] = search.theta
    return np.clip(drawn, search.low, search.high)
