"""The hinge loss of held-out outputs."""

from typing import ClassVar

import jax.numpy as jnp

from ._smoothing import mean
from .base import Criterion
from .error_rate import error_rate

__all__ = ["EXAMPLES", "HingeLoss"]


class HingeLoss(Criterion):
    """Mean hinge loss.

    Problem:    V = sum_l w_l (1 - y_l o_l)_+ / sum_l w_l
    Hard:       the error rate
    Derivative: of the formula except at margins of exactly 1, where it is a subgradient; SmoothHingeLoss has none
                of these kinks
    Source:     Klatzer & Pock, the outer hinge loss for mu -> infinity, as a mean
    """

    labels: ClassVar[bool] = True
    smooth = False

    def value(self, o, y, w, hp):
        return mean(jnp.maximum(1.0 - y * o, 0.0), w)

    def hard(self, o, y, w, hp):
        return error_rate(o, y, w)


EXAMPLES = [HingeLoss()]
