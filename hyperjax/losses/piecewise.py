"""Losses made of quadratic or straight pieces: their proximal map and intervals, written once."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..types import Array, Hyperparameters
from .base import Loss

__all__ = ["Pieces", "Piecewise", "PiecewiseLinear", "mirror", "squared_part"]


class Pieces(NamedTuple):
    """phi' as pieces in o: m breakpoints (n,), ascending, and m + 1 slopes and curvatures (n,).

    The slope on piece k is slopes[k] + curvatures[k] * (o - anchor), where the anchor of piece 0 is the
    first breakpoint and the anchor of every other piece is its left end.
    """

    kinks: tuple[Array, ...]
    slopes: tuple[Array, ...]
    curvatures: tuple[Array, ...]

    def left_slopes(self) -> tuple[Array, ...]:
        """phi' at each breakpoint, coming from the left."""
        kinks, slopes, curvatures = self
        inner = [
            a + c * (right - left)
            for a, c, left, right in zip(slopes[1:-1], curvatures[1:-1], kinks[:-1], kinks[1:], strict=True)
        ]
        return (slopes[0], *inner)


def squared_part(v: Array) -> Array:
    """max(v, 0)^2, NaN where v is.  Derivatives of jnp.maximum weigh ties, in several passes over all samples; here the
    square has none.
    """
    part = jnp.where(v <= 0.0, 0.0, v)
    return part * part


def mirror(y: Array, pieces: Pieces) -> Pieces:
    """Pieces of psi(y * o) in o, given those of psi in the margin: in reverse order where y < 0."""
    up = y >= 0
    # Padding may carry y = 0; for labels the division and the products are exact.
    y = jnp.where(y == 0, 1.0, y)
    turned = (pieces.slopes[-1], *pieces.left_slopes()[::-1])
    curvatures = zip(pieces.curvatures, pieces.curvatures[::-1], strict=True)
    return Pieces(
        tuple(jnp.where(up, k, r) / y for k, r in zip(pieces.kinks, pieces.kinks[::-1], strict=True)),
        tuple(jnp.where(up, a, r) * y for a, r in zip(pieces.slopes, turned, strict=True)),
        tuple(jnp.where(up, c, r) * y**2 for c, r in curvatures),
    )


class Piecewise(Loss):
    """A convex loss of quadratic pieces: `pieces` gives its proximal map and its intervals.

    Problem:     phi' = a_k + c_k (o - kappa_k) on piece k, kappa the breakpoints
    Optimality:  on piece k  p + ts phi'(p) = v  is linear,  p = (v - ts (a_k - c_k kappa_k)) / (1 + ts c_k);
                 p = kappa_k while v lies between kappa_k + ts phi'(kappa_k-) and kappa_k + ts phi'(kappa_k+)
    Derivative:  of these formulas; 0 in v on a kink
    """

    def pieces(self, y: Array, hp: Hyperparameters) -> Pieces:
        """Breakpoints, slopes and curvatures, all (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define pieces(self, y, hp)")

    def prox(self, v, y, ts, hp):
        pieces = self.pieces(y, hp)
        kinks, slopes, curvatures = pieces
        anchors = (kinks[0], *kinks)

        def inside(k):
            return (v - ts * (slopes[k] - curvatures[k] * anchors[k])) / (1.0 + ts * curvatures[k])

        p = inside(0)
        for k, (kink, left) in enumerate(zip(kinks, pieces.left_slopes(), strict=True), start=1):
            if not self.smooth:
                p = jnp.where(v > kink + ts * left, kink, p)
            p = jnp.where(v > kink + ts * slopes[k], inside(k), p)
        return p

    def interval(self, z, y, s, hp):
        z, y, s, hp = lax.stop_gradient((z, y, s, hp))
        pieces = self.pieces(y, hp)
        kinks, slopes, curvatures = pieces
        lefts, rights, anchors = pieces.left_slopes(), slopes[1:], (kinks[0], *kinks)
        least = jnp.where(curvatures[0] > 0, -jnp.inf, s * slopes[0])
        most = jnp.where(curvatures[-1] > 0, jnp.inf, s * slopes[-1])
        level = jnp.clip(-z, least, most)
        unit = level / jnp.where(s > 0, s, 1.0)

        def reached(k, flat):
            """Where piece k has the level's slope; `flat` where the piece is straight."""
            c = curvatures[k]
            return jnp.where(c > 0, anchors[k] + (unit - slopes[k]) / jnp.where(c > 0, c, 1.0), flat)

        last = len(kinks)
        lo, hi = reached(last, kinks[-1]), reached(0, kinks[0])
        for k in reversed(range(last)):
            lo = jnp.where(s * rights[k] >= level, kinks[k], lo)
            lo = jnp.where(s * lefts[k] >= level, reached(k, -jnp.inf if k == 0 else kinks[k]), lo)
        for k in range(last):
            hi = jnp.where(s * lefts[k] <= level, kinks[k], hi)
            hi = jnp.where(s * rights[k] <= level, reached(k + 1, jnp.inf if k + 1 == last else kinks[k]), hi)
        absent = s <= 0
        return jnp.where(absent, -jnp.inf, lo), jnp.where(absent, jnp.inf, hi)


class PiecewiseLinear(Piecewise):
    """A convex loss of straight pieces; a user's own needs `kinks_and_slopes` and `init` only.

    Problem:  phi' = a_k between the kinks kappa_k and kappa_{k+1}, a_0 <= a_1 <= ..; phi = 0 at its lowest kink
    """

    smooth: ClassVar[bool | None] = False

    def kinks_and_slopes(self, y: Array, hp: Hyperparameters) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The kinks, m arrays (n,) ascending in o, and the m + 1 slopes between and beside them."""
        raise NotImplementedError(f"{type(self).__name__} must define kinks_and_slopes(self, y, hp)")

    def pieces(self, y, hp):
        kinks, slopes = self.kinks_and_slopes(y, hp)
        return Pieces(tuple(kinks), tuple(slopes), tuple(jnp.zeros_like(a) for a in slopes))

    def phi(self, o, y, hp):
        kinks, slopes = self.kinks_and_slopes(y, hp)
        value = slopes[0] * jnp.minimum(o - kinks[0], 0.0) + slopes[-1] * jnp.maximum(o - kinks[-1], 0.0)
        at_kink = lowest = jnp.zeros_like(o)
        for left, right, a in zip(kinks[:-1], kinks[1:], slopes[1:-1], strict=True):
            value = value + a * jnp.clip(o - left, 0.0, right - left)
            at_kink = at_kink + a * (right - left)
            lowest = jnp.minimum(lowest, at_kink)
        return value - lowest

    def scale(self, y, hp):
        """The steepest slope: C for the hinge."""
        _, slopes = self.kinks_and_slopes(y, hp)
        return jnp.maximum(jnp.abs(slopes[0]), jnp.abs(slopes[-1]))
