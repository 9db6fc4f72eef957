"""The error rate, smoothed by a sigmoid whose steepness follows the spread of the outputs."""

from ._smoothed import Smoothed

__all__ = ["EXAMPLES", "SmoothError"]


class SmoothError(Smoothed):
    """Smoothed error rate.

    Problem:    V = sum_l w_l sigma(-s1 y_l (o_l - s0)) / sum_l w_l,   s1 = steepness / std(o), s0 by `threshold`
    Hard:       the error rate at s0
    Derivative: of the formula, the spread included; V does not change when all outputs are scaled
    Source:     Keerthi, Sindhwani & Chapelle, er with the direct choice of sigma_1 (population standard deviation);
                outputs that are all equal give the error of the constant classifier and a zero gradient.
    """

    def measure(self, fn, fp, pos, neg):
        return (fn + fp) / (pos + neg)


EXAMPLES = [SmoothError(), SmoothError(steepness=3.0, threshold="tuned")]
