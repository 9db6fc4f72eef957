"""The hinge loss of held-out outputs, rounded."""

from typing import ClassVar

import jax.numpy as jnp

from ._smoothing import mean, not_positive
from .base import Criterion
from .error_rate import error_rate

__all__ = ["EXAMPLES", "SmoothHingeLoss"]


class SmoothHingeLoss(Criterion):
    """Mean hinge loss, rounded over a width of about 1 / mu.

    Problem:    V = sum_l w_l log(1 + exp(mu (1 - y_l o_l))) / mu / sum_l w_l;  at most log(2) / mu above the hinge's
    Hard:       the error rate
    Derivative: of the formula
    Source:     Klatzer & Pock, the outer hinge loss (they sum, this is a mean)
    """

    labels: ClassVar[bool] = True
    mu: float = 10.0

    def problem_with(self, y):
        return not_positive(mu=self.mu)

    def value(self, o, y, w, hp):
        return mean(jnp.logaddexp(0.0, self.mu * (1.0 - y * o)) / self.mu, w)

    def hard(self, o, y, w, hp):
        return error_rate(o, y, w)


EXAMPLES = [SmoothHingeLoss(), SmoothHingeLoss(mu=3.0)]
