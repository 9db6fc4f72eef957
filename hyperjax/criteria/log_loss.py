"""The logistic loss of held-out outputs."""

import jax.numpy as jnp

from .base import Criterion

__all__ = ["EXAMPLES", "LogLoss"]


class LogLoss(Criterion):
    """Mean logistic loss.

    Problem:    V = sum_l w_l log(1 + exp(-y_l o_l)) / sum_l w_l
    Derivative: of the formula
    Source:     the negative log-likelihood of outputs read as log-odds
    """

    def value(self, o, y, w, hp):
        return jnp.sum(w * jnp.logaddexp(0.0, -y * o)) / jnp.maximum(jnp.sum(w), 1.0)


EXAMPLES = [LogLoss()]
