"""Decomposition for piecewise linear losses: SMO on a shared working set, Newton on the faces."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..losses.piecewise import PiecewiseLinear
from ..operators import bordered_solve
from ..problem import Inner, middle
from ..types import Array, Module, static
from .loop import Solver, run, start_point
from .smo import smo

__all__ = ["Box", "Decomposition"]


class Box(Module):
    """The piece of the dual each coefficient is on: low <= z <= high, where its output is tied to `target`."""

    low: Array
    high: Array
    target: Array


class Decomposition(Solver):
    """A feasible dual method for losses made of straight pieces, every fold at once.

    Problem
        The dual of one sample is piecewise linear in z_i with domain [-s sup phi', -s inf phi'] and one breakpoint a
        slope of phi.  Around the current point each z_i keeps to one piece, a box with an output as its target, and
        the problem is  min 1/2 z'Kz - target'z  over boxes (and sum z = 0).
    Iteration
        The coordinates with the largest violations, shared by the folds, are gathered and optimised by second-order
        SMO; one product with their rows of K brings all outputs up to date.  When that slows down, (B) on the samples
        the sign of the gradient leaves free gives a face Newton direction, projected to boxes and plane for several
        lengths, with the exact best point of each segment: never an increase.
    Stops when
        the largest violating pair (or coordinate, without border) is within tol: then kkt <= tol.
    Cost per step
        a q x q gather, the inner steps on q coordinates, a (T, q) x (q, n) product; with Newton a bordered solve and
        one product of 6 T rows with K.
    Guarantee
        Monotone and feasible: the bias cannot run away.  SMO alone converges; Newton only accelerates it.
    """

    max_steps: int = static(default=300)
    working_set: int = static(default=0)
    """Coordinates of a pass; 0 chooses by n."""

    def supports(self, inner: Inner) -> str | None:
        """Piecewise linear losses, every operator, every bias."""
        if not isinstance(inner.loss, PiecewiseLinear):
            return f"the loss {type(inner.loss).__name__} is not a hyperjax.losses.PiecewiseLinear"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` made feasible (or zeros); see the class."""
        n = inner.op.n
        size = min(n, self.working_set or max(512, min(2048, n // 4)))
        levels = _levels(inner)
        z, _ = start_point(inner, init)
        z = _project(z, levels[0], levels[-1], inner.border)
        f = inner.op.matmul(z)

        def step(state: Any, active: Array):
            z, f, previous, it = state
            b, worst, score = _violations(inner, z, f)
            box = _boxes(inner, levels, z, f + b[:, None])
            busy = active & (worst > tol)
            z1, f1 = _smo_pass(inner, box, z, f, score, worst, busy, tol, size)
            slow = jnp.any(busy & (worst > 0.3 * previous)) & (it >= 2)
            b1, worst1, _ = lax.cond(slow, lambda: _violations(inner, z1, f1), lambda: (b, worst, score))
            z2, f2 = lax.cond(
                slow, lambda: _face_newton(inner, levels, z1, f1, b1, worst1, active & (worst1 > tol)), lambda: (z1, f1)
            )
            b2, worst2, _ = _violations(inner, z2, f2)
            return (z2, f2, worst, it + 1), z2, b2, worst2

        far = jnp.full_like(z[:, 0], jnp.inf)
        return run(step, (z, f, far, jnp.zeros((), jnp.int32)), inner, tol, self.max_steps, patience=30)


def _levels(inner: Inner) -> list[Array]:
    """Breakpoints of the dual in ascending order: z = -s * slope, from the steepest piece to the flattest."""
    _, slopes = inner.loss.kinks_and_slopes(inner.y, inner.hp)
    return [-inner.s * slope[None, :] for slope in reversed(slopes)]


def _boxes(inner: Inner, levels: list[Array], z: Array, o: Array) -> Box:
    """The piece every coefficient is on; at a breakpoint the one on the side it would leave first."""
    kinks, _ = inner.loss.kinks_and_slopes(inner.y, inner.hp)
    targets = [jnp.broadcast_to(k[None, :], z.shape) for k in reversed(kinks)]
    box = Box(levels[0], levels[1], targets[0])
    for j in range(1, len(targets)):
        above = (z > levels[j]) | ((z == levels[j]) & (o < 0.5 * (targets[j] + targets[j - 1])))
        box = jax.tree.map(lambda new, old, up=above: jnp.where(up, new, old), Box(levels[j], levels[j + 1], targets[j]), box)
    return box


def _violations(inner: Inner, z: Array, f: Array) -> tuple[Array, Array, Array]:
    """The bias (T,), the worst violation (T,) and each sample's own (T, n), in output units."""
    low, high = inner.interval(z)
    up, down = low - f, high - f
    if inner.border:
        lo, hi = jnp.max(up, axis=1), jnp.min(down, axis=1)
        b = middle(lo, hi)
        worst = jnp.maximum(jnp.where(jnp.isfinite(lo) & jnp.isfinite(hi), lo - hi, 0.0), 0.0)
    else:
        b = jnp.zeros_like(f[:, 0])
        worst = jnp.maximum(jnp.maximum(jnp.max(up, axis=1), -jnp.min(down, axis=1)), 0.0)
    own = jnp.maximum(jnp.maximum(up - b[:, None], b[:, None] - down), 0.0)
    return b, worst, own


def _smo_pass(
    inner: Inner, box: Box, z: Array, f: Array, score: Array, worst: Array, busy: Array, tol: Array, size: int
) -> tuple[Array, Array]:
    """Optimise the `size` most violating coordinates (each fold relative to its own worst) and update f."""
    interior = (z > box.low) & (z < box.high)
    share = (score + jnp.where(interior, 1e-3 * worst[:, None], 0.0)) / jnp.maximum(worst, tol)[:, None]
    share = jnp.where(busy[:, None], share, 0.0)
    if size < inner.op.n:
        index = lax.top_k(jnp.max(share, axis=0).astype(jnp.float32), size)[1]
    else:
        index = jnp.arange(size)
    part = jax.tree.map(lambda a: a[:, index], box)
    Kww = inner.op.block(index)
    goal = jnp.where(busy, jnp.maximum(0.5 * tol, 0.1 * worst), jnp.inf)
    moved = smo(Kww, z[:, index], part.target - f[:, index], part.low, part.high, goal, 20 * size, inner.border)
    change = moved - z[:, index]
    return z.at[:, index].set(moved), f + change @ inner.op.rows(index)


LENGTHS = (1.0, 0.5, 0.2, 0.05, 0.01)


def _face_newton(
    inner: Inner, levels: list[Array], z: Array, f: Array, b: Array, worst: Array, active: Array
) -> tuple[Array, Array]:
    """One Newton step on the face the gradient leaves free, projected; the best of several segments."""
    box = _boxes(inner, levels, z, f + b[:, None])
    pull = box.target - f - b[:, None]
    inside = (z > box.low) & (z < box.high)
    entering = ((z == box.low) & (pull > 0)) | ((z == box.high) & (pull < 0))
    count = jnp.sum(inside, axis=1)
    room = count // 3 + 64
    order = jnp.where(entering & (box.high > box.low), jnp.abs(pull), 0.0)
    keep = _largest(order, room)
    free = (inside | keep) & active[:, None]
    free = free & (box.high > box.low)
    P = jnp.where(free, 0.0, 1.0).astype(z.dtype)
    dz, _ = bordered_solve(
        inner.op, P, jnp.ones_like(z), jnp.where(free, pull, 0.0), jnp.zeros_like(b), inner.border, False
    )
    dz = jnp.where(free & jnp.isfinite(dz), dz, 0.0)
    low, high = jnp.where(free, box.low, z), jnp.where(free, box.high, z)
    trial = jnp.stack([_project(z + a * dz, low, high, inner.border) for a in LENGTHS])
    step = trial - z[None]
    Kstep = inner.op.matmul(step.reshape(-1, z.shape[1])).reshape(step.shape)
    slope = jnp.sum(step * (f - box.target)[None], axis=2)
    bend = jnp.sum(step * Kstep, axis=2)
    length = jnp.where(slope < 0, jnp.where(bend > 0, jnp.minimum(-slope / jnp.where(bend > 0, bend, 1.0), 1.0), 1.0), 0.0)
    gain = length * slope + 0.5 * length * length * bend
    best = jnp.argmin(gain, axis=0)
    fold = jnp.arange(z.shape[0])
    use = jnp.where(active & (gain[best, fold] < 0), length[best, fold], 0.0)[:, None]
    chosen = step[best, fold]
    new = jnp.where(use >= 1.0, trial[best, fold], z + use * chosen)
    return jnp.clip(new, low, high), f + use * Kstep[best, fold]


def _largest(score: Array, count: Array) -> Array:
    """A mask of (about) the `count` largest positive entries of every row."""
    low, high = jnp.zeros_like(score[:, 0]), jnp.max(score, axis=1)

    def body(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        mid = 0.5 * (low + high)
        many = jnp.sum(score > mid[:, None], axis=1) > count
        return jnp.where(many, mid, low), jnp.where(many, high, mid)

    low, high = lax.fori_loop(0, 20, body, (low, high))
    few = jnp.sum(score > 0, axis=1) <= count
    return (score > jnp.where(few, 0.0, high)[:, None]) & (score > 0)


def _project(v: Array, low: Array, high: Array, border: bool) -> Array:
    """Onto the boxes low <= z <= high and, with a border, the plane sum z = 0 (by bisection on the multiplier)."""
    if not border:
        return jnp.clip(v, low, high)
    left = jnp.min(jnp.where(high > low, v - high, 0.0), axis=1)
    right = jnp.max(jnp.where(high > low, v - low, 0.0), axis=1)

    def body(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        left, right = ends
        mid = 0.5 * (left + right)
        much = jnp.sum(jnp.clip(v - mid[:, None], low, high), axis=1) > 0
        return jnp.where(much, mid, left), jnp.where(much, right, mid)

    left, right = lax.fori_loop(0, 60 if v.dtype == jnp.float64 else 30, body, (left, right))
    z = jnp.clip(v - (0.5 * (left + right))[:, None], low, high)
    # what bisection leaves of sum z goes to the interior, so that no coefficient leaves its bound
    inside = (z > low) & (z < high)
    number = jnp.maximum(jnp.sum(inside, axis=1), 1).astype(z.dtype)
    return jnp.clip(z - jnp.where(inside, (jnp.sum(z, axis=1) / number)[:, None], 0.0), low, high)
