"""From a data set to good hyperparameters: descent on a cross-validation criterion by exact hypergradients."""

import dataclasses
import sys
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import checks, objective, search
from . import plan as planning
from .checkpoint import Checkpoint, fingerprint
from .coordinates import natural
from .criteria._smoothed import Smoothed
from .domains import NonNegative
from .folds import Folds
from .history import History
from .plan import Plan
from .problem import Problem
from .run import Point, Run, Stop
from .sensitivity import Sensitivity, sensitivity
from .solve import Solution
from .threads import one_blas_thread
from .types import Array, Hyperparameters

__all__ = ["TuneResult", "conclude", "tune"]

OPTIMIZERS = ("bfgs", "lbfgs")
AT_KINKS = ("any", "min-norm")
SPREAD_OF_STARTS = 1.5
"""Standard deviation of further starts around the first, in log units."""
CHEAP = 1 << 24
"""Numbers in what stands for the kernel matrix up to which the final model is trained by the search's own program: a
repeated search pays for it with one more evaluation, the first is spared the compilation of another program."""


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """What a search found."""

    problem: Problem
    hp: Hyperparameters
    """The tuned hyperparameters; hp["criterion"] holds the criterion's own, such as a threshold."""
    value: float
    """The criterion at hp, without the prior."""
    hard: float | None
    """Its hard counterpart (the error rate of a smoothed error), None where there is none."""
    solution: Solution
    """The model trained on all rows at hp."""
    history: History
    criterion: Any
    folds: Folds
    start: Hyperparameters
    """Where the search began."""
    reason: str
    """Why it ended: tolerance, gradient or finished; no_progress, max_steps, max_seconds, callback, interrupted."""
    n_evaluations: int
    seconds: float
    at_bounds: tuple[str, ...] = ()
    """Hyperparameters that a bound keeps from going further."""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Whatever else a method reports."""
    task: Any = dataclasses.field(default=None, repr=False)
    """Data, folds and coordinates of the last stage: what `sensitivity` looks at."""

    @property
    def converged(self) -> bool:
        """Whether the search ended of itself."""
        return self.reason in ("tolerance", "gradient", "finished")

    def decision(self, X_new: Any) -> Array:
        """Outputs of the final model at new rows."""
        return self.solution.decision(X_new)

    def sensitivity(self, share: float = 0.01) -> Sensitivity:
        """The Hessian of the objective at the optimum, its flat directions, and the moves that cost `share` of it."""
        return sensitivity(self.task, self.hp, share)

    def to_sklearn(self, classes: Any = (-1, 1)) -> Any:
        """The final model as a fitted scikit-learn estimator; a tuned threshold is taken off its intercept."""
        return self.at_threshold().to_sklearn(classes)

    def at_threshold(self) -> Solution:
        """The final model with a tuned threshold taken off its bias: its outputs change sign where predictions do."""
        threshold = self.hp.get("criterion", {}).get("threshold", 0.0)
        return self.solution.replace(b=self.solution.b - jnp.asarray(threshold, self.solution.b.dtype))

    def __repr__(self) -> str:
        hard = "" if self.hard is None else f", hard={self.hard:.6g}"
        return (
            f"TuneResult(value={self.value:.6g}{hard}, reason={self.reason!r}, "
            f"n_evaluations={self.n_evaluations}, seconds={self.seconds:.2f})"
        )


def tune(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    init: Any = None,
    weights: Any = None,
    groups: Any = None,
    optimizer: Any = "bfgs",
    bounds: Any = None,
    hold: Any = None,
    stages: Any = None,
    prior: Any = "auto",
    starts: int = 1,
    solver: Any = None,
    inner_tol: Any = "auto",
    max_steps: int = 50,
    max_seconds: float | None = None,
    tol: float = 1e-3,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    checkpoint: Any = None,
    progress: bool = True,
    compilation: str = "auto",
    at_kinks: str = "any",
) -> TuneResult:
    """Tune the hyperparameters of `problem` on (X, y) by cross-validation, and train on all rows at what was found.

    y holds -1 and +1 for margin losses; (k, n) rows of them tune k one-vs-rest problems that share their
    hyperparameters, with the mean of their criteria.  `folds` is a number, a Folds or an array (T, n) of training
    weights; `groups` (n,) are never divided.  "loo" judges the leave-one-out outputs of one fit to all rows (exact for
    the loss Squared, by the active set for others: see `loo_decision`); result.folds then is one fold of all rows.
    `criterion` is one of hyperjax.criteria or a callable of (o, y); by default the smoothed error rate, or the squared
    error for regression.

    `init` is a tree of start values, a part of one, or an earlier result.  `bounds` maps dotted names to pairs in
    natural units, {"loss.C": (1e-3, 1e3)}; by default logarithms stay within 12 of the problem's own start values.
    `hold` names what is not tuned.  `stages` are searched one after the other: "isotropic" moves vectors (the widths
    of an ARD kernel, one C a row) as one, "full" moves everything, a list of names moves those; the default is
    isotropic first where there are vectors, other than one C a row alone.  `prior` pulls the logarithms of a stage
    towards its start: "auto" (on for more than 10), None, or a strength in units of "auto".  `starts` > 1 searches the
    first stage from that many points, the start values and others drawn around them by `seed`, and goes on from the
    best end: it costs as much as so many searches.

    `optimizer` is "bfgs" (limited memory beyond 200 coordinates), "lbfgs" for the same, or an optax transformation.
    Every stage ends when a step and what the next one promises change the objective by no more than `tol` relatively,
    when nothing is left of the gradient, after `max_steps` steps or `max_seconds`, when `callback(record)` returns
    True, or on Ctrl-C: the best point so far is the result.  `inner_tol` bounds kkt of the folds' solutions; "auto"
    ties it to the step.  `checkpoint` is a file the search is written to after every step; the same call goes on from
    it.  On a CPU `compilation` "quick" takes least time to compile and most to run, "full" the opposite, "balanced" is
    between them; "auto" chooses by the number of rows.

    `at_kinks` says what is followed where rows sit on kinks of their loss: "any" takes the gradient of the side the
    solution is on; "min-norm" the element of least norm of the gradients of all sides, over the rows within 1e-3 of
    their kinks in output units (down to 1e-5 where that leaves next to nothing), the nearest as far as 31 assignments
    reach.  It costs an adjoint solve an assignment, and lets a search end with "gradient" at an optimum on a kink.
    """
    _check(optimizer, starts, inner_tol, max_steps, max_seconds, tol, callback)
    _check_kinks(at_kinks, folds)
    plan = planning.prepare(
        problem, X, y, folds, criterion, init, weights, groups, hold, bounds, stages, prior, solver, seed, compilation,
        single=True,
    )  # fmt: skip
    file = None
    if checkpoint is not None:
        settings = (optimizer, tol, starts, seed, inner_tol, repr(plan.stages), repr(bounds), repr(hold), prior)
        settings = (*settings, at_kinks)
        file = Checkpoint.open(checkpoint, _identity(plan, settings))
    run = Run(plan.compilation, inner_tol, file, max_seconds, callback, progress, at_kinks)
    with one_blas_thread():
        try:
            hp, best, reason = _stages(run, plan, optimizer, tol, max_steps, starts, seed)
        finally:
            run.close()
        assert best is not None  # a search that cannot start has raised
        return conclude(run, plan, hp, best, reason)


def _stages(run: Run, plan: Plan, optimizer: Any, tol: float, max_steps: int, starts: int, seed: int):
    """All stages; (hp, best point, reason)."""
    hp, best, reason = plan.hp, None, "max_steps"
    for stage in plan.stages:
        coords = plan.coords(stage, hp)
        run.begin(plan.task(coords, hp), stage if isinstance(stage, str) else ", ".join(stage))
        try:
            reason = _stage(run, plan, optimizer, tol, max_steps, starts if best is None else 1, seed)
        except (Stop, KeyboardInterrupt) as end:
            reason = str(end) if isinstance(end, Stop) else "interrupted"
            if not run.history:  # nothing to return yet
                raise
        if run.best is not None:
            best = run.best
            hp = natural(coords, jnp.asarray(best.theta))
        if reason in ("callback", "max_seconds", "interrupted"):
            break
    return hp, best, reason


def _stage(run: Run, plan: Plan, optimizer: Any, tol: float, max_steps: int, starts: int, seed: int) -> str:
    coords, task = run.task.coords, run.task
    low, high = (np.asarray(end, float) for end in (coords.low, coords.high))
    theta = np.clip(np.asarray(task.centre), low, high)
    first = run.begin_at(theta)
    others = _drawn(run, first.theta, low, high, starts, seed) if starts > 1 else []
    points = [first, *others] if first.ok else others
    if not points:
        raise RuntimeError(
            f"the search cannot start: the folds could not be solved at the start values ({first.explain()}); scale "
            "the features, start elsewhere (init=) or hold what makes the problem hard"
        )
    strength = plan.prior(coords, points[0].value)
    run.task = task.replace(centre=jnp.asarray(theta, task.X.dtype), strength=jnp.asarray(strength, task.X.dtype))
    # the values of the others are without the prior
    run.best = first if first.ok else None
    reason = "no_progress"
    for number, point in enumerate(points):
        point = point if point is first else run(point.theta)
        if not point.ok:
            continue
        run.start_number, before = number, run.best
        if point is not first:
            run.note(point)
        if isinstance(optimizer, str):
            end = search.quasi_newton(run, point, low, high, tol, max_steps, memory=optimizer == "lbfgs")
        else:
            end = search.first_order(run, point, low, high, tol, max_steps, optimizer)
        if number == 0 or run.best is not before:
            reason = end
    return reason


def _drawn(run: Run, theta: np.ndarray, low: np.ndarray, high: np.ndarray, starts: int, seed: int) -> list[Point]:
    """Further points to start from, drawn around theta and evaluated in one batch, the most promising first."""
    steps = np.random.default_rng(seed).normal(size=(starts, len(theta)))[1:]
    thetas = np.clip(theta + SPREAD_OF_STARTS * steps, low, high).astype(run.task.X.dtype)
    return sorted((point for point in run.points(thetas) if point.ok), key=lambda point: point.value)


def conclude(run: Run, plan: Plan, hp: Hyperparameters, best: Point, reason: str, **details: Any) -> TuneResult:
    """The result of a search that ended at hp: the final model, and warnings where they are due."""
    same = run.differentiated and jax.tree.structure(hp) == jax.tree.structure(run.task.coords.template)
    start = run.start if same and (run.compilation != "full" or objective.size(run.task) <= CHEAP) else None
    solution = objective.train(run.task, hp, checks.tolerance(None, plan.X.dtype), run.compilation, start)
    codes = np.atleast_1d(np.asarray(solution.code))
    if np.isin(codes, [1, 2, 3]).any():
        warnings.warn(
            f"the final model on all rows is not solved (kkt {float(np.max(solution.kkt)):.1e}): "
            "see result.solution.raise_if_failed()",
            RuntimeWarning,
            stacklevel=3,
        )
    at_bounds = _at_bounds(run, best)
    if at_bounds:
        warnings.warn(
            f"the optimum sits on the bounds of {planning.several(at_bounds)}: widen them with bounds= if they were "
            "not meant",
            RuntimeWarning,
            stacklevel=3,
        )
    hard = None if np.isnan(best.hard) else best.hard
    if _says_nothing(plan, hard):
        warnings.warn(
            f"held out, the tuned machine is no better than one prediction for every row ({best.hard:.4g}): start "
            'elsewhere (init=, starts=), judge by BalancedError() or a threshold="tuned", or take another kernel',
            RuntimeWarning,
            stacklevel=3,
        )
    return TuneResult(
        plan.problem, hp, best.value, hard, solution, run.history, plan.criterion, plan.folds, plan.hp, reason,
        run.evaluations, run.seconds, at_bounds, details, run.task,
    )  # fmt: skip


def _says_nothing(plan: Plan, hard: float | None) -> bool:
    """Whether a count of errors is no lower than that of the better constant prediction."""
    criterion = plan.criterion
    if hard is None or not isinstance(criterion, Smoothed) or type(criterion).measure is Smoothed.measure:
        return False
    w = np.any(np.asarray(plan.folds.test) > 0, axis=0).astype(float)
    w = w if plan.weights is None else w * np.asarray(plan.weights, float)
    least = np.mean([criterion.constant(row, w) for row in np.atleast_2d(np.asarray(plan.y))])
    return hard >= (1.0 - 1e-6) * float(least)


def _at_bounds(run: Run, best: Point) -> tuple[str, ...]:
    """Coordinates on a bound that want to go on; at a natural end, such as eps = 0, there is nothing to widen."""
    coords = run.task.coords
    if len(best.theta) != len(coords.names):
        return ()
    low, high = np.asarray(coords.low), np.asarray(coords.high)
    ends = [isinstance(domain, NonNegative) for domain in coords.domains]
    natural = np.repeat(ends, coords.sizes) & (low == 0)
    held = ((best.theta <= low) & (best.gradient > 0) & ~natural) | ((best.theta >= high) & (best.gradient < 0))
    return tuple(np.asarray(coords.names)[held])


def _identity(plan: Plan, settings: Any) -> dict[str, str]:
    """What makes two searches the same."""
    return fingerprint(
        data=(plan.X, plan.y, plan.weights, plan.folds, plan.loo),
        problem=(plan.problem, plan.hp, plan.criterion),
        settings=[*settings, plan.solver, plan.compilation],
        versions=[sys.modules[__name__.partition(".")[0]].__version__, jax.__version__, jax.devices()[0].device_kind],
    )


def _check_kinks(at_kinks: Any, folds: Any) -> None:
    if at_kinks not in AT_KINKS:
        raise ValueError(f'at_kinks={at_kinks!r}: choose "any" or "min-norm"')
    if at_kinks == "min-norm" and isinstance(folds, str):
        raise ValueError('at_kinks="min-norm" needs folds: leave-one-out by the active set jumps at kinks')


def _check(
    optimizer: Any, starts: Any, inner_tol: Any, max_steps: Any, max_seconds: Any, tol: Any, callback: Any
) -> None:
    known = optimizer in OPTIMIZERS if isinstance(optimizer, str) else hasattr(optimizer, "update")
    if not known:
        raise ValueError(f'optimizer={optimizer!r}: choose "bfgs", "lbfgs" or an optax transformation')
    for name, value, least in (("starts", starts, 1), ("max_steps", max_steps, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name}={value!r}: give a whole number, at least {least}")
    if not (callback is None or callable(callback)):
        raise ValueError(f"callback={callback!r}: give a function of the record of a step, or None")
    for name, value in (("max_seconds", max_seconds), ("tol", tol), ("inner_tol", inner_tol)):
        if (name, value) in (("max_seconds", None), ("inner_tol", "auto")):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name}={value!r}: give one positive number")
