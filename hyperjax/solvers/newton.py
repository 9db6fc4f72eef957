"""Primal semismooth Newton for differentiable losses."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..operators import bordered_solve, feature_factors, feature_solve
from ..operators.feature_space import MANY
from ..problem import Inner
from ..sparse import Matrix
from ..types import Array, static
from .loop import Solver, imbalance, run, start_point

__all__ = ["Newton", "factored_step", "line_length", "smooth_violation"]


FORCING = 0.1
"""Relative residual of a step by conjugate gradients; near the solution the square of the violation in output units."""
NEAR = 0.02
"""A step that promises less than half of this part of the objective begins the end game."""
LOOK, FAR = 8, 100.0
"""The first rows, one part of LOOK, tell that all is not solved yet where one is off by more than FAR tolerances."""
DEAR = 4
"""With p columns, p / DEAR products of conjugate gradients take as long as a factor for every fold."""


class Newton(Solver):
    """Semismooth Newton in (f, b), every fold at once.

    Iteration
        (B) with the curvatures h = s phi''(o) at the current outputs, then a step to a point of the segment
        where the derivative of the primal along it has changed sign or nearly vanished.  Where K = Phi Phi' is kept
        factored the same step is taken in w = Phi' z, and z = -s phi'(o) is read off: rounding in sums over samples
        then never enters the direction.  Conjugate gradients on all folds at once find it, first to a tenth: far from
        the solution with one factor, that of the folds' mean curvatures; near it with each fold's own; a factor is
        kept as long as few products are needed.  With sparse rows they do without factors.
    Stops when
        an upper bound of `kkt` that needs no prox is within tol: max t |z + s phi'(o)|, or max |Phi (w - Phi' z)|
        where K is factored; and |sum z| is small.
    Cost per step
        two products with K and one bordered solve a fold.
    Guarantee
        the primal decreases at every step, or stands still to rounding while the violation halves or the derivative
        along the step goes to zero; it is strongly convex in f, so the outputs converge from any start, and the last
        steps are quadratic (one step where phi is piecewise quadratic).
    """

    max_steps: int = static(default=200)

    def supports(self, inner: Inner) -> str | None:
        """Differentiable losses, every operator, every bias."""
        if not inner.smooth:
            return f"the loss {type(inner.loss).__name__} has kinks and Newton needs a differentiable loss"
        return None

    def solve(self, inner: Inner, init, tol):
        """Minimise from `init` (or zeros); see the class."""
        phi = inner.op.factors()
        if phi is None:
            step, start = _stored(inner, *start_point(inner, init))
        else:
            z, b = start_point(inner, init)
            step, start = factored_step(inner, phi, None if init is None else z @ phi, b, tol)
        return run(step, start, inner, tol, self.max_steps, _patience(phi, tol))


def _patience(phi: Any, tol: Array) -> int:
    """In float32 a violation that stands still has met rounding, not a hard problem; conjugate gradients may still
    cross it (pcmac's raw counts at C = 1).
    """
    return 15 if tol.dtype == jnp.float64 or isinstance(phi, Matrix) else 3


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


def factored_step(inner: Any, phi: Any, w: Array | None, b: Array, tol: Array, alone: Any = False):
    """The step in x = (w, b) for K = Phi Phi', and its start; `inner` is an Inner, or a loss smoothed around a centre.

    w = None is 0, which needs no product.  `alone` gives every fold factors of its own from the first step on.
    """
    border, accuracy = inner.border, math.sqrt(jnp.finfo(b.dtype).eps)

    def join(w: Array, b: Array) -> Array:
        return jnp.concatenate([w, b[:, None]], axis=1) if border else w

    def split(x: Array) -> tuple[Array, Array]:
        return (x[:, :-1], x[:, -1]) if border else (x, jnp.zeros_like(b))

    def at(x: Array, o: Array) -> tuple[Array, ...]:
        """z, the gradient in x and the violation."""
        z = -inner.slope(o)
        gw = split(x)[0] - z @ phi
        return z, join(gw, -jnp.sum(z, axis=1)), jnp.maximum(_furthest(inner, phi, gw, tol), imbalance(inner, z, o))

    dear = max(2, phi.shape[1] // DEAR)

    def direction(h: Array, g: Array, L: Array, alone: Array, worn: Array, worst: Array) -> tuple[Array, ...]:
        """The step, the factors it was found with, and whether they have served their time."""
        if isinstance(phi, Matrix):
            enough = jnp.maximum(worst * worst, 0.01 * tol / jnp.maximum(worst, tol))
            return feature_solve(phi, h, -g, border, accuracy=jnp.minimum(FORCING, enough))[0], L, worn

        L = lax.cond(worn, lambda: _factors(phi, h, border, alone), lambda: L)
        x, there, count = feature_solve(phi, h, -g, border, L, jnp.clip(worst * worst, accuracy, FORCING), dear)
        return x, L, (count > 1 + jnp.where(alone, dear // 2, dear // h.shape[0])) | ~jnp.all(there)

    def value(x: Array, o: Array) -> Array:
        w = split(x)[0]
        return 0.5 * jnp.sum(w * w, axis=1) + jnp.sum(inner.phi(o), axis=1)

    def step(state: tuple[Array, ...], active: Array):
        x, o, z, g, worst, least, before, L, alone, worn = state
        h = inner.curvature(o)
        move, L, worn = direction(h, jnp.where(active[:, None], g, 0.0), L, alone, worn, worst)
        dw, db = split(move)
        db = jnp.where(active, _bias_step(inner, h, -jnp.sum(z, axis=1), db), 0.0)
        move, do = join(dw, db), dw @ phi.T + db[:, None]

        # the derivative of the primal along the step, at its two ends; where the primal stands still to rounding it
        # says less than a gradient that has halved, but how far to go where all that a step promises is hidden
        whole, there = at(x + move, o + do), value(x + move, o + do)
        slope, slope_there = jnp.sum(g * move, axis=1), jnp.sum(whole[1] * move, axis=1)
        still = there <= before + accuracy * jnp.abs(before)
        taken = ~active | (slope_there <= 0.01 * jnp.abs(slope)) | (still & (whole[2] < 0.5 * least))
        hidden = jnp.abs(slope) <= jnp.finfo(x.dtype).eps * jnp.abs(before)

        def shorter() -> tuple[Array, ...]:
            # a fold that needs no search is searched along nothing
            settled = taken | hidden
            norms = (jnp.where(settled, 0.0, jnp.sum(a * dw, axis=1)) for a in (split(x)[0], dw))
            length = line_length(inner, o, jnp.where(settled[:, None], 0.0, do), *norms)
            between = jnp.clip(slope / jnp.where(taken, 1.0, slope - slope_there), 0.0, 1.0)
            length = jnp.where(settled & ~taken, between, length)[:, None]
            at_length = x + length * move, o + length * do
            return length[:, 0], *at(*at_length), value(*at_length)

        length, z, g, after, objective = lax.cond(
            jnp.all(taken), lambda: (jnp.ones_like(slope), *whole, there), shorter
        )
        length = jnp.where(active, length, 0.0)[:, None]
        x, o = x + length * move, o + length * do
        slow = jnp.any(active & ~hidden & (after > 0.5 * worst))
        near = slow | jnp.any(active & (jnp.abs(slope) < NEAR * objective))
        worn = worn | slow | (near & ~alone)
        least = jnp.minimum(least, after)
        return (x, o, z, g, after, least, objective, L, alone | near, worn), z, split(x)[1], after, objective

    f = jnp.zeros_like(inner.s) if w is None else w @ phi.T
    x = join(jnp.zeros_like(inner.s, shape=(b.shape[0], phi.shape[1])) if w is None else w, b)
    o = f + split(x)[1][:, None]
    z, g, worst = at(x, o)
    size = 0 if isinstance(phi, Matrix) else x.shape[1]
    L = jnp.broadcast_to(jnp.eye(size, dtype=x.dtype), (x.shape[0], size, size))
    return step, (x, o, z, g, worst, worst, value(x, o), L, jnp.asarray(alone), jnp.asarray(True))


def _furthest(inner: Any, phi: Any, w: Array, tol: Array) -> Array:
    """max |Phi w| over the rows in play, (T,); over the first of them alone where these are FAR from `tol` already, and
    from what rounding might loosen it to.
    """

    def among(phi: Any, s: Array) -> Array:
        return jnp.max(jnp.where(s > 0, jnp.abs(w @ phi.T), 0.0), axis=1)

    if isinstance(phi, Matrix) or phi.shape[0] < MANY:
        return among(phi, inner.s)
    some = phi.shape[0] // LOOK
    first = among(phi[:some], inner.s[:, :some])
    return lax.cond(jnp.all(first > jnp.maximum(FAR * tol, inner.limit)), lambda: first, lambda: among(phi, inner.s))


def _factors(phi: Array, h: Array, border: bool, alone: Array) -> Array:
    """Factors of each fold's own, or of the folds' mean curvatures for all."""
    # the mean as a product: sums over a leading axis are slow on a CPU
    share = jnp.full((1, h.shape[0]), 1.0 / h.shape[0], h.dtype)
    size = phi.shape[1] + border

    def mean() -> Array:
        return jnp.broadcast_to(feature_factors(phi, share @ h, border), (h.shape[0], size, size))

    return lax.cond(alone, lambda: feature_factors(phi, h, border), mean)


def _bias_step(inner: Any, h: Array, gradient: Array, db: Array) -> Array:
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


def line_length(inner: Any, o: Array, do: Array, linear: Array, quadratic: Array) -> Array:
    """Step lengths (T,) in (0, 1] along a descent direction of the primal; of `inner` it asks `slope` alone.

    `linear` and `quadratic` are <f, df> and <df, df> in the norm of the regulariser.  1 where the derivative of the
    primal along the step is not positive there (to rounding); otherwise the first bisection point with a derivative
    between half the initial one and zero.
    """

    def slope_at(a: Array) -> Array:
        return linear + a * quadratic + jnp.sum(inner.slope(o + a[:, None] * do) * do, axis=1)

    one, rounds = jnp.ones_like(linear), jnp.finfo(o.dtype).nmant + 4  # a shorter step moves no digit
    first = slope_at(0.0 * one)
    noise = 4.0 * jnp.finfo(o.dtype).eps * (jnp.abs(linear) + jnp.sum(jnp.abs(inner.slope(o) * do), axis=1))
    goal = jnp.maximum(0.01 * jnp.abs(first), noise)

    def cond(state: tuple[Array, ...]) -> Array:
        *_, done, it = state
        return jnp.any(~done) & (it < rounds)

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
