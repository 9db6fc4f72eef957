"""The absolute error of held-out outputs, rounded at 0."""

import jax.numpy as jnp

from ._smoothing import mean, not_positive, spread
from .base import Criterion

__all__ = ["EXAMPLES", "AbsoluteError"]


class AbsoluteError(Criterion):
    """Mean absolute error, rounded over a share of the targets' spread.

    Problem:    V = sum_l w_l (sqrt(r_l^2 + h^2) - h) / sum_l w_l,   r = o - y,  h = width std(y);  at most h below |r|
    Hard:       the mean absolute error
    Derivative: of the formula (targets that are all equal: h = width)
    Source:     the pseudo-Huber form of the absolute validation error that the MPEC methods minimise to which
                Moore, Bergeron & Bennett compare theirs
    """

    width: float = 0.05

    def problem_with(self, y):
        return not_positive(width=self.width)

    def value(self, o, y, w, hp):
        h = self.width * spread(y, w)[1]
        r = o - y
        # r^2 / (sqrt + h) is the same number without cancellation for small r
        return mean(r * r / (jnp.sqrt(r * r + h * h) + h), w)

    def hard(self, o, y, w, hp):
        return mean(jnp.abs(o - y), w)


EXAMPLES = [AbsoluteError(), AbsoluteError(width=0.5)]
