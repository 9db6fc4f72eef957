"""The F-measure of the positive class."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ._smoothed import Smoothed

__all__ = ["EXAMPLES", "FMeasure"]


class FMeasure(Smoothed):
    """One minus the smoothed F-measure (F1) of the positive class.

    Problem:    V = 1 - F,  F = 2 tp / (n+ + tp + fp),  tp = n+ - fn,
                fn, fp sums of sigma(-s1 y_l (o_l - s0)) over a class
    Hard:       1 - F of counts
    Derivative: of the formula; s1 = steepness / std(o), s0 by `threshold` ("tuned" is what F asks for)
    Source:     Keerthi, Sindhwani & Chapelle, who minimise -F; one more makes it at least 0 like every criterion.
    """

    weighs_errors: ClassVar[bool] = True

    def problem_with(self, y):
        if not np.any(np.asarray(y) > 0):
            return "has no F-measure without a positive row: y holds no +1"
        return super().problem_with(y)

    def measure(self, fn, fp, pos, neg):
        # without a positive row there is nothing to find, and no number would say so
        return jnp.where(pos > 0, (fn + fp) / (2.0 * pos - fn + fp), jnp.nan)


EXAMPLES = [FMeasure(), FMeasure(threshold="tuned")]
