"""The objective at a kink: one-sided derivatives, and the least element of its Clarke subdifferential.

Problem
    A sample whose v_i = o_i - t_i z_i lies on a breakpoint of its prox may turn to either side when the hyperparameters
    move.  Every assignment sigma of these samples to sides gives a gradient g_sigma: the rule of implicit.py with v_i
    put on the side sigma_i.  Folds share nothing but the hyperparameters, so their assignments add up:

        subdifferential = g_0 + sum over folds t of  conv {g_sigma - g_0 : sigma moves samples of fold t only}

    which contains Clarke's, and is Clarke's where the kinks of different samples cross.
Derivative
    Along a direction exactly one assignment agrees with itself: where the prox bends upwards at the breakpoint the
    output follows the larger of its two slopes' predictions, else the smaller.  It is found by principal pivoting:
    in every fold the first sample that disagrees changes its side.
Source
    Clarke, Optimization and Nonsmooth Analysis (1983), 2.5; Scholtes, Introduction to Piecewise Differentiable
    Equations (2012), chapter 4; Murty, the least-index rule for linear complementarity (1974); Wolfe (1976) for the
    nearest point; Burke, Lewis & Overton (2005) for gradients from a neighbourhood in a search.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from .compiling import compiled
from .faces import breakpoints
from .implicit import attach
from .losses.piecewise import Piecewise
from .minimum_norm import minimum_norm
from .objective import Task
from .problem import Inner
from .prox import has_kinks
from .types import Array

__all__ = ["Samples", "bends", "directional", "gradients", "least", "least_gradient", "nearest"]

MOST = 31
"""Assignments looked at beside the present one: 2^m - 1 for m samples of one fold at their kinks."""
WIDTH = 1e-3
"""A search counts samples as on their kinks from this distance on, in output units ..."""
NARROWEST = 1e-5
"""... and down to this one, where a wider choice leaves next to nothing of the gradient."""
LEFT_OF_IT = 0.1
"""Next to nothing: below this part of the gradient of one side."""


class Samples(NamedTuple):
    """Samples at their kinks, the nearest first."""

    fold: np.ndarray
    row: np.ndarray
    distance: np.ndarray
    side: np.ndarray
    """-1 below the breakpoint, 1 above."""
    beyond: int
    """How many more there are than MOST assignments can tell apart."""


def bends(loss: Any) -> bool:
    """Whether a loss has pieces, so that the objective may have kinks: those of a slope, as SquaredHinge, count."""
    smooth = not has_kinks(loss) if loss.smooth is None else loss.smooth
    return not smooth or isinstance(loss, Piecewise)


def _inner(task: Task, hp: Any) -> tuple[Inner, Any]:
    fitted = {name: part for name, part in hp.items() if name != "criterion"}
    y, s = task.batch()
    return task.problem.inner(fitted, task.X, y, s), fitted


def _settled(task: Task, inner: Inner, solution: Any) -> tuple[Array, Array, Array]:
    """(z, b, o) of a solution (z, b), constants."""
    z, b = solution
    b = b if task.problem.bias is True else jnp.zeros_like(b)
    return lax.stop_gradient((z, b, inner.outputs(z, b)))


def _on_sides(inner: Inner, z: Array, b: Array, o: Array, sides: Array) -> tuple[tuple[Array, Array, Array], Array]:
    """((z, b, o) attached with the samples of `sides` put below (-1) or above (1) their breakpoints, their v)."""
    fixed = lax.stop_gradient(inner)
    t = fixed.steps()
    v, (_, low, high) = o - t * z, breakpoints(fixed, z, o, t)
    # through z, not o: whether anybody is free is read from z
    put = jnp.where(sides < 0, jnp.minimum(v, low), jnp.where(sides > 0, jnp.maximum(v, high), v))
    moved = lax.stop_gradient((o - put) / t)
    z_new, b, o = attach(jnp.where(sides == 0, z, moved), b, o, inner)
    return (z_new, b, o), lax.stop_gradient(put)


def _value(task: Task, hp: Any, solution: Any, sides: Array) -> tuple[Array, tuple[Array, Array]]:
    """The criterion at one assignment, and (z, o)."""
    inner, fitted = _inner(task, hp)
    (z, _, o), _ = _on_sides(inner, *_settled(task, lax.stop_gradient(inner), solution), sides)
    solved = jnp.zeros((z.shape[0],), jnp.int32)
    value = task.score(task.judged(fitted, inner.y, inner.s, z, o, solved), hp)
    assert value is not None
    return value, (z, o)


def _nearest(task: Task, hp: Any, solution: Any) -> tuple[Array, Array]:
    inner, _ = _inner(task, hp)
    z, _, o = _settled(task, inner, solution)
    t = inner.steps()
    distance, low, high = breakpoints(inner, z, o, t)
    return distance, jnp.where(o - t * z <= 0.5 * (low + high), -1, 1)


def _nearest_at(task: Task, theta: Array, solution: Any) -> tuple[Array, Array]:
    return _nearest(task, task.coords.build(theta), solution)


def _gradients(task: Task, at: Any, solution: Any, fold: Array, row: Array, sides: Array, count: Array) -> Array:
    """The gradients (R, k) of the first `count` assignments `sides` (R, m) of the samples (fold, row)."""
    flat, unravel = (at, task.coords.build) if isinstance(at, jax.Array) else ravel_pytree(at)
    nobody = jnp.zeros((task.classes * task.folds.n_folds, task.X.shape[0]), sides.dtype)

    def value(flat: Array, chosen: Array) -> Array:
        placed = nobody.at[fold, row].set(chosen, mode="drop")
        return _value(task, unravel(flat), solution, placed)[0]

    def step(r: Array, out: Array) -> Array:
        return out.at[r].set(jax.grad(value)(flat, sides[r]))

    return lax.fori_loop(0, count, step, jnp.zeros((sides.shape[0], flat.shape[0]), flat.dtype))


def _along(task: Task, hp: Any, moved: Any, solution: Any, sides: Array) -> tuple[Array, Array]:
    """(slope along `moved`, which samples of `sides` disagree with theirs)."""
    value, slope, (dz, do) = _push(lambda hp: _value(task, hp, solution, sides), hp, moved)
    inner, _ = _inner(task, hp)
    z, _, o = _settled(task, inner, solution)
    t = inner.steps()
    dv = do - t * dz
    _, low, high = breakpoints(inner, z, o, t)

    def predicted(v: Array) -> tuple[Array, Array]:
        def prox(v: Array, hp: Any) -> Array:
            return _inner(task, hp)[0].prox(v, t)

        none = jax.tree.map(jnp.zeros_like, hp)
        bend = jax.jvp(prox, (v, hp), (jnp.ones_like(v), none))[1]
        return bend, jax.jvp(prox, (v, hp), (dv, moved))[1]

    (P_low, o_low), (P_high, o_high) = predicted(low), predicted(high)
    larger = jnp.where(o_high >= o_low, 1, -1)
    right = jnp.where(P_high > P_low, larger, -larger)
    even = jnp.abs(o_high - o_low) <= 1e-9 * (jnp.abs(o_high) + jnp.abs(o_low) + jnp.max(jnp.abs(do)))
    return slope, (sides != 0) & (right != sides) & ~even


def _push(function: Any, hp: Any, moved: Any) -> tuple[Array, Array, Any]:
    (value, _), (slope, change) = jax.jvp(function, (hp,), (moved,))
    return value, slope, change


def nearest(task: Task, at: Any, solution: Any, width: float, compilation: str = "full") -> Samples:
    """The samples of a solution within `width` of their kinks, the nearest as far as MOST assignments reach.

    `at` is theta, or a tree of hyperparameters.
    """
    program = _nearest_at if isinstance(at, jax.Array) else _nearest
    distance, side = map(np.asarray, compiled(program, compilation)(task, at, solution))
    found = np.argwhere(distance <= width)
    found = found[np.argsort(distance[tuple(found.T)], kind="stable")]
    counts = np.zeros(len(distance), int)
    kept = []
    for fold, row in found:
        counts[fold] += 1
        if np.sum(2**counts - 1) > MOST:
            counts[fold] -= 1
            break
        kept.append((fold, row))
    fold, row = np.asarray(kept, int).reshape(-1, 2).T
    return Samples(fold, row, distance[fold, row], side[fold, row], len(found) - len(kept))


def assignments(samples: Samples) -> np.ndarray:
    """Sides (R, m): the present ones, then fold by fold every other one of its samples, the rest as they are."""
    out = [samples.side]
    for fold in np.unique(samples.fold):
        own = np.flatnonzero(samples.fold == fold)
        for number in range(1, 2 ** len(own)):
            turned = own[(number >> np.arange(len(own))) & 1 == 1]
            out.append(np.where(np.isin(np.arange(len(samples.row)), turned), -samples.side, samples.side))
    return np.asarray(out)


def gradients(task: Task, at: Any, solution: Any, samples: Samples, compilation: str = "full") -> np.ndarray:
    """The criterion's gradient at every one of the `assignments`, (R, k); one program whatever their number."""
    sides = assignments(samples)
    padded = np.zeros((MOST + 1, MOST), np.int32)
    padded[: len(sides), : sides.shape[1]] = sides
    # rows past the end are dropped
    places = np.full((2, MOST), task.X.shape[0], np.int32)
    places[0] = 0
    places[:, : sides.shape[1]] = samples.fold, samples.row
    program = compiled(_gradients, compilation)
    found = program(task, at, solution, *map(jnp.asarray, (*places, padded)), jnp.asarray(len(sides), jnp.int32))
    return np.asarray(found, float)[: len(sides)]


