"""The error rate expected from calibrated probabilities."""

from ..types import static
from ._smoothed import Smoothed

__all__ = ["EXAMPLES", "PlattError"]


class PlattError(Smoothed):
    """Probabilistic error rate.

    Problem:    V = sum_l w_l (1 - p_l) / sum_l w_l,   p_l = sigma(s1 y_l (o_l - s0)), s0 and s1 fitted to likelihood
    Hard:       the error rate at the fitted s0
    Derivative: of the formula, through the fit by the implicit function theorem
    Source:     Keerthi, Sindhwani & Chapelle, per with sigma_0, sigma_1 by minimisation; here with Platt's targets, so
                that separable outputs have a fit, and s1 >= 0, so that outputs worse than none count as none.
                With any other threshold it is SmoothError.
    """

    threshold: str = static(default="fitted")

    def measure(self, fn, fp, pos, neg):
        return (fn + fp) / (pos + neg)


EXAMPLES = [PlattError()]
