"""What the smoothed criteria share: means, the scale of the sigmoid, and points found by minimisation.

Implicit derivatives
    A point x* with G(x*, data) = 0 is found under stop_gradient.  Two Newton steps on G(x, data) = G(x*, data at rest)
    follow, both zero in value.  Each squares the error, so the derivatives of the second iterate agree with those of
    the implicit function up to the third order, forwards and backwards, without a rule of our own.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..types import Array

__all__ = ["calibrated", "classes", "cut", "mean", "not_positive", "one_class", "platt_targets", "spread"]


def mean(values: Array, w: Array) -> Array:
    """The weighted mean; NaN where nothing has weight."""
    return jnp.sum(w * values) / jnp.sum(w)


def classes(y: Array, w: Array) -> tuple[Array, Array]:
    """The weights of the positive class and of the negative one, each (n,)."""
    return jnp.where(y > 0, w, 0.0), jnp.where(y > 0, 0.0, w)


def one_class(y: Any) -> str | None:
    """What is wrong with labels of a criterion that compares two classes."""
    y = np.asarray(y)
    if np.any(y > 0) and np.any(y < 0):
        return None
    return "compares two classes, +1 and -1, but y holds only one of them"


def not_positive(**fields: Any) -> str | None:
    """What is wrong with the first field that is not a positive finite number."""
    for name, value in fields.items():
        if not (np.isfinite(value) and value > 0):
            return f"needs {name} to be positive, found {float(value):g}"
    return None


def spread(o: Array, w: Array) -> tuple[Array, Array, Array]:
    """(centred outputs, their population standard deviation, whether they differ by more than rounding).

    Where they do not, the deviation is 1, which has no derivative.
    """
    kind = jnp.finfo(o.dtype)
    centred = jnp.where(w > 0, o - mean(o, w), 0.0)
    variance = mean(centred * centred, w)
    largest = jnp.max(jnp.where(w > 0, jnp.abs(o), 0.0))
    floor = jnp.maximum(max(1e-12, 8.0 * float(kind.eps)) * largest, float(kind.tiny) ** 0.25)
    differ = variance > floor * floor
    return centred, jnp.sqrt(jnp.where(differ, variance, 1.0)), differ


def cut(o: Array, c: Array, s1: Array, target: Array) -> Array:
    """The point s0 with sum_l c_l sigma(s1 (o_l - s0)) = target, for 0 < target < sum(c); differentiable."""

    def total(s0: Array, o: Array, c: Array, s1: Array, target: Array) -> Array:
        return jnp.sum(c * jax.nn.sigmoid(s1 * (o - s0))) - target

    rest = lax.stop_gradient((o, c, s1, target))
    share = rest[3] / jnp.sum(rest[1])
    logit = (jnp.log(share) - jnp.log1p(-share)) / rest[2]
    # no sigmoid exceeds the share at the upper end, none falls below it at the lower end
    low = jnp.min(jnp.where(rest[1] > 0, rest[0], jnp.inf)) - logit
    high = jnp.max(jnp.where(rest[1] > 0, rest[0], -jnp.inf)) - logit

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        above = total(middle, *rest) > 0
        return jnp.where(above, middle, ends[0]), jnp.where(above, ends[1], middle)

    low, high = lax.fori_loop(0, 60, halve, (low, high))
    s0 = lax.stop_gradient(0.5 * (low + high))
    level = lax.stop_gradient(total(s0, *rest))
    for _ in range(2):
        q = jax.nn.sigmoid(s1 * (o - s0))
        slope = s1 * jnp.sum(c * q * (1.0 - q))
        moves = slope > jnp.finfo(o.dtype).tiny  # in a gap between steep sigmoids every point will do
        s0 = s0 + jnp.where(moves, total(s0, o, c, s1, target) - level, 0.0) / jnp.where(moves, slope, 1.0)
    return s0


def platt_targets(y: Array, w: Array) -> Array:
    """Platt's targets: (n+ + 1) / (n+ + 2) for the positive class, 1 / (n- + 2) for the negative one."""
    positive, negative = map(jnp.sum, classes(y, w))
    return jnp.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))


def calibrated(o: Array, targets: Array, w: Array) -> Array:
    """Log-odds s1 (o - s0) with s0 and s1 >= 0 the most likely ones for targets in [0, 1]; differentiable.

    Outputs that are all equal, or that would want s1 < 0, say nothing: the log-odds are those of the mean target and
    do not depend on o.  Targets strictly inside (0, 1) have a minimum for any o, separable or not.
    """
    centred, std, differ = spread(o, w)
    u = jnp.where(differ, centred / std, 0.0)
    share = mean(targets, w)
    constant = jnp.log(share) - jnp.log1p(-share)
    rest = lax.stop_gradient((u, targets, w))
    start = jnp.stack([jnp.zeros_like(constant), lax.stop_gradient(constant)])
    x = lax.stop_gradient(_most_likely(start, *rest))
    level = _slopes(x, *rest)[0]
    says_something = differ & (x[0] > 0)
    for _ in range(2):
        slope, curvature = _slopes(x, u, targets, w)
        x = x - _solved(curvature, slope - level)
    return jnp.where(says_something, x[0] * u + x[1], constant)


def _slopes(x: Array, u: Array, targets: Array, w: Array) -> tuple[Array, Array]:
    """Gradient (2,) and Hessian (3,) of the mean negative log-likelihood of the log-odds x[0] u + x[1]."""
    p = jax.nn.sigmoid(x[0] * u + x[1])
    r, omega = p - targets, p * (1.0 - p)
    gradient = jnp.stack([mean(r * u, w), mean(r, w)])
    return gradient, jnp.stack([mean(omega * u * u, w), mean(omega * u, w), mean(omega, w)])


def _solved(curvature: Array, rhs: Array) -> Array:
    """The 2 x 2 system, or 0 where it is singular."""
    aa, ac, cc = curvature
    det = aa * cc - ac * ac
    regular = det > jnp.finfo(rhs.dtype).tiny
    solution = jnp.stack([cc * rhs[0] - ac * rhs[1], aa * rhs[1] - ac * rhs[0]])
    return jnp.where(regular, solution / jnp.where(regular, det, 1.0), 0.0)


def _most_likely(start: Array, u: Array, targets: Array, w: Array) -> Array:
    """The minimiser by Newton's method; far from it the best of eight step lengths is taken."""
    lengths = 0.5 ** jnp.arange(8, dtype=u.dtype)

    def loss(x: Array) -> Array:
        odds = x[0] * u + x[1]
        return mean(jnp.logaddexp(0.0, odds) - targets * odds, w)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, _, count = state
        slope, curvature = _slopes(x, u, targets, w)
        step = _solved(curvature, slope)
        decrement = jnp.sum(slope * step)
        tried = jax.vmap(loss)(x[None, :] - lengths[:, None] * step[None, :])
        length = jnp.where(decrement < 1e-4, 1.0, lengths[jnp.argmin(tried)])
        return x - length * step, decrement, count + 1

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        _, decrement, count = state
        return (decrement > jnp.finfo(u.dtype).eps) & (count < 50)

    return lax.while_loop(goes_on, advance, (start, jnp.full_like(start[0], jnp.inf), jnp.zeros((), jnp.int32)))[0]
