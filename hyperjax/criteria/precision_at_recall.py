"""The precision where a given share of the positive class is found."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ._curve import counts_at_outputs
from ._smoothing import classes, cut, not_positive, one_class, spread
from .base import Criterion

__all__ = ["EXAMPLES", "PrecisionAtRecall"]


class PrecisionAtRecall(Criterion):
    """One minus the precision at a given recall.

    Problem:    V = fp / (tp + fp) with tp = recall n+;   tp, fp sums of sigma(s1 (o_l - s0)) over a class,
                s1 = steepness / std(o), s0 the point where the smoothed recall is the given one
    Hard:       1 - precision at the highest cut whose recall is at least the given one
    Derivative: of the formula, through s0 by the implicit function theorem; outputs that are all equal give the share
                of the negative class and a zero gradient
    Source:     Keerthi, Sindhwani & Chapelle name it among their validation functions
    """

    labels: ClassVar[bool] = True
    recall: float = 0.8
    steepness: float = 10.0

    def problem_with(self, y):
        if not 0 < float(np.asarray(self.recall)) < 1:
            return f"needs a recall strictly between 0 and 1, found {float(self.recall):g}"
        return one_class(y) or not_positive(steepness=self.steepness)

    def value(self, o, y, w, hp):
        positive, negative = classes(y, w)
        _, std, differ = spread(o, w)
        s1, level = self.steepness / std, jnp.where(differ, o, 0.0)
        tp = self.recall * jnp.sum(positive)
        s0 = cut(level, positive, s1, tp)
        fp = jnp.sum(negative * jax.nn.sigmoid(s1 * (level - s0)))
        return fp / (tp + fp)

    def hard(self, o, y, w, hp):
        positive, _ = classes(y, w)
        tp, _ = counts_at_outputs(o, positive)
        found, _ = counts_at_outputs(o, w)
        # sums of weights in another order may miss the recall they reach by rounding
        enough = tp >= self.recall * jnp.sum(positive) * (1.0 - 100.0 * float(jnp.finfo(o.dtype).eps))
        at = jnp.argmax(jnp.where(enough & (w > 0), o, -jnp.inf))
        return jnp.where(jnp.sum(positive) > 0, 1.0 - tp[at] / found[at], jnp.nan)


EXAMPLES = [PrecisionAtRecall(), PrecisionAtRecall(recall=0.35, steepness=3.0)]
