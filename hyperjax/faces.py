"""Which piece of its loss every sample is on, how far it is from the next, and what certifies a solution."""

import jax
import jax.numpy as jnp

from .losses.piecewise import Piecewise
from .problem import Inner, middle
from .results import Code
from .types import Array

__all__ = ["breakpoints", "certificate", "distances", "settle_bias"]


def settle_bias(inner: Inner, z: Array, b: Array) -> tuple[Array, Array, Array]:
    """(b, o, whether b is a choice): the midpoint of the admissible biases where no sample ties it down."""
    f, nobody = inner.op.matmul(z), inner.nobody_free(z)
    if inner.border and inner.loss.flat:
        lo, hi = inner.bias_interval(z, f)
        b = jnp.where(nobody & (lo <= hi), middle(lo, hi), b)
    return b, f + b[:, None], nobody


def distances(inner: Inner, z: Array, o: Array, t: Array) -> Array:
    """How far o_i - t_i z_i is from the next breakpoint of the prox (T, n), in output units.

    Infinite for samples that are out and for losses without pieces.  A kinked loss known by phi alone is probed at
    powers of ten, so its distances are right to a factor of ten.
    """
    return breakpoints(inner, z, o, t)[0]


def breakpoints(inner: Inner, z: Array, o: Array, t: Array) -> tuple[Array, Array, Array]:
    """(distance, low, high): of the breakpoint next to o_i - t_i z_i, and arguments of the prox on its two sides."""
    v, out = o - t * z, inner.s <= 0
    at, off = v, jnp.zeros_like(v)
    loss = inner.loss
    if isinstance(loss, Piecewise):
        pieces = inner.pieces()
        lefts, rights = pieces.left_slopes(), pieces.slopes[1:]
        best = jnp.full_like(v, jnp.inf)
        bends = zip(pieces.curvatures[:-1], pieces.curvatures[1:], strict=True)
        for kink, left, right, (before, after) in zip(pieces.kinks, lefts, rights, bends, strict=True):
            real = (left != right) | (before != after)
            for a in (left, right):
                point = kink + t * inner.s * a
                nearer = real & (jnp.abs(v - point) < best)
                at, best = jnp.where(nearer, point, at), jnp.where(nearer, jnp.abs(v - point), best)
        off = 1e-3 * jnp.maximum(1.0, jnp.abs(at)) * jnp.sqrt(jnp.finfo(v.dtype).eps)
    elif inner.smooth:
        best = jnp.full_like(v, jnp.inf)
    else:
        best = _probed(inner, v, t)
        off = jnp.where(jnp.isfinite(best), best, 0.0)
    return jnp.where(out, jnp.inf, best), at - off, at + off


def _probed(inner: Inner, v: Array, t: Array) -> Array:
    def tied(v: Array) -> Array:
        return jax.jvp(lambda v: inner.prox(v, t), (v,), (jnp.ones_like(v),))[1] < 1e-9

    here, best = tied(v), jnp.full_like(v, jnp.inf)
    for power in range(1, -10, -1):
        reach = 10.0**power
        moved = (tied(v + reach) != here) | (tied(v - reach) != here)
        best = jnp.where(moved, reach, best)
    return best


def certificate(inner: Inner, z: Array, b: Array, o: Array, chosen: Array, tol: Array) -> dict[str, Array]:
    """kkt, gap, code, n_free, degenerate and distance of a solution, one value a fold."""
    from .solvers.loop import granted, violation

    t, in_play = inner.steps(), inner.s > 0
    kkt = violation(inner, z, o, t)
    P = jnp.where(chosen[:, None], 1.0, inner.faces(z, o, t))
    away = distances(inner, z, o, t)
    edge = away <= 64.0 * jnp.finfo(o.dtype).eps * (1.0 + jnp.abs(o) + t * jnp.abs(z))
    regulariser = jnp.sum(z * (o - b[:, None]), axis=1)
    gap, degenerate = _gap(inner, z, b, o, regulariser), jnp.sum(edge & in_play, axis=1)

    size = jnp.sum(jnp.abs(z), axis=1) * jnp.max(jnp.where(in_play, jnp.abs(o - b[:, None]), 0.0), axis=1)
    # a factored K is semidefinite however its product with z is rounded
    stored = inner.op.factors() is None
    indefinite = (regulariser < -jnp.sqrt(jnp.finfo(o.dtype).eps) * size) & stored
    finite = jnp.all(jnp.isfinite(z) & jnp.isfinite(o), axis=1) & jnp.isfinite(kkt)
    code = jnp.where(degenerate > 0, Code.DEGENERATE, Code.OK)
    code = jnp.where(chosen, Code.BIAS_INTERVAL, code)
    code = jnp.where(kkt <= granted(inner, z, b, tol, kkt), code, Code.MAX_STEPS)
    code = jnp.where(indefinite, Code.SINGULAR, code)
    code = jnp.where(finite, code, Code.NONFINITE).astype(jnp.int32)
    return {
        "kkt": kkt,
        "gap": gap,
        "code": code,
        "n_free": jnp.sum((P < 1.0) & in_play, axis=1),
        "degenerate": degenerate,
        "distance": jnp.min(away, axis=1),
    }


def _gap(inner: Inner, z: Array, b: Array, o: Array, regulariser: Array) -> Array:
    """Primal minus dual value over the primal value: a sum of Fenchel-Young terms, each zero at the solution.

    The conjugate of s phi at -z is attained wherever -z is a slope, so at the point of `interval` nearest to o.
    """
    low, high = inner.interval(z)
    at = jnp.clip(o, low, high)
    terms = inner.phi(o) - inner.phi(at) + z * (o - at)
    primal = 0.5 * regulariser + jnp.sum(inner.phi(o), axis=1)
    gap = jnp.abs(jnp.sum(terms, axis=1) - b * jnp.sum(z, axis=1))
    return gap / jnp.maximum(jnp.abs(primal), jnp.finfo(o.dtype).tiny)
