"""The logistic loss of held-out outputs."""

from typing import ClassVar

import jax.numpy as jnp

from ._smoothing import mean
from .base import Criterion
from .error_rate import error_rate

__all__ = ["EXAMPLES", "LogLoss"]


class LogLoss(Criterion):
    """Mean logistic loss.

    Problem:    V = sum_l w_l log(1 + exp(-y_l o_l)) / sum_l w_l
    Hard:       the error rate
    Derivative: of the formula
    Source:     the negative log-likelihood of outputs read as log-odds
    """

    labels: ClassVar[bool] = True

    def value(self, o, y, w, hp):
        return mean(jnp.logaddexp(0.0, -y * o), w)

    def hard(self, o, y, w, hp):
        return error_rate(o, y, w)


EXAMPLES = [LogLoss()]
