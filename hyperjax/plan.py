"""What a search is asked to do, checked on the host and turned into tasks."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import checks, coordinates, loo
from . import folds as splits
from .compiling import COMPILATIONS
from .coordinates import Coordinates, dotted, flatten
from .criteria.base import Criterion, refuse
from .criteria.smooth_error import SmoothError
from .criteria.squared_error import SquaredError
from .domains import Positive
from .folds import Folds
from .objective import Task
from .problem import Problem
from .sparse import is_sparse
from .types import Array, Hyperparameters

__all__ = ["Plan", "prepare", "several", "split"]

MANY = 10
"""From more coordinates than this on the prior is on by default."""
SPREAD = 2.0
"""The prior's standard deviation on log hyperparameters, one for all data."""
NAMED = 5
"""Hyperparameters that a warning names."""
ROWS = ((1000, "quick"), (3000, "balanced"))
"""How programs are compiled up to so many rows, where compiling takes longer than most searches."""


class Plan(NamedTuple):
    """A checked search."""

    problem: Problem
    X: Array
    y: Array
    """(n,), or (k, n) one-vs-rest."""
    weights: Array | None
    folds: Folds
    criterion: Any
    hp: Hyperparameters
    """Where the search starts, hp["criterion"] included where the criterion has hyperparameters."""
    usual: Hyperparameters
    stages: tuple[Any, ...]
    strength: Any
    bounds: Any
    hold: Any
    solver: Any
    compilation: str
    """A key of compiling.COMPILATIONS."""
    loo: bool = False
    """Whether rows are judged by leave-one-out; `folds` then is one fold of all rows."""

    def coords(self, stage: Any, hp: Hyperparameters) -> Coordinates:
        """The coordinates of a stage that starts at hp."""
        domains = self.criterion.domain_tree(hp["criterion"]) if "criterion" in hp else {}
        hold, tied = self.hold, ()
        if stage == "isotropic":
            tied = tuple(dotted(path) for path in _ties(self.problem, hp))
        elif stage != "full":
            wanted = [str(name) for name in stage]
            own = [dotted(path) for path, _ in flatten(hp)]
            unknown = [w for w in wanted if not any(name == w or name.startswith(f"{w}.") for name in own)]
            if unknown:
                raise ValueError(f"stages names {unknown[0]!r}, no such hyperparameter: there are {', '.join(own)}")
            others = [n for n in own if not any(n == w or n.startswith(f"{w}.") for w in wanted)]
            hold = [*([hold] if isinstance(hold, str) else hold or []), *others]
        return coordinates.make(self.problem, hp, self.usual, domains, hold, self.bounds, tied)

    def task(self, coords: Coordinates, hp: Hyperparameters) -> Task:
        """The task of a stage, its prior off."""
        tree, function = (self.criterion, None) if isinstance(self.criterion, Criterion) else (None, self.criterion)
        theta = coordinates.real(coords, hp)
        counts = [not name.startswith("criterion.") for name in coords.names]
        apply_to = jnp.asarray(counts, theta.dtype)
        return Task(
            self.problem, tree, self.X, self.y, self.folds, self.weights, coords, theta, jnp.zeros((), theta.dtype),
            apply_to, self.solver, function, self.loo,
        )  # fmt: skip

    def prior(self, coords: Coordinates, value: float) -> float:
        """The prior's strength in a stage whose first value is `value`.

        A spread of SPREAD costs as much as one of the tested rows is worth: with the criterion's own value as its
        unit the strength means the same for an error rate and for a squared error in any units.
        """
        if self.strength is None:
            return 0.0
        if self.strength == "auto":
            if sum(not name.startswith("criterion.") for name in coords.names) <= MANY:
                return 0.0
            factor = 1.0
        else:
            factor = float(self.strength)
        tested = float(np.count_nonzero(np.asarray(self.folds.test).sum(axis=0)))
        return factor * abs(value) / (tested * SPREAD**2)


