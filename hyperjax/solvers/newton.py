"""Primal semismooth Newton for differentiable losses."""

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve

from ..operators import bordered_solve, feature_factor, gather_features, primal_solve
from ..problem import Inner
from ..sparse import Matrix
from ..types import Array, static
from .loop import Solver, imbalance, run, start_point

__all__ = ["Newton", "line_length", "smooth_violation"]

FORCING = 0.1
"""Relative residual of a step with sparse rows: conjugate gradients far from the solution need no more."""


class Newton(Solver):
    """Semismooth Newton in (f, b), every fold at once.

    Iteration
        (B) with the curvatures h = s phi''(o) at the current outputs, then a step to a point of the segment
        where the derivative of the primal along it has changed sign or nearly vanished.  Where K = Phi Phi' is kept
        factored the same step is taken in w = Phi' z, and z = -s phi'(o) is read off: rounding in sums over samples
        then never enters the direction.  With sparse rows conjugate gradients find the step, to a tenth.
    Stops when
        an upper bound of `kkt` that needs no prox is within tol: max t |z + s phi'(o)|, or max |Phi (w - Phi' z)|
        where K is factored; and |sum z| is small.
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
        phi = inner.op.factors()
        step, start = _stored(inner, z, b) if phi is None else _factored(inner, phi, z, b)
        # in float32 a violation that stands still has met rounding, not a hard problem; steps of conjugate gradients
        # may still cross it (pcmac's raw counts at C = 1)
        patience = 15 if z.dtype == jnp.float64 or isinstance(phi, Matrix) else 3
        return run(step, start, inner, tol, self.max_steps, patience)


def _stored(inner: Inner, z: Array, b: Array):
    """The step in (z, f, b) with K as it is stored, and its start."""
    t = inner.steps()

    def step(state: tuple[Array, Array, Array], active: Array):
        z, f, b = state
        o = f + b[:, None]
        h = inner.curvature(o)
        P = 1.0 / (1.0 + t * h)
        force = -(z + inner.slope(o))
        dz, db = bordered_solve(inner.op, P, t, t * P * force, -jnp.sum(z, axis=1), inner.border, True)
        db = _bias_step(inner, h, jnp.sum(inner.slope(o), axis=1), db)
        df = inner.op.matmul(dz)
        norms = jnp.sum(z * df, axis=1), jnp.sum(dz * df, axis=1)
        length = jnp.where(active, line_length(inner, o, df + db[:, None], *norms), 0.0)
        z, f, b = z + length[:, None] * dz, f + length[:, None] * df, b + length * db
        o = f + b[:, None]
        objective = 0.5 * jnp.sum(z * f, axis=1) + jnp.sum(inner.phi(o), axis=1)
        return (z, f, b), z, b, smooth_violation(inner, z, o, t), objective

    return step, (z, inner.op.matmul(z), b)


def _factored(inner: Inner, phi: Array, z: Array, b: Array):
    """The step in (w, b) for K = Phi Phi', and its start."""

    def gradient(w: Array, b: Array) -> tuple[Array, Array, Array]:
        o = w @ phi.T + b[:, None]
        z = -inner.slope(o)
        return o, z, w - gather_features(z, phi)

    def direction(h: Array, gw: Array, gb: Array) -> tuple[Array, Array]:
        if isinstance(phi, Matrix):
            return primal_solve(phi, h, -gw, -gb, inner.border, FORCING)
        return lax.map(fold, (h, gw, gb))

    def fold(x: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        h, gw, gb = x
        L = feature_factor(phi, h, inner.border)
        if not inner.border:
            return cho_solve((L, True), -gw), jnp.zeros_like(gb)
        move = cho_solve((L, True), -jnp.append(gw, gb))
        return move[:-1], move[-1]

    def step(state: tuple[Array, ...], active: Array):
        w, b, o, z, gw = state
        h = inner.curvature(o)
        dw, db = direction(h, gw, -jnp.sum(z, axis=1))
        db = _bias_step(inner, h, -jnp.sum(z, axis=1), db)
        norms = jnp.sum(w * dw, axis=1), jnp.sum(dw * dw, axis=1)
        length = jnp.where(active, line_length(inner, o, dw @ phi.T + db[:, None], *norms), 0.0)
        w, b = w + length[:, None] * dw, b + length * db
        o, z, gw = gradient(w, b)
        worst = jnp.max(jnp.where(inner.s > 0, jnp.abs(gw @ phi.T), 0.0), axis=1)
        objective = 0.5 * jnp.sum(w * w, axis=1) + jnp.sum(inner.phi(o), axis=1)
        return (w, b, o, z, gw), z, b, jnp.maximum(worst, imbalance(inner, z, o)), objective

    w = gather_features(z, phi)
    return step, (w, b, *gradient(w, b))


def _bias_step(inner: Inner, h: Array, gradient: Array, db: Array) -> Array:
    """db, or where every curvature has underflown a step downhill of up to 10 units for the line search to cut."""
    if not inner.border:
        return db
    budget = jnp.sum(jnp.where(inner.s > 0, inner.scale(), 0.0), axis=1)
    flat = jnp.sum(h, axis=1) <= 1e-12 * budget
    return jnp.where(flat, -10.0 * gradient / jnp.where(budget > 0, budget, 1.0), db)


def smooth_violation(inner: Inner, z: Array, o: Array, t: Array) -> Array:
    """An upper bound (T,) of `kkt` for differentiable losses: the prox is 1-Lipschitz in its argument."""
    worst = jnp.max(jnp.where(inner.s > 0, t * jnp.abs(z + inner.slope(o)), 0.0), axis=1)
    return jnp.maximum(worst, imbalance(inner, z, o))


def line_length(inner: Inner, o: Array, do: Array, linear: Array, quadratic: Array) -> Array:
    """Step lengths (T,) in (0, 1] along a descent direction of the primal.

    `linear` and `quadratic` are <f, df> and <df, df> in the norm of the regulariser.  1 where the derivative of the
    primal along the step is not positive there (to rounding); otherwise the first bisection point with a derivative
    between half the initial one and zero.
    """

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
