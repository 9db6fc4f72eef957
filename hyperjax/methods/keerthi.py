"""Quasi-Newton adaptation of kernel and cost by one adjoint solve (Keerthi, Sindhwani & Chapelle)."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..coordinates import dotted, flatten
from ..criteria.auc import AUC
from ..criteria.base import Criterion
from ..criteria.break_even import BreakEven
from ..criteria.f_measure import FMeasure
from ..criteria.platt_error import PlattError
from ..criteria.platt_loss import PlattLoss
from ..criteria.precision_at_recall import PrecisionAtRecall
from ..criteria.smooth_error import SmoothError
from ..criteria.weighted_error import WeightedError
from ..domains import Positive
from ..kernels.ard import ARD
from ..kernels.rbf import RBF
from ..losses.hinge import Hinge
from ..losses.squared import Squared
from ..losses.squared_hinge import SquaredHinge
from ..losses.weighted_hinge import WeightedHinge
from ..problem import Problem
from ..run import Point
from ..search import Rules, quasi_newton
from ..tune import TuneResult, conclude
from ._per_fold import PerFold
from .base import Search, Takes

__all__ = ["keerthi"]

TAKES = Takes(
    losses=(Hinge, WeightedHinge, SquaredHinge, Squared),
    kernels=(RBF, ARD),
    biases=(True,),
    criteria=(
        SmoothError, WeightedError, FMeasure, AUC, BreakEven, PrecisionAtRecall, PlattError, PlattLoss,
    ),
)  # fmt: skip
RULES = Rules(trials=9, halve=True, rescale=False, promise=False, valley=False)
"""A full step and at most eight halvings, the metric I / |g_0| at the start, and a stop that looks at V alone."""
REACH = math.exp(12.0)
"""Logarithms stay within [-12, 12]."""


def keerthi(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    init: Any = None,
    weights: Any = None,
    groups: Any = None,
    hold: Any = None,
    bounds: Any = None,
    pooled: bool = True,
    solver: Any = None,
    inner_tol: Any = "auto",
    max_steps: int = 50,
    tol: float = 1e-3,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Adapt costs, margins and kernel widths by BFGS on a smoothed validation function of k folds.

    Problem:    minimise V(theta), theta the logarithms of costs and widths, the margins of a weighted hinge as they
                are, and a threshold sigma_0 where the criterion has one; V is the smoothed error rate, the weighted
                error, 1 - F, one minus the area, break-even and the like of all held-out outputs (or, with
                pooled=False, the mean over folds).  sigma_0 and sigma_1 are set by one of three methods, the
                criterion's `threshold`: "fixed" (sigma_0 = 0, sigma_1 = 10 / std(o)), "tuned" (sigma_0 is one more
                hyperparameter) or "fitted" (both by likelihood).
    Optimality: |V_{k+1} - V_k| <= tol |V_k| (section 3), or no step down.  One stage for a single width; widths a
                feature start from the optimum with all of them equal, each stage by the same rule.
    Derivative: exact, one adjoint solve a fold for all hyperparameters (sections 2 and 3): the free variables and
                the bias of the folds' solutions satisfy a linear system; see hyperjax.implicit.
    Source:     Keerthi, Sindhwani & Chapelle, An Efficient Method for Gradient-Based Adaptation of Hyperparameters
                in SVM Models, NIPS 2006; equations (2)-(13).

    The search starts at C = 1 and gamma = 1 as the paper's does, unless `init` or the kernel says otherwise; features
    should be scaled.  The metric starts at I / |g_0|, the scale the paper does not state and without which the stop
    above ends the search where it begins; no logarithm moves further than 2 in a step.  With many features gamma = 1
    may make the kernel the identity and V flat: where the first step promises less than tol |V|, or the search does
    not leave its start, it begins again at gamma = 1 / (d var(X)).  details["stages"]: value, hard value and
    evaluations of each.
    """
    TAKES.check("keerthi", problem, criterion)
    if criterion is None:
        criterion = SmoothError()
    if not pooled and isinstance(criterion, Criterion):
        criterion = PerFold(criterion)
    wide = "isotropic" if isinstance(problem.kernel, ARD) else "full"
    search = Search(
        "keerthi", TAKES._replace(criteria=()), problem, X, y, folds, criterion, init, weights, groups, hold, bounds,
        solver, seed, max_seconds, callback, progress, compilation, wide, inner_tol,
    )  # fmt: skip
    elsewhere = _as_the_paper_starts(search, problem, init)
    ends: list[tuple[Any, Point, int]] = []
    reason = search.walk(lambda: _stages(search, ends, elsewhere, tol, max_steps))
    if not ends:
        search.best()
    hp, best, _ = ends[-1]
    stages = [{"value": point.value, "hard": point.hard, "evaluations": count} for _, point, count in ends]
    return conclude(search.run, search.plan, hp, best, reason, stages=stages)


