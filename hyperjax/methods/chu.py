"""A warm-started sweep along C with a start and an end of its own."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..criteria.error_rate import ErrorRate
from ..kernels import Linear, Precomputed
from ..losses import Logistic, SquaredHinge
from ..problem import Problem
from ..sparse import Matrix
from ..tune import TuneResult
from . import _record as book
from ._sweep import Models, Sweep, step
from .base import Search, Takes

__all__ = ["chu"]

TAKES = Takes((Logistic, SquaredHinge), (Linear, Precomputed), (False, "regularised"), (), rough=True)
IN_A_ROW = {"gradient": 3, "unchanged": 5}
"""How many values of C in a row end the sweep, by rule: the paper's, and its package's."""


def chu(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    inner: str = "newton",
    C_min: float | None = None,
    C_max: float = 2.0**10,
    ratio: float = 2.0,
    tol: float = 1e-2,
    stop: str | None = "gradient",
    stop_tol: float | None = None,
    warm: bool = True,
    shared: bool = False,
    max_iterations: int = 1000,
    weights: Any = None,
    groups: Any = None,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Sweep C upwards from where every model underfits until solutions no longer matter, and train at the best.

    Problem:    minimise a cross-validation criterion (the error rate by default) over C = C_min ratio^k <= C_max for
                a linear classifier |w|^2 / 2 + C L(w), one model a fold.  C_min is the largest power of 2 not above
                1 / (n max |x|^2), half of that for the squared hinge: there no row reaches margin 1 (section 4.1).
    Optimality: the smallest value, of equal ones the smallest C.  With stop="gradient" the sweep ends where, three
                times in a row and in all folds, the last models meet the solver's own rule at this C (24):
                |grad E(w_{C / ratio}; C)| <= stop_tol min(n+, n-) / n |grad E(0; C)|, stop_tol being tol unless given.
                By stationarity the left side is (ratio - 1) |w_{C / ratio}|, and the right one grows like C: the rule
                compares |w| with a line in C and does not test whether w has converged.  It fires for separable
                logistic regression too, where w grows for ever.  "unchanged" is LIBLINEAR's: five times in a row no
                fold's solver took a step.  None goes on to C_max.
    Derivative: none is needed, so `criterion` may be a hard one.
    Source:     Chu, Ho, Tsai, Lin & Lin, Warm Start for Parameter Selection of Linear Classifiers, KDD 2015: algorithm
                1, warm starts (14) and (17), stop rules (24) and (28).

    `inner` is "newton" (primal, truncated conjugate gradients) or "dual" (coordinate descent); a fold is solved to
    |grad E| <= tol min(n+, n-) / n |grad E(0)| or for `max_iterations`, and starts from its own solution at the last C
    (times the ratio in the dual) unless `warm` is False.  `shared` passes one vector through all folds, which tells
    each of them about its held-out rows: it is there to show by how much that overstates the accuracy.

    details: one entry a C of everything measured (see the names), and last_C.  A stored kernel matrix is factored.
    """
    search, log, reason = path(
        problem, X, y, folds, criterion, inner, C_min, C_max, ratio, tol, stop, stop_tol, warm, shared,
        max_iterations, weights, groups, max_seconds, seed, callback, progress, compilation,
    )  # fmt: skip
    return search.result(search.best(), reason, **log, last_C=log["C"][-1], shared=shared)


