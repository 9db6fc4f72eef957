"""Implicit primal gradient descent (ImpGrad) for support vector regression, one or several groups of rows."""

from collections.abc import Callable
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from .. import search as searches
from ..criteria.squared_error import SquaredError
from ..kernels.linear import Linear
from ..losses.squared_epsilon_insensitive import SquaredEpsilonInsensitive
from ..minimum_norm import minimum_norm
from ..problem import Problem
from ..run import Point, Run, Stop
from ..tune import TuneResult
from ._tubes import TubeSearch, adjoint, measure, slopes
from .base import Takes

__all__ = ["impgrad"]

TAKES = Takes((SquaredEpsilonInsensitive,), (Linear,), (False, "regularised"), (SquaredError,))
EDGES = ("inside", "outside", "minimum")
WIDTH = 1e-6
"""Residuals this close to the edge of their tube, in standard deviations of y, count as on it."""
WIDER = (1e-4, 1e-2)
"""Wider edges tried with "minimum" where no step along the gradient helps."""
MOST_EDGES = 30


def impgrad(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    init: Any = None,
    weights: Any = None,
    groups: Any = None,
    bounds: Any = None,
    hold: Any = None,
    normalisation: str = "sum",
    logarithms: bool = True,
    edge: str = "inside",
    inner_tol: Any = "auto",
    max_steps: int = 50,
    tol: float = 1e-3,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Descend on the cross-validated squared error of a linear SVR by gradients of the solved folds.

    Problem:    minimise V = mean over tested rows of (x'w_t - y)^2 over (C_g, eps_g) in a box, w_t the weights that
                minimise 1/2 |w|^2 + C_g sum (|x_j'w - y_j| - eps_g)_+^2 over the rows fold t trains on; the paper's
                equations (9) to (12), with C half of the paper's.  One group, or `Grouped` with a pair a group.
    Optimality: of the folds G_t(w_t) = 0; of the search |V_new - V| < tol |V + 1|, or the norm of the projected
                gradient <= tol |V + 1| after a step (Algorithm 1, as printed; `tune` asks for more before it stops).
    Derivative: dV = sum_t lambda_t' dG_t with one adjoint solve A_t lambda_t = -dV/dw_t a fold, by Cholesky, in the
                place of the paper's one solve a hyperparameter, equations (26) and (27) with the sign of the latter
                corrected.
    Source:     Moore, Bergeron & Bennett, Model selection for primal SVM, section 3 and Algorithm 1.

    It starts at C = 1, eps = 0 in the paper's units unless `init` says otherwise, inside C from 1e-3 to 1e3 and eps
    up to the standard deviation of y unless `bounds` do (`bounds`, `init` and the result are in the library's units;
    details["C"] is the paper's C).  `normalisation` "mean" divides every group's loss by its rows in the fold; with
    "sum" C is not rescaled for the model of all rows.  `logarithms=False` searches C itself.

    On the edge of the tube, |r| = eps, the loss has no second derivative: `edge` counts such a row as "inside" (the
    paper's choice), as "outside", or takes the subgradient of least norm ("minimum") among those of either choice; the
    latter also tries rows near the edge where no step helps.
    """
    if edge not in EDGES:
        raise ValueError(f"edge={edge!r}: choose one of {', '.join(map(repr, EDGES))}")
    search = TubeSearch(
        "impgrad", TAKES, problem, X, y, folds, criterion, init, weights, groups, hold, bounds, normalisation,
        logarithms, seed=seed, max_seconds=max_seconds, callback=callback, progress=progress, compilation=compilation,
        inner_tol=inner_tol,
    )  # fmt: skip
    descent = _Descent(search, edge, tol)

    def steps() -> str:
        point = descent(search.theta)
        if not point.ok:
            raise RuntimeError(f"the folds could not be solved at the start values ({point.explain()}): scale X")
        descent.note(point)
        reason = descent.walk(point, max_steps)
        for width in WIDER if edge == "minimum" else ():
            if reason == "no_progress":
                descent.width = width
                reason = descent.walk(descent.corrected(search.gradient(search.best().theta)), max_steps)
        return reason

    reason = search.walk(steps)
    return search.finish(search.best(), reason, normalisation=normalisation, edge_rows=descent.met)


class _Descent:
    """What the quasi-Newton search sees: gradients with a choice on the edge, and the paper's test of the end."""

    kinked = False
    """Kinks are met by `edge`, not by the search."""

    def __init__(self, search: TubeSearch, edge: str, tol: float) -> None:
        self.search, self.edge, self.tol, self.width = search, edge, tol, WIDTH
        self.tubes, self.last, self.met = search.tubes(), None, 0
        self.spread = float(np.std(np.asarray(self.tubes.y)))

    def __call__(self, theta: np.ndarray) -> Point:
        return self.corrected(self.search.gradient(theta))

    def walk(self, point: Point, max_steps: int) -> str:
        """The quasi-Newton search from a point; the end is decided in `note`."""
        # the first step has length 1 in the coordinates that may move, whatever pushes against a bound
        point = point._replace(gradient=self._free(point))
        return searches.quasi_newton(cast(Run, self), point, self.search.low, self.search.high, 0.0, max_steps)

    def note(self, point: Point) -> None:
        """Record an accepted point, and stop where the paper does."""
        self.search.note(point)
        before, self.last = self.last, point
        if before is None:
            return
        if np.linalg.norm(self._free(point)) <= self.tol * abs(point.value + 1.0):
            raise Stop("gradient")
        if abs(point.value - before.value) < self.tol * abs(before.value + 1.0):
            raise Stop("tolerance")

    def _free(self, point: Point) -> np.ndarray:
        """The gradient without what pushes against a bound."""
        g, low, high = point.gradient, self.search.low, self.search.high
        return np.where(((point.theta <= low) & (g > 0)) | ((point.theta >= high) & (g < 0)), 0.0, g)

    def corrected(self, point: Point) -> Point:
        """The point with the gradient of the chosen side where rows lie on the edge of their tube."""
        if not point.ok:
            return point
        tubes, dtype = self.tubes, self.tubes.phi.dtype
        W, theta = self.search.weights(tubes.phi), jnp.asarray(point.theta, dtype) * tubes.scale
        at = measure(tubes, W, theta)
        r, eps = np.asarray(at.r), np.asarray(at.eps)[self.search.group]
        away = np.where(np.asarray(tubes.unit) > 0, np.abs(np.abs(r) - eps), np.inf)
        rows = np.argwhere(away <= self.width * self.spread)
        if not len(rows):
            return point
        self.met += len(rows)
        rows = rows[np.argsort(away[tuple(rows.T)])][:MOST_EDGES]
        a, e = slopes(r, eps)
        a[tuple(rows.T)] = e[tuple(rows.T)] = 0.0
        return point._replace(gradient=self._choose(W, theta, a, e, rows, -np.sign(r)))

    def _choose(
        self, W: Any, theta: Any, a: np.ndarray, e: np.ndarray, rows: np.ndarray, sides: np.ndarray
    ) -> np.ndarray:
        """The gradient with the rows inside, outside, or the element of least norm among the choices."""

        def gradient(chosen: np.ndarray) -> np.ndarray:
            slope, move, at = a.copy(), e.copy(), tuple(chosen.T)
            slope[at], move[at] = 1.0, sides[at]
            parts = (jnp.asarray(part, W.dtype) for part in (slope, move))
            return np.asarray(adjoint(self.tubes, W, theta, *parts)[0] * self.tubes.scale, float)

        if self.edge == "inside":
            return gradient(rows[:0])
        if self.edge == "outside":
            return gradient(rows)
        base = gradient(rows[:0])
        others = [gradient(rows), *(gradient(row[None]) for row in rows)]
        hull = np.stack([other - base for other in others], axis=1)
        return minimum_norm(base, hull, np.zeros(len(others), int))[1]
