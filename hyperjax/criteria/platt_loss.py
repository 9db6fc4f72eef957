"""The negative log-likelihood of calibrated probabilities."""

import jax
import jax.numpy as jnp

from ..types import static
from ._smoothed import Smoothed
from ._smoothing import mean

__all__ = ["EXAMPLES", "PlattLoss"]


class PlattLoss(Smoothed):
    """Mean negative log-likelihood under a Platt sigmoid.

    Problem:    V = -sum_l w_l log p_l / sum_l w_l,   p_l = sigma(s1 y_l (o_l - s0)), s0 and s1 fitted
    Hard:       the error rate at the fitted s0
    Derivative: of the formula, through the fit by the implicit function theorem.  (V counts labels, the fit Platt's
                targets: the terms of s0 and s1 are small but not 0.)
    Source:     Keerthi, Sindhwani & Chapelle, N_nll by minimisation, per row; here with Platt's targets, so that
                separable outputs have a fit, and s1 >= 0.  Other thresholds give s1 = steepness / std(o).
    """

    threshold: str = static(default="fitted")

    def value(self, o, y, w, hp):
        odds, informed = self.odds(o, y, w, hp)
        # a constant classifier has no finite likelihood of its own: even odds, and no gradient
        odds = jnp.where(informed, odds, jax.lax.stop_gradient(jnp.zeros_like(odds)))
        return mean(jnp.logaddexp(0.0, -y * odds), w)

    def measure(self, fn, fp, pos, neg):
        return (fn + fp) / (pos + neg)


EXAMPLES = [PlattLoss(), PlattLoss(steepness=2.0, threshold="tuned")]