def _as_the_paper_starts(search: Search, problem: Problem, init: Any) -> Any:
    """gamma = 1 and logarithms within [-12, 12], where the caller did not say otherwise.

    Returns the problem's own start, for use where that of the paper is a plateau; None where it was not moved.
    """
    plan = search.plan
    hp, bounds, elsewhere = plan.hp, dict(plan.bounds or {}), None
    given = (isinstance(init, dict) and "gamma" in init.get("kernel", {})) or hasattr(init, "hp")
    if problem.kernel.gamma is None and not given:
        elsewhere = hp
        hp = {**hp, "kernel": {**hp["kernel"], "gamma": jnp.ones_like(hp["kernel"]["gamma"])}}
    for path, domain in flatten(problem.domains({name: hp[name] for name in ("loss", "kernel")})):
        if isinstance(domain, Positive):
            bounds.setdefault(dotted(path), (1.0 / REACH, REACH))
    search.plan = plan._replace(hp=hp, bounds=bounds)
    search.begin(search.run.stage, hp)
    return elsewhere


def _stages(search: Search, ends: list[tuple[Any, Point, int]], elsewhere: Any, tol: float, max_steps: int) -> str:
    """A single width, then one a feature from there; every stage leaves where it ended, however it ended."""
    first = search.run.stage
    reason, began = _stage(search, ends, tol, max_steps, flat=tol if elsewhere is not None else 0.0)
    if ends and elsewhere is not None and began - ends[-1][1].objective <= tol * abs(began):
        plateau = ends.pop()
        search.begin(first, elsewhere)
        reason, _ = _stage(search, ends, tol, max_steps, plateau)
    if ends and first == "isotropic":
        shared = len(search.theta)
        search.begin("full", ends[-1][0])
        if len(search.theta) > shared:
            reason, _ = _stage(search, ends, tol, max_steps)
    return reason


def _stage(
    search: Search,
    ends: list[tuple[Any, Point, int]],
    tol: float,
    max_steps: int,
    before: Any = None,
    flat: float = 0.0,
) -> tuple[str, float]:
    """One search; its end, or that of the search `before` it if that was lower, goes to `ends`.

    A start whose first step, of length 1, promises less than the part `flat` of V is not searched from.  Returns why
    the search ended and the objective it began with.
    """
    count = search.run.evaluations - (before[2] if before else 0)
    try:
        point = search.run.begin_at(search.theta, flat)
        if not point.ok or np.linalg.norm(point.gradient) <= flat * abs(point.objective):
            return "no_progress", point.objective
        end = quasi_newton(search.run, point, search.low, search.high, tol, max_steps, rules=RULES)
        return end, point.objective
    finally:
        best = search.run.best
        found = search.run.evaluations - count
        if best is not None and (before is None or best.objective < before[1].objective):
            ends.append((search.hp(best.theta), best, found))
        elif before is not None:
            ends.append((before[0], before[1], found))
