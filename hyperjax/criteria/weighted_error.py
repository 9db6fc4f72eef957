"""The error rate with a price of its own for false positives."""

from typing import ClassVar

from ._smoothed import Smoothed
from ._smoothing import not_positive

__all__ = ["EXAMPLES", "WeightedError"]


class WeightedError(Smoothed):
    """Smoothed error rate in which a false positive costs kappa false negatives.

    Problem:    V = (fn + kappa fp) / (n+ + kappa n-),   fn, fp sums of sigma(-s1 y_l (o_l - s0)) over a class
    Hard:       the same of counts
    Derivative: of the formula; s1 = steepness / std(o), s0 by `threshold`
    Source:     Keerthi, Sindhwani & Chapelle, wer (their cost ratio eta is kappa)
    """

    weighs_errors: ClassVar[bool] = True
    kappa: float = 1.0

    def problem_with(self, y):
        return not_positive(kappa=self.kappa) or super().problem_with(y)

    def measure(self, fn, fp, pos, neg):
        return (fn + self.kappa * fp) / (pos + self.kappa * neg)


EXAMPLES = [WeightedError(kappa=0.1), WeightedError(kappa=3.0, threshold="tuned")]