def prepare(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    init: Any,
    weights: Any,
    groups: Any,
    hold: Any,
    bounds: Any,
    stages: Any,
    prior: Any,
    solver: Any,
    seed: int,
    compilation: str,
    rough: bool = False,
    single: bool = False,
) -> Plan:
    """Everything checked; `rough` admits criteria without a gradient, `single` leave-one-out in the place of folds."""
    checks.known("a search runs on the host; call it", X=X, y=y, weights=weights, init=init)
    many = np.ndim(y) == 2
    if many and np.shape(y)[1] == 1:
        raise ValueError(f"y has shape {np.shape(y)}: give one value a row, y.ravel(), or (k, n) rows for k classes")
    first = y[0] if many else y
    checks.parts(problem, None)
    X = checks.rows(problem, X) if is_sparse(X) else X
    usual = _usual(problem, X, first)
    hp = _merged(usual, init)
    fitted = {name: part for name, part in hp.items() if name != "criterion"}
    X, first, fitted, weights = checks.inputs(problem, fitted, X, first, weights, solver=solver)
    y = jnp.stack([checks.inputs(problem, fitted, X, row, weights)[1] for row in y]) if many else first
    criterion = _criterion(problem, criterion, np.asarray(y), rough)
    own = criterion.init(first) if isinstance(criterion, Criterion) else {}
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf, X.dtype), own)
    hp = dict(fitted)
    if own:
        given = init.get("criterion", {}) if isinstance(init, dict) else getattr(init, "hp", {}).get("criterion", {})
        hp["criterion"] = _merge("init", own, given)
    rows = _rows(folds, y, X.dtype, groups, seed, single)
    if weights is not None and problem.loss.labels:
        for row in np.atleast_2d(y):
            if len(np.unique(row[np.asarray(weights) > 0])) < 2:
                raise ValueError("weights leave rows of one class only: a classifier needs both -1 and +1")
    if weights is not None and not isinstance(folds, str):
        checks.inputs(problem, fitted, X, first, weights, rows)
    if not (prior is None or prior == "auto" or (np.ndim(prior) == 0 and _number(prior) and float(prior) >= 0)):
        raise ValueError(f'prior={prior!r}: choose "auto", None or a strength (1 is what "auto" takes)')
    if compilation not in ("auto", *COMPILATIONS):
        raise ValueError(f'compilation={compilation!r}: choose "auto", "quick", "balanced" or "full"')
    if compilation == "auto":
        compilation = next((name for most, name in ROWS if X.shape[0] <= most), "full")
    usual = checks.inputs(problem, usual, X, first, None)[2]
    plan = Plan(
        problem, X, y, weights, rows, criterion, hp, usual, _stages(stages, problem, hp, X.shape[0]), prior, bounds,
        hold, solver, compilation, isinstance(folds, str),
    )  # fmt: skip
    # a name that does not exist is refused before the first stage runs
    stages = [plan.coords(stage, hp) for stage in plan.stages]
    if init is not None:
        _told_of_bounds(stages, hp, {**usual, "criterion": own})
    return plan


def _told_of_bounds(stages: list[Coordinates], hp: Hyperparameters, usual: Hyperparameters) -> None:
    """A warning where start values somebody gave lie outside their bounds; the library's own move quietly."""
    given, own = dict(flatten(hp)), dict(flatten(usual))
    outside: dict[str, str] = {}
    for coords in stages:
        theta, low, high = (np.asarray(part, float) for part in (coordinates.real(coords, hp), coords.low, coords.high))
        slack = 1e-5 * (1.0 + np.abs(theta))
        chosen = [not np.array_equal(np.asarray(given[path]), np.asarray(own[path])) for path in coords.paths]
        wrong = np.repeat(chosen, coords.sizes) & ((theta < low - slack) | (theta > high + slack))
        # a coordinate that several entries are tied to stands for the first of them
        pairs = zip(coords.paths, coords.sizes, strict=True)
        values = np.concatenate([np.ravel(np.asarray(given[path]))[:size] for path, size in pairs])
        outside |= {name: f"{name} = {values[i]:g}" for i, name in enumerate(coords.names) if wrong[i]}
    if outside:
        warnings.warn(
            f"init: {several(outside.values())} lies outside its bounds, and the search starts at the nearest: widen "
            "them with bounds=, or start inside",
            RuntimeWarning,
            stacklevel=4,
        )


def several(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    names = list(names)
    more = len(names) - NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:NAMED])} and {more} more"


def _usual(problem: Any, X: Any, y: Any) -> Hyperparameters:
    """The problem's own start values; bad data fall through to the checks with words for them."""
    checks.parts(problem, None)
    X, y = checks.rows(problem, X), checks.array("y", y)
    if X.ndim != 2 or y.ndim != 1 or 0 in X.shape or len(y) != len(X):
        checks.inputs(problem, {"loss": {}, "kernel": {}}, X, y, None)
    return problem.init(X, y.astype(X.dtype))


def _merged(usual: Hyperparameters, init: Any) -> Hyperparameters:
    """The start values with those of `init` (a tree, a part of one, or a result) in their places."""
    if init is None:
        return usual
    init = getattr(init, "hp", init)
    if not isinstance(init, dict):
        raise ValueError(f"init is a {type(init).__name__}: pass a dict like problem.init, a part of it, or a result")
    return _merge("init", usual, {name: part for name, part in init.items() if name != "criterion"})


