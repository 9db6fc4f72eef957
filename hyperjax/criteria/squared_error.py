"""The squared error of held-out outputs."""

from ._smoothing import mean
from .base import Criterion

__all__ = ["EXAMPLES", "SquaredError"]


class SquaredError(Criterion):
    """Mean squared error.

    Problem:    V = sum_l w_l (o_l - y_l)^2 / sum_l w_l
    Hard:       itself
    Derivative: of the formula
    Source:     Moore, Bergeron & Bennett, the outer objective (Klatzer & Pock take half of it)
    """

    def value(self, o, y, w, hp):
        return mean((o - y) ** 2, w)


EXAMPLES = [SquaredError()]
