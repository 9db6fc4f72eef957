"""The smoothed hinge, and the logistic loss, which is its shape with another margin."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from ..types import Array
from .base import Loss

__all__ = ["EXAMPLES", "SmoothHinge"]


@jax.custom_jvp
def softplus(x: Array) -> Array:
    """log(1 + e^x), with one exponential in its value and one in each of its derivatives.

    logaddexp's derivative takes its value once more and two further exponentials, and a Newton step asks for a value, a
    slope and a curvature.
    """
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return softplus(*primals), lax.logistic(primals[0]) * tangents[0]


def sigmoid_interval(z: Array, y: Array, sc: Array, centre: float, mu: Array) -> tuple[Array, Array]:
    """The outputs at which y z = sc * sigmoid(mu (centre - y o)), for z moved into [0, sc].

    y o = centre - logit(q) / mu with q = y z / sc; q at 0 or 1, which no output attains, opens the
    interval to that side.
    """
    kind = jnp.finfo(z.dtype)
    q = y * z / jnp.where(sc > 0, sc, 1.0)
    inside = jnp.clip(q, kind.tiny, 1.0 - 0.5 * kind.eps)
    margin = centre - (jnp.log(inside) - jnp.log1p(-inside)) / mu
    least = jnp.where((q >= 1.0) | (sc <= 0), -jnp.inf, margin)
    most = jnp.where((q <= 0.0) | (sc <= 0), jnp.inf, margin)
    return jnp.where(y > 0, least, -most), jnp.where(y > 0, most, -least)


class SmoothHinge(Loss):
    """A hinge rounded over a width of about 1 / mu.

    Problem:     phi(o, y) = C log(1 + e^{mu (1 - m)}) / mu,  m = y o
    Optimality:  z = y s C sigmoid(mu (1 - m))
    Derivative:  phi'' = mu C q (1 - q) with q = sigmoid(mu (1 - m)); prox slope 1 / (1 + ts phi'')
    Source:      Klatzer & Pock, Continuous Hyper-parameter Learning for Support Vector Machines: the smoothed
                 hinge of sharpness mu, here times C.  mu is held: tuning it would tune the approximation.
    """

    labels = True
    smooth: ClassVar[bool | None] = True
    held: ClassVar[tuple[str, ...]] = ("mu",)
    C: float = 1.0
    mu: float = 10.0

    def phi(self, o, y, hp):
        return hp["C"] * softplus(hp["mu"] * (1.0 - y * o)) / hp["mu"]

    def init(self, X, y):
        return {"C": self.C, "mu": self.mu}

    def interval(self, z, y, s, hp):
        z, y, s, hp = lax.stop_gradient((z, y, s, hp))
        return sigmoid_interval(z, y, s * hp["C"], 1.0, hp["mu"] * jnp.ones_like(z))


EXAMPLES = [SmoothHinge(), SmoothHinge(C=0.5, mu=100.0)]
