"""The automatic versions of what a loss can answer, from phi alone, kinks included.

Problem:     prox(v) = argmin_p  ts * phi(p, y; hp) + (p - v)^2 / 2,  elementwise
Optimality:  g(p) = p - v + ts * phi'(p)  passes 0 at p; g increases, so a bracket always holds it
Derivative:  phi differentiable at p:  dp = (dv - phi'(p) dts - ts * d phi'(p)) / (1 + ts * phi''(p));
             p on a kink kappa(y, hp): the two branches of phi agree there, so
             dp = d kappa = -(d phi(kappa+) - d phi(kappa-)) / (phi'(kappa+) - phi'(kappa-)),
             where d is the change with y and hp at a fixed output
Source:      Parikh & Boyd, Proximal Algorithms (2014), sections 1.1 and 6.1; the implicit function theorem.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from .types import Array, Hyperparameters

__all__ = ["curvature", "has_kinks", "interval", "prox", "slope"]

NEWTON_STEPS = 150


def slope(loss: Any, o: Array, y: Array, hp: Hyperparameters) -> Array:
    """d phi / d o, elementwise; at a kink some value between the two one-sided ones."""
    return jax.jvp(lambda o: loss.phi(o, y, hp), (o,), (jnp.ones_like(o),))[1]


def curvature(loss: Any, o: Array, y: Array, hp: Hyperparameters) -> Array:
    """d^2 phi / d o^2, elementwise, away from kinks."""
    return jax.jvp(lambda o: slope(loss, o, y, hp), (o,), (jnp.ones_like(o),))[1]


def _reorder(bits: Array) -> Array:
    """Bits of floats to integers in the floats' order, and back: the map is its own inverse."""
    return jnp.where(bits >= 0, bits, jnp.iinfo(bits.dtype).min - bits)


def _midpoint(lo: Array, hi: Array) -> Array:
    """The float with as many floats between lo and itself as between itself and hi."""
    kind = jnp.dtype(f"int{8 * lo.dtype.itemsize}")
    a, b = (_reorder(lax.bitcast_convert_type(x, kind)) for x in (lo, hi))
    return lax.bitcast_convert_type(_reorder((a & b) + ((a ^ b) >> 1)), lo.dtype)