def _merge(where: str, usual: Any, given: Any) -> Any:
    if isinstance(usual, dict):
        if not isinstance(given, dict):
            raise ValueError(f"{where} is {given!r}: it must be a dict with some of {sorted(usual)}")
        unknown = sorted(set(given) - set(usual))
        if unknown:
            raise ValueError(f"{where} has unknown {unknown}: its names must be among {sorted(usual)}")
        return {n: _merge(f"{where}[{n!r}]", part, given[n]) if n in given else part for n, part in usual.items()}
    if isinstance(usual, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(given) != len(usual):
            raise ValueError(f"{where} must be a list of {len(usual)}, one entry a kernel, found {given!r}")
        return [_merge(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(usual, given, strict=True))]
    value = checks.array(where, given, usual.dtype)
    return jnp.broadcast_to(value, usual.shape) if value.shape == () else value


def _criterion(problem: Problem, criterion: Any, y: np.ndarray, rough: bool) -> Any:
    if criterion is None:
        criterion = SmoothError() if problem.loss.labels else SquaredError()
    refuse(criterion)
    if not isinstance(criterion, Criterion):
        return criterion
    if not criterion.smooth and not rough:
        raise ValueError(
            f"criterion {type(criterion).__name__} is not smooth, its gradient says nothing: take a smooth one (each "
            "reports its hard counterpart beside it), or a search without gradients (hyperjax.methods.grid)"
        )
    for row in np.atleast_2d(y):
        objection = criterion.problem_with(row)
        if criterion.labels and not np.all(np.abs(row) == 1):
            objection = f"it judges two classes, -1 and +1, and y holds {row[np.abs(row) != 1][0]:g}"
        if objection:
            raise ValueError(f"criterion {type(criterion).__name__}: {objection}")
    return criterion


def _rows(folds: Any, y: Array, dtype: Any, groups: Any, seed: int, single: bool) -> Folds:
    """The folds, or the one of leave-one-out."""
    if not isinstance(folds, str):
        return split(folds, np.asarray(y), groups, seed)
    if folds != "loo" or not single:
        raise ValueError(f'folds={folds!r}: give a number, Folds, an array (T, n), or (in hyperjax.tune) "loo"')
    if groups is not None:
        raise ValueError('folds="loo" would divide groups: give a number of folds with groups=')
    objection = loo.objection(y.shape[-1])
    if objection is not None:
        raise ValueError(f'folds="loo": {objection}')
    return loo.everybody(y, dtype)


def split(folds: Any, y: np.ndarray, groups: Any, seed: int) -> Folds:
    """The folds meant by a number (stratified where y holds -1 and +1), a number and groups, or Folds."""
    n = y.shape[-1]
    labels = np.argmax(y, axis=0) if y.ndim == 2 else y
    if groups is not None:
        if np.ndim(folds) != 0 or isinstance(folds, Folds):
            raise ValueError("groups goes with a number of folds; these folds are made already: leave one of them out")
        out = splits.groups(groups, folds, seed)
        splits.check(out, n)
    elif np.ndim(folds) == 0 and not isinstance(folds, Folds) and not hasattr(folds, "split"):
        signs = y.ndim == 2 or bool(np.all(np.abs(y) == 1))
        out = splits.stratified(labels, folds, seed) if signs else splits.kfold(n, folds, seed)
    else:
        out = splits.as_folds(folds, None, n)
    if not np.any(np.asarray(out.test)):
        raise ValueError("folds test no row: nothing can be tuned without rows to test")
    empty = np.flatnonzero(~np.any(np.asarray(out.test) > 0, axis=1))
    if empty.size:
        raise ValueError(f"folds: fold {empty[0]} tests no row: leave the fold out")
    return out


def _ties(problem: Problem, hp: Hyperparameters) -> list[tuple[str | int, ...]]:
    """Vectors of positive hyperparameters that may first move as one: widths of features, costs of rows or groups.

    The weights of a sum of kernels may be zero and stay free: a common factor of theirs does what C does.
    """
    domains = dict(flatten(problem.domains({name: hp[name] for name in ("loss", "kernel")})))
    leaves = [(path, leaf) for path, leaf in flatten(hp) if path[0] != "criterion"]
    return [p for p, leaf in leaves if np.size(leaf) > 1 and isinstance(domains[p], Positive)]


def _stages(stages: Any, problem: Problem, hp: Hyperparameters, rows: int) -> tuple[Any, ...]:
    """What the caller asks for; by default vectors move as one first.

    Unless all of them are costs of single rows: where labels are wrong, the C that is best for all rows together is so
    large that few rows are at their bound in the end, and a row that is not says nothing of its own C.
    """
    if stages is None:
        ties, leaves = _ties(problem, hp), dict(flatten(hp))
        alone = all(path[0] == "loss" and np.size(leaves[path]) == rows for path in ties)
        return ("full",) if alone else ("isotropic", "full")
    stages = (stages,) if isinstance(stages, str) else stages
    if not isinstance(stages, (list, tuple)) or not stages:
        raise ValueError(f"stages={stages!r}: give a list such as ['isotropic', 'full']")
    for stage in stages:
        names = isinstance(stage, (list, tuple)) and len(stage) > 0
        if not (stage in ("isotropic", "full") if isinstance(stage, str) else names):
            raise ValueError(
                f"stages holds {stage!r}: a stage is 'isotropic' (vectors move as one), 'full', or a list of names"
            )
    return tuple(tuple(stage) if isinstance(stage, list) else stage for stage in stages)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