def least(samples: Samples, found: np.ndarray, width: float, normals: Any = ()) -> np.ndarray:
    """The element of least norm of what the samples within `width` span, and of the cone of `normals` (j, k) with it.

    `found` are the `gradients` of all samples; the normals' own part is left out of the answer.
    """
    sides = assignments(samples)
    turned = sides != sides[0]
    used = turned.any(axis=1) & ~(turned & (samples.distance > width)).any(axis=1)
    columns = (found[used] - found[0]).T
    blocks = [samples.fold[np.argmax(row)] for row in turned[used]]
    cone = np.asarray(normals, float).reshape(-1, found.shape[1])
    if not columns.size:
        return found[0]
    p, _ = minimum_norm(found[0], np.hstack([columns, cone.T]), np.asarray([*blocks, *[-1] * len(cone)]))
    return found[0] + columns @ p[: columns.shape[1]]


def least_gradient(
    task: Task, theta: Array, solution: Any, gradient: np.ndarray, compilation: str = "full"
) -> np.ndarray:
    """What a search follows at theta in the place of its gradient.

    The element of least norm over the samples within WIDTH of their kinks; where it is next to nothing beside the
    gradient, over those within a tenth of that, and so on down to NARROWEST: far from a kink the way leads to it,
    on it along it.
    """
    samples = nearest(task, theta, solution, WIDTH, compilation)
    if not len(samples.row):
        return gradient
    found = gradients(task, theta, solution, samples, compilation)
    found = found + (gradient - found[0])  # the prior, and what rounding leaves between both programs
    at, low, high = (np.asarray(part, float) for part in (theta, task.coords.low, task.coords.high))
    # the search projects on the bounds: what they hold back counts for nothing
    normals = [(float(at[i] >= high[i]) - float(at[i] <= low[i])) * np.eye(len(at))[i] for i in range(len(at))]
    normals = [normal for normal in normals if normal.any()]
    width = WIDTH

    def size(g: np.ndarray) -> float:
        return float(np.linalg.norm(np.where(((at <= low) & (g > 0)) | ((at >= high) & (g < 0)), 0.0, g)))

    while True:
        best = least(samples, found, width, normals)
        if size(best) > LEFT_OF_IT * size(gradient) or width <= NARROWEST:
            return best
        width /= 10.0


def directional(task: Task, hp: Any, moved: Any, solution: Any, samples: Samples) -> float:
    """The one-sided slope of the criterion along `moved`; a RuntimeError where no assignment agrees with itself."""
    sides = np.zeros((task.classes * task.folds.n_folds, task.X.shape[0]), np.int32)
    sides[samples.fold, samples.row] = samples.side
    program = compiled(_along)
    for _ in range(8 * len(samples.row) + 8):
        slope, wrong = program(task, hp, moved, solution, jnp.asarray(sides))
        wrong = np.asarray(wrong)
        if not wrong.any():
            return float(slope)
        for fold in np.flatnonzero(wrong.any(axis=1)):
            sides[fold, np.argmax(wrong[fold])] *= -1
    raise RuntimeError(
        f"{len(samples.row)} samples at their kinks, and no choice of sides agrees with itself along this direction: "
        "duplicate rows or a singular kernel matrix; remove duplicates, or move hp by a little"
    )
