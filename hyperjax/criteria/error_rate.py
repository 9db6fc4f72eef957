"""The error rate itself."""

from typing import ClassVar

from ._smoothing import mean
from .base import Criterion

__all__ = ["EXAMPLES", "ErrorRate"]


class ErrorRate(Criterion):
    """The share of rows on the wrong side of 0; an output of exactly 0 predicts +1.

    Problem:    V = sum_l w_l [sign(o_l) != y_l] / sum_l w_l
    Hard:       itself
    Derivative: 0 wherever it exists: gradients cannot tune it, SmoothError takes its place
    Source:     Keerthi, Sindhwani & Chapelle, er with the unit step, and one prediction rule for both classes
    """

    labels: ClassVar[bool] = True
    smooth = False

    def value(self, o, y, w, hp):
        return error_rate(o, y, w)


def error_rate(o, y, w):
    """The weighted share of rows whose output has the wrong sign."""
    return mean(((o >= 0) != (y > 0)).astype(o.dtype), w)


EXAMPLES = [ErrorRate()]
