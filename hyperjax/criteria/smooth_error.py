"""The error rate, smoothed by a sigmoid whose steepness follows the spread of the outputs."""

import jax
import jax.numpy as jnp

from .base import Criterion

__all__ = ["EXAMPLES", "SmoothError"]


class SmoothError(Criterion):
    """Smoothed error rate.

    Problem:    V = sum_l w_l sigma(-s1 y_l o_l) / sum_l w_l,   s1 = steepness / std(o)
    Derivative: of the formula, the spread included; V does not change when all outputs are scaled
    Source:     Keerthi, Sindhwani & Chapelle, er with the direct choice of sigma_1 (population standard deviation);
                outputs that are all equal give the error of the constant classifier and a zero gradient.
    """

    steepness: float = 10.0

    def value(self, o, y, w, hp):
        total = jnp.maximum(jnp.sum(w), 1.0)
        centred = jnp.where(w > 0, o - jnp.sum(w * o) / total, 0.0)
        variance = jnp.sum(w * centred * centred) / total
        floor = jnp.maximum(1e-12 * jnp.max(jnp.abs(w * o)), jnp.finfo(o.dtype).tiny ** 0.25) ** 2
        spread = variance > floor
        std = jnp.sqrt(jnp.where(spread, variance, 1.0))
        smoothed = jax.nn.sigmoid(-self.steepness * y * o / std)
        constant = jax.lax.stop_gradient(jnp.where(y * o > 0, 0.0, 1.0))
        return jnp.sum(w * jnp.where(spread, smoothed, constant)) / total


EXAMPLES = [SmoothError()]
