"""The point where precision and recall are equal."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from ._curve import counts_at_outputs
from ._smoothing import classes, cut, not_positive, one_class, spread
from .base import Criterion

__all__ = ["EXAMPLES", "BreakEven"]


class BreakEven(Criterion):
    """One minus the break-even point of precision and recall.

    Problem:    V = 1 - tp / n+,   tp = sum over the positive class of sigma(s1 (o_l - s0)), s1 = steepness / std(o),
                s0 the point where as many rows are predicted positive as are: tp + fp = n+, so precision = recall
    Hard:       the same of counts; rows tied at the cut share it in proportion
    Derivative: of the formula, through s0 by the implicit function theorem; outputs that are all equal give the share
                of the negative class and a zero gradient
    Source:     Keerthi, Sindhwani & Chapelle name it among their validation functions
    """

    labels: ClassVar[bool] = True
    steepness: float = 10.0

    def problem_with(self, y):
        return one_class(y) or not_positive(steepness=self.steepness)

    def value(self, o, y, w, hp):
        positive, _ = classes(y, w)
        _, std, differ = spread(o, w)
        s1, level = self.steepness / std, jnp.where(differ, o, 0.0)
        s0 = cut(level, w, s1, jnp.sum(positive))
        return jnp.sum(positive * jax.nn.sigmoid(-s1 * (level - s0))) / jnp.sum(positive)

    def hard(self, o, y, w, hp):
        positive, _ = classes(y, w)
        n_pos = jnp.sum(positive)
        tp, tp_above = counts_at_outputs(o, positive)
        found, found_above = counts_at_outputs(o, w)
        # the cut falls at the highest row that brings the rows found up to n+
        at = jnp.argmax(jnp.where((found >= n_pos) & (w > 0), o, -jnp.inf))
        part = (n_pos - found_above[at]) / (found[at] - found_above[at])
        return 1.0 - (tp_above[at] + part * (tp[at] - tp_above[at])) / n_pos


EXAMPLES = [BreakEven(), BreakEven(steepness=3.0)]
