"""The squared error of held-out outputs."""

import jax.numpy as jnp

from .base import Criterion

__all__ = ["EXAMPLES", "SquaredError"]


class SquaredError(Criterion):
    """Mean squared error.

    Problem:    V = sum_l w_l (o_l - y_l)^2 / sum_l w_l
    Derivative: of the formula
    Source:     Moore, Bergeron & Bennett, the outer objective
    """

    def value(self, o, y, w, hp):
        return jnp.sum(w * (o - y) ** 2) / jnp.maximum(jnp.sum(w), 1.0)


EXAMPLES = [SquaredError()]