def path(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    inner: str = "newton",
    C_min: float | None = None,
    C_max: float = 2.0**10,
    ratio: float = 2.0,
    tol: float = 1e-2,
    stop: str | None = "gradient",
    stop_tol: float | None = None,
    warm: bool = True,
    shared: bool = False,
    max_iterations: int = 1000,
    weights: Any = None,
    groups: Any = None,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> tuple[Search, dict[str, np.ndarray], str]:
    """The sweep of `chu` without the model on all rows: the search, everything measured a C, and why it ended."""
    _check(inner, C_min, C_max, ratio, tol, stop, stop_tol, shared, max_iterations)
    search = Search(
        "chu", TAKES, problem, X, y, folds, ErrorRate() if criterion is None else criterion, None, weights, groups,
        None, None, None, seed, max_seconds, callback, progress, compilation, ["loss.C"],
    )  # fmt: skip
    book.plain_cost("chu", search)
    _both_classes(search)
    phi = book.rows(problem, search.plan.hp, search.plan.X)
    if inner == "dual" and isinstance(phi, Matrix):
        raise ValueError('inner="dual" reads rows one by one and X is sparse: take "newton", or pass X.toarray()')
    least = lower_bound(search, phi) if C_min is None else float(C_min)
    if least > C_max:
        raise ValueError(f"C_max={C_max:g} lies below the smallest C, {least:.3g}: raise it, or give C_min")
    if shared:
        warnings.warn(
            "shared=True starts every fold from the solution of another, which has seen the rows it is tested on: "
            "its accuracies are too good; leave it out to choose C",
            RuntimeWarning,
            stacklevel=3,
        )
    accurate, quiet = (jnp.asarray(value, phi.dtype) for value in (tol, tol if stop_tol is None else stop_tol))
    sweep = Sweep(
        search.task, phi, accurate, quiet, jax.random.key(seed), inner == "dual", shared, warm, int(max_iterations)
    )
    log: dict[str, list[Any]] = {}
    reason = search.walk(lambda: _sweep(search, sweep, least, float(C_max), float(ratio), stop, log))
    return search, {name: np.asarray(column) for name, column in log.items()}, reason


def lower_bound(search: Search, phi: Any) -> float:
    """The largest power of 2 at which no row can reach margin 1 in any fold (section 4.1)."""
    total = search.plan.X.shape[0] if search.plan.weights is None else float(np.sum(np.asarray(search.plan.weights)))
    largest = float(jnp.max(phi.diagonal() if isinstance(phi, Matrix) else jnp.sum(phi * phi, axis=1)))
    if largest == 0:
        raise ValueError("X holds nothing but zeros: a linear model has nothing to learn from")
    slope = 2.0 if isinstance(search.plan.problem.loss, SquaredHinge) else 1.0
    return float(2.0 ** np.floor(np.log2(1.0 / (slope * total * largest))))


def _sweep(
    search: Search, sweep: Sweep, C: float, C_max: float, ratio: float, stop: str | None, log: dict[str, list[Any]]
) -> str:
    """The loop of algorithm 1; why it ended."""
    program = compiled(step, search.run.compilation)
    models: Models = sweep.start()
    quiet, count = 0, 0
    while C <= C_max * (1.0 + 1e-9):
        theta = np.asarray([np.log(C)])
        hp = search.hp(theta)
        at, factor = jnp.asarray(C, sweep.phi.dtype), jnp.asarray(ratio, sweep.phi.dtype)
        models, facts = program(sweep, models, at, factor, hp, jax.random.fold_in(sweep.key, count))
        facts = {name: np.asarray(value) for name, value in facts.items() if value is not None}
        for name, value in facts.items():
            log.setdefault(name, []).append(value)
        log.setdefault("C", []).append(C)
        log.setdefault("seconds", []).append(search.run.seconds)
        book.record(search, theta, facts, int(facts["products"].sum()), [])
        met = facts["ratio"] <= facts["share"] if stop == "gradient" else facts["unchanged"]
        quiet = quiet + 1 if count > 0 and stop is not None and met.all() else 0
        if stop is not None and quiet == IN_A_ROW[stop]:
            return "finished"
        C, count = C * ratio, count + 1
    return "finished" if stop is None else "max_steps"


def _both_classes(search: Search) -> None:
    """Refuse a fold that trains on one class: its models would predict that class whatever C is."""
    train, y = np.asarray(search.task.folds.train), np.asarray(search.task.y)
    if search.task.weights is not None:
        train = train * np.asarray(search.task.weights)[None, :]
    for t, weights in enumerate(train):
        if len(np.unique(y[weights > 0])) < 2:
            raise ValueError(f"folds: fold {t} trains on one class only: use stratified folds, or fewer of them")


def _check(
    inner: Any,
    C_min: Any,
    C_max: Any,
    ratio: Any,
    tol: Any,
    stop: Any,
    stop_tol: Any,
    shared: bool,
    max_iterations: Any,
) -> None:
    if inner not in ("newton", "dual"):
        raise ValueError(f'inner={inner!r}: choose "newton" or "dual"')
    if stop is not None and stop not in IN_A_ROW:
        raise ValueError(f'stop={stop!r}: choose "gradient", "unchanged" or None')
    if shared and inner != "newton":
        raise ValueError(
            'shared=True passes weights from fold to fold, and inner="dual" has coefficients: use "newton"'
        )
    if C_min is not None:
        book.outside("C_min", C_min, 0.0, np.inf)
    book.outside("C_max", C_max, 0.0, np.inf)
    book.outside("ratio", ratio, 1.0, np.inf)
    book.outside("tol", tol, 0.0, 1.0)
    if stop_tol is not None:
        book.outside("stop_tol", stop_tol, 0.0, 1.0)
    if isinstance(max_iterations, bool) or not isinstance(max_iterations, (int, np.integer)) or max_iterations < 1:
        raise ValueError(f"max_iterations={max_iterations!r}: give a whole number, at least 1")
