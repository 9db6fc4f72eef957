"""The share of the targets' variance that outputs leave unexplained."""

import jax.numpy as jnp
import numpy as np

from ._smoothing import mean
from .base import Criterion

__all__ = ["EXAMPLES", "R2"]


class R2(Criterion):
    """One minus the coefficient of determination.

    Problem:    V = sum_l w_l (o_l - y_l)^2 / sum_l w_l (y_l - mean(y))^2
    Hard:       itself
    Derivative: of the formula
    Source:     the usual R2; the mean is that of the tested rows
    """

    def problem_with(self, y):
        return "has no variance to explain: all of y is equal" if np.ptp(np.asarray(y)) == 0 else None

    def value(self, o, y, w, hp):
        return jnp.sum(w * (o - y) ** 2) / jnp.sum(w * (y - mean(y, w)) ** 2)


EXAMPLES = [R2()]
