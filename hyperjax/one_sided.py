"""A cross-validation criterion at a kink: its slope to one side, and everything that could be called its gradient."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from . import checks, kinks
from .criteria.base import Criterion
from .folds import as_folds
from .objective import Task
from .problem import Problem
from .solve import cross_solve
from .types import Hyperparameters

__all__ = ["Subdifferential", "directional_derivative", "subdifferential"]

NEAR = 1e-6
"""In output units: rows this close to their kinks are on them, by default."""


@dataclasses.dataclass(frozen=True)
class Subdifferential:
    """The gradients of all sides at a point, and the shortest vector between them."""

    gradient: Hyperparameters
    """That of the side the solution is on: what jax.grad gives."""
    least: Hyperparameters
    """The element of least norm; minus it is the direction of steepest descent, and 0 says: stationary."""
    norm: float
    """Its norm, in the natural units of the hyperparameters."""
    rows: tuple[tuple[int, int], ...]
    """(fold, row) of every sample on its kink."""
    distances: np.ndarray
    """How far each of them is from it, in output units."""
    sides: np.ndarray
    """The assignments (R, m): -1 below the kink, 1 above; the first is the present one."""
    gradients: np.ndarray
    """Their gradients (R, k), a column a number in hp, in the order of jax.tree.leaves."""
    beyond: int
    """Samples on their kinks that were left where they are, being too many."""

    def __str__(self) -> str:
        if not self.rows:
            return "no sample is on a kink: the gradient is the only element"
        flat = np.asarray(ravel_pytree(self.gradient)[0])
        lines = [f"{len(self.rows)} samples on their kinks, {len(self.sides)} gradients"]
        lines += [f"  fold {f}, row {r}: {d:.1e} away" for (f, r), d in zip(self.rows, self.distances, strict=True)]
        lines.append(f"norm of the present gradient {np.linalg.norm(flat):.4g}, least norm {self.norm:.4g}")
        if self.beyond:
            lines.append(f"{self.beyond} more samples were left where they are")
        return "\n".join(lines)


def subdifferential(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    weights: Any = None,
    init: Any = None,
    solver: Any = None,
    tol: Any = None,
    width: float = NEAR,
) -> Subdifferential:
    """The gradients of criterion(held-out outputs, y) on all sides of a kink, and their element of least norm.

    A row within `width` of a kink of its loss, in output units, may be on either side of it.  m such rows in a fold
    have 2^m assignments; every one is differentiated as long as the assignments of all folds are no more than 31 beside
    the present one, the nearest rows first, and rows beyond that stay where they are.  Folds add up: the element of
    least norm is sought in the sum over folds of the convex hulls, which is no smaller than Clarke's subdifferential.
    """
    task, hp, solution = _prepare(problem, hp, X, y, folds, criterion, weights, init, solver, tol)
    samples = kinks.nearest(task, hp, solution, _width(width))
    flat, unravel = ravel_pytree(hp)
    sides, found = kinks.assignments(samples), kinks.gradients(task, hp, solution, samples)
    best = kinks.least(samples, found, np.inf)
    rows = tuple((int(fold), int(row)) for fold, row in zip(samples.fold, samples.row, strict=True))

    def tree(vector: np.ndarray) -> Hyperparameters:
        return unravel(jnp.asarray(vector, flat.dtype))

    norm = float(np.linalg.norm(best))
    return Subdifferential(tree(found[0]), tree(best), norm, rows, samples.distance, sides, found, samples.beyond)


def directional_derivative(
    problem: Problem,
    hp: Hyperparameters,
    direction: Hyperparameters,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    weights: Any = None,
    init: Any = None,
    solver: Any = None,
    tol: Any = None,
    width: float = NEAR,
) -> float:
    """lim (V(hp + h direction) - V(hp)) / h as h > 0 goes to 0, V the criterion of the held-out outputs.

    `direction` is a tree like hp.  Away from kinks this is the gradient times the direction; where rows are within
    `width` of kinks of their loss (output units) every one of them is put on the side the direction leads to.  The
    slope on the other side is -directional_derivative(.., -direction, ..).
    """
    task, hp, solution = _prepare(problem, hp, X, y, folds, criterion, weights, init, solver, tol)
    if jax.tree.structure(direction) != jax.tree.structure(hp):
        raise ValueError(f"direction must be a tree like hp, {jax.tree.structure(hp)}, found {direction!r}")
    moved = jax.tree.map(lambda d, v: jnp.broadcast_to(jnp.asarray(d, v.dtype), v.shape), direction, hp)
    samples = kinks.nearest(task, hp, solution, _width(width))
    return kinks.directional(task, hp, moved, solution, samples)


def _width(width: Any) -> float:
    if isinstance(width, bool) or not isinstance(width, (int, float, np.number)) or not 0 <= float(width) < np.inf:
        raise ValueError(f"width={width!r}: give a distance in output units, such as 1e-6")
    return float(width)


def _prepare(
    problem: Problem,
    hp: Any,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    weights: Any,
    init: Any,
    solver: Any,
    tol: Any,
) -> tuple[Task, Any, Any]:
    """The task without coordinates, complete hyperparameters, and the folds' solution."""
    checks.known("rows at their kinks are chosen on the host; call it", hp=hp, X=X, y=y, weights=weights, folds=folds)
    folds = as_folds(folds, y, checks.n_rows(X))
    own = {"criterion": jax.tree.map(jnp.asarray, hp["criterion"])} if "criterion" in hp else {}
    solved = cross_solve(problem, hp, X, y, folds, weights, init, solver, tol).raise_if_failed()
    X, y, hp, weights = checks.inputs(problem, hp, X, y, weights, folds=folds)
    tree, function = (criterion, None) if isinstance(criterion, Criterion) else (None, criterion)
    nothing: Any = None
    task = Task(
        problem, tree, X, y, folds, weights, nothing, jnp.zeros((0,)), jnp.zeros(()), jnp.zeros((0,)), solver, function
    )  # fmt: skip
    return task, {**hp, **own}, (solved.z, solved.b)
