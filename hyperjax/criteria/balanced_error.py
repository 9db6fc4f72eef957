"""The error rate with both classes counting alike."""

from typing import ClassVar

from ._smoothed import Smoothed
from ._smoothing import one_class

__all__ = ["EXAMPLES", "BalancedError"]


class BalancedError(Smoothed):
    """Mean of the two classes' smoothed error rates.

    Problem:    V = (fn / n+ + fp / n-) / 2,   fn, fp sums of sigma(-s1 y_l (o_l - s0)) over a class
    Hard:       one minus the balanced accuracy
    Derivative: of the formula; s1 = steepness / std(o), s0 by `threshold`
    Source:     Keerthi, Sindhwani & Chapelle, wer with kappa = n+ / n-
    """

    weighs_errors: ClassVar[bool] = True

    def problem_with(self, y):
        return one_class(y) or super().problem_with(y)

    def measure(self, fn, fp, pos, neg):
        return 0.5 * (fn / pos + fp / neg)


EXAMPLES = [BalancedError(), BalancedError(threshold="tuned")]
