"""Decomposition for piecewise linear losses: SMO fold by fold, then the proximal Newton iteration to the end."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..losses.piecewise import PiecewiseLinear
from ..operators import DIRECT_SIZES, Sparse
from ..problem import Inner, middle
from ..types import Array, Module, static
from .dcd import DCD
from .loop import Solver, granted, run, start_point
from .proxgrad import ProxGrad
from .smo import smo

__all__ = ["Box", "Decomposition"]

EPOCHS = 100
"""Passes of dual coordinate descent where K is factored and no border ties the coefficients together."""
SHORT, PATIENCE = 4, 4
"""Short passes of SMO that may take the place of a long one; passes without a fall of the violation by a tenth."""


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
        Where K is factored and has many rows: ProxGrad at once, in the space of the columns.  Where it is factored and
        there is no border: passes of DCD, whose cost does not grow with n.  Else
        second-order SMO, fold by fold, then one product with K brings the outputs up to date.  A pass leaves every
        coefficient on the piece it began on: with several pieces (a tube's two sides) there are many short ones.
        All samples take part in every pass: passes over the most violating ones alone find the same few support
        vectors again and again, and come to rest far from the solution where there are more of them than places.
        Once all folds are within 1e-3, or the steps of `passes` long ones are spent, those not within `tol` go on with
        ProxGrad, whose first Newton step on (F) ends the search when the faces are already right.
    Stops when
        the largest violating pair (or coordinate, without border) is within tol: then kkt <= tol; or as ProxGrad does.
    Cost per step
        O(n) a SMO step, O(T n^2) for the product.
    Guarantee
        SMO is monotone and feasible, so the bias cannot run away; ProxGrad converges from any start, K singular or not.
    """

    passes: int = static(default=16)
    """SMO steps a fold, in passes of at most four times the samples and 1,000 more; no effect where ProxGrad or DCD
    begins at once."""
    max_steps: int = static(default=1000)
    """Most Newton steps after them."""
    finish: bool = static(default=True)
    """False: a fold that SMO leaves short of `tol` stays so.  Much of what there is to compile is then missing, and few
    folds need it where `tol` is no less than 1e-3.  No effect where ProxGrad or DCD begins."""

    def supports(self, inner: Inner) -> str | None:
        """Piecewise linear losses, every operator, every bias."""
        if isinstance(inner.op, Sparse):
            return "Decomposition works on blocks of K and X is sparse; use solver=None, or pass X.toarray()"
        if not isinstance(inner.loss, PiecewiseLinear):
            return f"the loss {type(inner.loss).__name__} is not a hyperjax.losses.PiecewiseLinear"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` made feasible (or zeros); see the class."""
        if inner.op.factors() is not None and inner.op.n > DIRECT_SIZES[-1]:
            return ProxGrad(max_steps=self.max_steps).solve(inner, init, tol)
        if not inner.border and inner.op.factors() is not None:
            return self._finish(inner, *DCD(max_steps=EPOCHS).solve(inner, init, jnp.maximum(tol, 1e-3)), tol)
        longest = 4 * inner.op.n + 1000
        levels, K = _levels(inner), inner.op.whole()
        z, _ = start_point(inner, init)
        z = _project(z, levels[0], levels[-1], inner.border)

        def step(state: Any, active: Array):
            z, f, left = _smo_pass(inner, K, levels, state, active, coarse, longest)
            b, worst = _violations(inner, z, f)
            return (z, f, left), z, b, worst

        f = inner.op.matmul(z)
        b, worst = _violations(inner, z, f)
        coarse = jnp.maximum(tol, 1e-3)
        left = jnp.full_like(b, self.passes * longest, jnp.int32)
        most = SHORT * self.passes
        point, stats = run(step, (z, f, left), inner, coarse, most, PATIENCE, first=(z, b, worst))

        return self._finish(inner, point, stats, tol) if self.finish else (point, {"iterations": stats["iterations"]})

    def _finish(self, inner: Inner, point: tuple[Array, Array], stats: dict[str, Array], tol: Array):
        """The point itself, or ProxGrad's from there where some fold is not within its tolerance."""

        def more():
            end, further = ProxGrad(max_steps=self.max_steps).solve(inner, point, tol)
            return end, stats["iterations"] + further["iterations"]

        unfinished = jnp.any(stats["violation"] > granted(inner, *point, tol, stats["violation"]))
        point, iterations = lax.cond(unfinished, more, lambda: (point, stats["iterations"]))
        return point, {"iterations": iterations}


def _levels(inner: Inner) -> list[Array]:
    """Breakpoints of the dual in ascending order: z = -s * slope, from the steepest piece to the flattest."""
    return [-inner.s * slope for slope in reversed(inner.pieces().slopes)]


def _boxes(inner: Inner, levels: list[Array], z: Array, o: Array) -> Box:
    """The piece every coefficient is on; at a breakpoint the one on the side it would leave first."""
    targets = list(reversed(inner.pieces().kinks))
    box = Box(levels[0], levels[1], targets[0])
    for j in range(1, len(targets)):
        above = (z > levels[j]) | ((z == levels[j]) & (o < 0.5 * (targets[j] + targets[j - 1])))
        upper = Box(levels[j], levels[j + 1], targets[j])
        box = jax.tree.map(lambda new, old, up=above: jnp.where(up, new, old), upper, box)
    return box


def _violations(inner: Inner, z: Array, f: Array) -> tuple[Array, Array]:
    """The bias (T,) and the worst violation (T,), in output units."""
    low, high = inner.interval(z)
    up, down = low - f, high - f
    if inner.border:
        lo, hi = jnp.max(up, axis=1), jnp.min(down, axis=1)
        b = middle(lo, hi)
        worst = jnp.maximum(jnp.where(jnp.isfinite(lo) & jnp.isfinite(hi), lo - hi, 0.0), 0.0)
    else:
        b = jnp.zeros_like(f[:, 0])
        worst = jnp.maximum(jnp.maximum(jnp.max(up, axis=1), -jnp.min(down, axis=1)), 0.0)
    return b, worst


def _smo_pass(
    inner: Inner,
    K: Array,
    levels: list[Array],
    state: tuple[Array, Array, Array],
    active: Array,
    tol: Array,
    longest: int,
) -> tuple[Array, Array, Array]:
    """Optimise the active folds with at most `longest` steps; z, f and the steps left (T,) afterwards."""
    z, f, left = state
    b, worst = _violations(inner, z, f)
    box = _boxes(inner, levels, z, f + b[:, None])
    goal = jnp.where(active & (worst > tol), jnp.maximum(0.5 * tol, 0.002 * worst), jnp.inf)

    def fold(x: tuple[Array, ...]) -> tuple[Array, Array]:
        z, pull, low, high, goal, steps = x
        return smo(K, z, pull, low, high, goal, steps, inner.border)

    steps = jnp.minimum(left, longest)
    moved, taken = lax.map(fold, (z, box.target - f - b[:, None], box.low, box.high, goal, steps))
    return moved, lax.cond(jnp.any(taken > 0), lambda: inner.op.matmul(moved), lambda: f), left - taken


def _project(v: Array, low: Array, high: Array, border: bool) -> Array:
    """Onto the boxes low <= z <= high and, with a border, the plane sum z = 0 (by bisection on the multiplier)."""
    clipped = jnp.clip(v, low, high)
    if not border:
        return clipped
    left = jnp.min(jnp.where(high > low, v - high, 0.0), axis=1)
    right = jnp.max(jnp.where(high > low, v - low, 0.0), axis=1)

    def body(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
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
