"""Primal semismooth Newton for differentiable losses."""

import jax.numpy as jnp
from jax import lax

from ..operators import bordered_solve
from ..problem import Inner
from ..types import Array, static
from .loop import Solver, run, start_point

__all__ = ["Newton", "line_length", "smooth_violation"]


class Newton(Solver):
    """Semismooth Newton in (f, b), every fold at once.

    Iteration
        (B) with the curvatures h = s phi''(o) at the current outputs, then a step to a point of the segment
        where the derivative of the primal along it has changed sign or nearly vanished.
    Stops when
        max t |z + s phi'(o)| <= tol and |sum z| is small: an upper bound of `kkt` that needs no prox.
    Cost per step
        two products with K and one bordered solve a fold.
    Guarantee
        the primal decreases at every step; it is strongly convex in f, so the outputs converge from any start, and
        the last steps are quadratic (one step where phi is piecewise quadratic).
    """

    max_steps: int = static(default=200)

    def supports(self, inner: Inner) -> str | None:
        """Differentiable losses, every operator, every bias."""
        if not inner.smooth:
            return f"the loss {type(inner.loss).__name__} has kinks and Newton needs a differentiable loss"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        z, b = start_point(inner, init)
        t = inner.steps()

        def step(state: tuple[Array, Array, Array], active: Array):
            z, f, b = state
            o = f + b[:, None]
            P = 1.0 / (1.0 + t * inner.curvature(o))
            force = -(z + inner.slope(o))
            dz, db = bordered_solve(inner.op, P, t, t * P * force, -jnp.sum(z, axis=1), inner.border, True)
            df = inner.op.matmul(dz)
            length = jnp.where(active, line_length(inner, z, o, dz, df, df + db[:, None]), 0.0)
            z, f, b = z + length[:, None] * dz, f + length[:, None] * df, b + length * db
            return (z, f, b), z, b, smooth_violation(inner, z, f + b[:, None], t)

        return run(step, (z, inner.op.matmul(z), b), inner, tol, self.max_steps, patience=15)


def smooth_violation(inner: Inner, z: Array, o: Array, t: Array) -> Array:
    """An upper bound (T,) of `kkt` for differentiable losses: the prox is 1-Lipschitz in its argument."""
    worst = jnp.max(jnp.where(inner.s > 0, t * jnp.abs(z + inner.slope(o)), 0.0), axis=1)
    if not inner.border:
        return worst
    budget = jnp.sum(jnp.where(inner.s > 0, 1.0 / t, 0.0), axis=1)
    return jnp.maximum(worst, jnp.abs(jnp.sum(z, axis=1)) / jnp.where(budget > 0, budget, 1.0))


def line_length(inner: Inner, z: Array, o: Array, dz: Array, df: Array, do: Array) -> Array:
    """Step lengths (T,) in (0, 1] along a descent direction of the primal.

    1 where the derivative of the primal along the step is not positive there (to rounding); otherwise the first
    bisection point with a derivative between half the initial one and zero.
    """
    linear, quadratic = jnp.sum(z * df, axis=1), jnp.sum(dz * df, axis=1)

    def slope_at(a: Array) -> Array:
        return linear + a * quadratic + jnp.sum(inner.slope(o + a[:, None] * do) * do, axis=1)

    one = jnp.ones_like(linear)
    first = slope_at(0.0 * one)
    noise = 4.0 * jnp.finfo(o.dtype).eps * (jnp.abs(linear) + jnp.sum(jnp.abs(inner.slope(o) * do), axis=1))
    goal = jnp.maximum(0.01 * jnp.abs(first), noise)

    def cond(state: tuple[Array, ...]) -> Array:
        *_, done, it = state
        return jnp.any(~done) & (it < 60)

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, a, done, it = state
        middle = jnp.where(done, a, 0.5 * (low + high))
        here = slope_at(middle)
        low = jnp.where(here <= 0, middle, low)
        high = jnp.where(here <= 0, high, middle)
        good = (here <= noise) & (here >= 0.5 * first)
        return low, high, jnp.where(done | good, middle, low), done | good, it + 1

    zero = jnp.zeros_like(one)
    start = (zero, one, one, slope_at(one) <= goal, jnp.zeros((), jnp.int32))
    return lax.while_loop(cond, body, start)[2]