def _bisect(above: Any, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Neighbouring floats between which the monotone predicate turns true."""

    def step(_, ends):
        lo, hi = ends
        middle = _midpoint(lo, hi)
        up = above(middle)
        return jnp.where(up, lo, middle), jnp.where(up, middle, hi)

    return lax.fori_loop(0, 8 * lo.dtype.itemsize, step, (lo, hi))


def _bracket(loss: Any, v: Array, y: Array, ts: Array, hp: Hyperparameters) -> tuple[Array, Array, Any]:
    """Finite ends around the solution, and which side of it an output with an undefined slope lies on.

    The slope at the solution lies between 0 and phi'(v), so overflow can only happen beyond the
    solution as seen from v; where phi'(v) itself is undefined, overflow happens far from y.
    """
    huge = jnp.finfo(v.dtype).max
    d = slope(loss, v, y, hp)
    lost = jnp.isnan(d)
    far = jnp.where(ts > 0, v - ts * jnp.where(lost, 0.0, d), v)
    far = jnp.clip(far, -huge, huge)
    lo = jnp.where(lost, -huge, jnp.minimum(v, far))
    hi = jnp.where(lost, huge, jnp.maximum(v, far))
    return lo, hi, lambda p: jnp.where(lost, p > y, d < 0)


def _by_bisection(loss: Any, v: Array, y: Array, ts: Array, hp: Hyperparameters) -> Array:
    lo, hi, beyond = _bracket(loss, v, y, ts, hp)

    def above(p):
        g = (p - v) + ts * slope(loss, p, y, hp)
        return jnp.where(jnp.isnan(g), beyond(p), g >= 0)

    return _bisect(above, lo, hi)[1]


def _by_newton(loss: Any, v: Array, y: Array, ts: Array, hp: Hyperparameters) -> Array:
    """Newton's method kept inside a shrinking bracket; bisects where its steps do not halve."""
    lo, hi, beyond = _bracket(loss, v, y, ts, hp)
    eps = jnp.finfo(v.dtype).eps

    def middle(lo, hi):
        wide = 0.5 * hi - 0.5 * lo > 1e3 * (1.0 + jnp.minimum(jnp.abs(lo), jnp.abs(hi)))
        return jnp.where(wide, _midpoint(lo, hi), 0.5 * lo + 0.5 * hi)

    def step(state):
        p, lo, hi, last, done, count = state
        d, dd = jax.jvp(lambda o: slope(loss, o, y, hp), (p,), (jnp.ones_like(p),))
        g = (p - v) + ts * d
        up = jnp.where(jnp.isnan(g), beyond(p), g >= 0)
        lo, hi = jnp.where(up, lo, p), jnp.where(up, p, hi)
        move = -g / (1.0 + ts * dd)
        good = jnp.isfinite(move) & (p + move >= lo) & (p + move <= hi) & (jnp.abs(move) <= 0.5 * last)
        new = jnp.where(good, p + move, middle(lo, hi))
        size = jnp.abs(new - p)
        noise = 2.0 * eps * (jnp.abs(p) + jnp.abs(v) + ts * jnp.abs(d))
        settled = (jnp.isfinite(g) & (jnp.abs(g) <= noise)) | (size <= 2.0 * eps * jnp.abs(new))
        p = jnp.where(done | (settled & ~good), p, new)
        return p, lo, hi, size, done | settled, count + 1

    def searching(state):
        return ~jnp.all(state[4]) & (state[5] < NEWTON_STEPS)

    start = (middle(lo, hi), lo, hi, jnp.full_like(v, jnp.inf), lo >= hi, 0)
    return lax.while_loop(searching, step, start)[0]


@jax.custom_jvp
def prox(loss: Any, v: Array, y: Array, ts: Array, hp: Hyperparameters) -> Array:
    """argmin_p ts * phi(p, y; hp) + (p - v)^2 / 2, elementwise; ts >= 0, and ts = 0 gives v."""
    search = _by_newton if loss.smooth is True else _by_bisection
    return jnp.where(ts > 0, search(loss, v, y, ts, hp), v)


def _on_kink(loss: Any, p: Array, delta: Array, y: Array, hp: Hyperparameters) -> Array:
    """Whether phi' jumps at p: it grows more across p than over the next stretch on either side."""
    far_left, left, right, far_right = (slope(loss, p + k * delta, y, hp) for k in (-3.0, -1.0, 1.0, 3.0))
    growth = jnp.maximum(left - far_left, far_right - right)
    noise = 1e3 * jnp.finfo(p.dtype).eps * jnp.maximum(jnp.abs(left), jnp.abs(right))
    return right - left > 4.0 * growth + noise


def _smooth_tangent(loss: Any, p: Array, y: Array, ts: Array, hp: Hyperparameters, tangents: tuple) -> Array:
    dloss, dv, dy, dts, dhp = tangents
    d, dd = slope(loss, p, y, hp), curvature(loss, p, y, hp)
    change = jax.jvp(lambda loss, y, hp: slope(loss, p, y, hp), (loss, y, hp), (dloss, dy, dhp))[1]
    return (dv - d * dts - ts * change) / (1.0 + ts * dd)


@prox.defjvp
def _prox_rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    loss, v, y, ts, hp = primals
    p = prox(loss, v, y, ts, hp)
    if loss.smooth is True:
        return p, _smooth_tangent(loss, p, y, ts, hp, tangents)
    fixed = lax.stop_gradient(p)
    delta = jnp.finfo(p.dtype).eps ** 0.75 * jnp.maximum(1.0, jnp.abs(fixed))
    kink = _on_kink(*lax.stop_gradient((loss, p, delta, y, hp))) & (ts > 0)
    left, right = p - delta, p + delta
    dloss, _, dy, _, dhp = tangents

    def change(o):
        return jax.jvp(lambda loss, y, hp: loss.phi(o, y, hp), (loss, y, hp), (dloss, dy, dhp))[1]

    jump = jnp.where(kink, slope(loss, right, y, hp) - slope(loss, left, y, hp), 1.0)
    along_kink = (change(left) - change(right)) / jump
    # The branch that is not taken must stay finite too: on a kink phi'' is looked up beside it.
    elsewhere = _smooth_tangent(loss, jnp.where(kink, right, p), y, ts, hp, tangents)
    return p, jnp.where(kink, along_kink, elsewhere)


def interval(loss: Any, z: Array, y: Array, s: Array, hp: Hyperparameters) -> tuple[Array, Array]:
    """The closed interval [lo, hi] of outputs o with -z in s * d phi(o), to neighbouring floats.

    Outputs are searched up to 2^60 max(1, |y|) either way; an end not found there is infinite, and so
    are both ends where s = 0.  A z outside the range of -s * phi' is first moved to its nearest end.
    """
    loss, z, y, s, hp = lax.stop_gradient((loss, z, y, s, hp))
    reach = 2.0**60 * jnp.maximum(1.0, jnp.abs(y))

    def weighted_slope(o):
        d = s * slope(loss, o, y, hp)
        return jnp.where(jnp.isnan(d), jnp.where(o > y, jnp.inf, -jnp.inf), d)

    least, most = weighted_slope(-reach), weighted_slope(reach)
    level = jnp.clip(-z, least, most)
    lo = _bisect(lambda o: weighted_slope(o) >= level, -reach, reach)[0]
    hi = _bisect(lambda o: weighted_slope(o) > level, -reach, reach)[1]
    absent = s <= 0
    return jnp.where(absent | (least >= level), -jnp.inf, lo), jnp.where(absent | (most <= level), jnp.inf, hi)


def has_kinks(loss: Any) -> bool:
    """Whether phi' jumps somewhere in [-4, 4] at the loss's start values, found by probing on the host.

    A jump keeps its size when the spacing shrinks, the growth of a smooth slope does not.  True, which
    only costs speed, where the loss cannot be probed.
    """
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(loss)):
        return True
    try:
        with jax.ensure_compile_time_eval():
            return _jumps(loss)
    except Exception:  # the probe runs code we do not know on data it was not written for
        return True


