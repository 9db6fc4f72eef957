"""The smooth zero-one loss of fixed sharpness."""

from typing import ClassVar

import jax

from ._smoothing import mean, not_positive
from .base import Criterion
from .error_rate import error_rate

__all__ = ["EXAMPLES", "ZeroOne"]


class ZeroOne(Criterion):
    """Smooth zero-one loss: a sigmoid of the margin, whatever the scale of the outputs.

    Problem:    V = sum_l w_l sigma(-mu y_l o_l) / sum_l w_l
    Hard:       the error rate
    Derivative: of the formula
    Source:     Klatzer & Pock, the outer zero-one loss with mu = 12 (printed as a vector; this is its mean)
    """

    labels: ClassVar[bool] = True
    mu: float = 12.0

    def problem_with(self, y):
        return not_positive(mu=self.mu)

    def value(self, o, y, w, hp):
        return mean(jax.nn.sigmoid(-self.mu * y * o), w)

    def hard(self, o, y, w, hp):
        return error_rate(o, y, w)


EXAMPLES = [ZeroOne()]
