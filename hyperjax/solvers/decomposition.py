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
    """A feasible dual method for losses made of straight pieces.

    Problem
        The dual of one sample is piecewise linear in z_i with domain [-s sup phi', -s inf phi'] and one breakpoint a
        slope of phi.  Around the current point each z_i keeps to one piece, a box with an output as its target, and
        the problem is  min 1/2 z'Kz - target'z  over boxes (and sum z = 0).
    Iteration
        Second-order SMO, fold by fold, on all samples where K is stored (on each fold's most violating ones where it
        is factored or n is large), then one product with K brings the outputs up to date.  Where that ends far from
        `tol`, (B) on the samples the sign of the gradient leaves free gives a face Newton direction, projected to
        boxes and plane for several lengths, with the exact best point of each segment: never an increase.
    Stops when
        the largest violating pair (or coordinate, without border) is within tol: then kkt <= tol.
    Cost per step
        O(q) a SMO step on q samples, O(T n^2) for the product; with Newton a bordered solve and a product of 5 T rows.
    Guarantee
        Monotone and feasible: the bias cannot run away.  SMO alone converges; Newton only accelerates it.
    """

    max_steps: int = static(default=300)
    working_set: int = static(default=0)
    """Samples of an SMO pass; 0 chooses: all of them up to 16,384 with K stored, else 1,024."""

    def supports(self, inner: Inner) -> str | None:
        """Piecewise linear losses, every operator, every bias."""
        if not isinstance(inner.loss, PiecewiseLinear):
            return f"the loss {type(inner.loss).__name__} is not a hyperjax.losses.PiecewiseLinear"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` made feasible (or zeros); see the class."""
        n = inner.op.n
        stored = inner.op.factors() is None
        size = min(n, self.working_set or (n if n <= (16384 if stored else 2048) else 1024))
        levels = _levels(inner)
        z, _ = start_point(inner, init)
        z = _project(z, levels[0], levels[-1], inner.border)

        def step(state: Any, active: Array):
            z, f, far = state
            z, f = lax.cond(jnp.any(far), lambda: _face_newton(inner, levels, z, f, far), lambda: (z, f))
            z, f = _smo_pass(inner, levels, z, f, active, tol, size)
            b, worst, _ = _violations(inner, z, f)
            return (z, f, worst > 10.0 * tol), z, b, worst

        warm = jnp.full_like(z[:, 0], init is not None, dtype=bool)
        return run(step, (z, inner.op.matmul(z), warm), inner, tol, self.max_steps, patience=30)


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
        upper = Box(levels[j], levels[j + 1], targets[j])
        box = jax.tree.map(lambda new, old, up=above: jnp.where(up, new, old), upper, box)
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
    inner: Inner, levels: list[Array], z: Array, f: Array, active: Array, tol: Array, size: int
) -> tuple[Array, Array]:
    """Optimise each fold's `size` most violating (then free) samples and bring f up to date."""
    b, worst, own = _violations(inner, z, f)
    box = _boxes(inner, levels, z, f + b[:, None])
    interior = (z > box.low) & (z < box.high)
    score = own + jnp.where(interior, 1e-3 * worst[:, None], 0.0)
    everything = size == inner.op.n
    goal = jnp.maximum(0.5 * tol, (0.002 if everything else 0.1) * worst)
    goal = jnp.where(active & (worst > tol), goal, jnp.inf)
    K = inner.op.whole() if everything else None

    def fold(x: tuple[Array, ...]) -> Array:
        score, z, pull, low, high, goal = x
        if K is not None:
            return smo(K, z, pull, low, high, goal, 4 * size + 1000, inner.border)
        index = lax.top_k(score.astype(jnp.float32), size)[1]
        block = inner.op.block(index)
        part = smo(block, z[index], pull[index], low[index], high[index], goal, 4 * size, inner.border)
        return z.at[index].set(part)

    moved = lax.map(fold, (score, z, box.target - f - b[:, None], box.low, box.high, goal))
    return moved, inner.op.matmul(moved)


LENGTHS = (1.0, 0.5, 0.2, 0.05, 0.01)


def _face_newton(
    inner: Inner, levels: list[Array], z: Array, f: Array, active: Array
) -> tuple[Array, Array]:
    """One Newton step on the face the gradient leaves free, projected; the best of several segments."""
    b, _, _ = _violations(inner, z, f)
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
    slope = -jnp.sum(step * pull[None], axis=2)
    bend = jnp.sum(step * Kstep, axis=2)
    length = jnp.where(bend > 0, jnp.minimum(-slope / jnp.where(bend > 0, bend, 1.0), 1.0), 1.0)
    length = jnp.where(slope < 0, length, 0.0)
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
    clipped = jnp.clip(v, low, high)
    if not border:
        return clipped
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
    z = jnp.clip(z - jnp.where(inside, (jnp.sum(z, axis=1) / number)[:, None], 0.0), low, high)
    # a point that was feasible stays as it is: a shift of rounding size would lift coefficients off their bounds
    feasible = jnp.abs(jnp.sum(clipped, axis=1)) <= 8.0 * jnp.finfo(v.dtype).eps * jnp.sum(jnp.abs(clipped), axis=1)
    return jnp.where(feasible[:, None], clipped, z)