def _jumps(loss: Any) -> bool:
    X = jnp.asarray([[0.3, -1.1], [-0.7, 0.4], [1.2, 0.9], [-0.2, -0.6]])
    hp = loss.init(X, jnp.asarray([-1.0, 1.0, -1.0, 1.0]))
    y = jnp.asarray([-1.0, 1.0, 0.3, -1.0])
    probe = jax.vmap(lambda o: slope(loss, o, y, hp))

    def excess(grid):
        """How much more the slope grows over each interval of a grid (k, n) than over its neighbours."""
        d = np.asarray(probe(jnp.asarray(grid, y.dtype)), float)
        growth = np.diff(d, axis=0)
        return growth[1:-1] - np.maximum(growth[:-2], growth[2:]), np.max(np.abs(d))

    coarse = np.linspace(-4.0, 4.0, 4001)[:, None] + np.zeros((1, 4))
    eps = float(jnp.finfo(y.dtype).eps)
    for grid in (coarse, coarse + 0.000731):
        first, size = excess(grid)
        for k in np.argsort(-first, axis=0)[:6]:
            before = np.take_along_axis(first, k[None], axis=0)[0]
            if not np.any(before > np.sqrt(eps) * size):
                continue
            lo, width = np.take_along_axis(grid, k[None] + 1, axis=0)[0], grid[1] - grid[0]
            for _ in range(2 if eps < 1e-10 else 1):
                fine = lo + width * np.linspace(-0.01, 1.01, 1021)[:, None]
                after, _ = excess(fine)
                lo = np.take_along_axis(fine, np.argmax(after, axis=0)[None] + 1, axis=0)[0]
                width = fine[1] - fine[0]
            if np.any((before > np.sqrt(eps) * size) & (np.max(after, axis=0) > 0.5 * before)):
                return True
    return False
