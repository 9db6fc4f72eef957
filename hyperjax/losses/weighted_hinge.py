"""The hinge loss with costs and margins of its own for each class."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ..domains import Domain, Real
from .piecewise import Pieces, PiecewiseLinear, mirror

__all__ = ["EXAMPLES", "WeightedHinge"]


class WeightedHinge(PiecewiseLinear):
    """The hinge with class-wise costs and margins.

    Problem:     phi(o, y) = C_i (m_i - y o)_+,  C_i = C_pos, m_i = m_pos where y = 1, else C_neg and m_neg
    Optimality:  z = y alpha with 0 <= alpha <= s C_i; a free alpha keeps y o = m_i
    Derivative:  that of the hinge with its kink at y m_i, which moves with the margin
    Source:      Keerthi, Sindhwani & Chapelle, An Efficient Method for Gradient-Based Adaptation of
                 Hyperparameters in SVM Models: class-wise costs and margins.  A margin may be negative as long
                 as m_pos + m_neg > 0: otherwise a constant function has no loss.
    """

    labels = True
    domains: ClassVar[dict[str, Domain]] = {"m_pos": Real(), "m_neg": Real()}
    C_pos: float = 1.0
    C_neg: float = 1.0
    m_pos: float = 1.0
    m_neg: float = 1.0

    def phi(self, o, y, hp):
        cost, margin = self._of_class(y, hp)
        return cost * jnp.maximum(margin - y * o, 0.0)

    def init(self, X, y):
        return {"C_pos": self.C_pos, "C_neg": self.C_neg, "m_pos": self.m_pos, "m_neg": self.m_neg}

    def kinks_and_slopes(self, y, hp):
        cost, margin = self._of_class(y, hp)
        flat = jnp.zeros_like(y)
        turned = mirror(y, Pieces((margin,), (-cost, flat), (flat, flat)))
        return turned.kinks, turned.slopes

    def problem_with(self, y, hp):
        if np.any(np.asarray(hp["m_pos"]) + np.asarray(hp["m_neg"]) <= 0):
            return "m_pos + m_neg must be positive"
        return None

    def _of_class(self, y, hp):
        one = jnp.ones_like(y)
        # a function without any loss is no solution: NaN makes it the code NONFINITE, where no error can be raised
        real = jnp.where(hp["m_pos"] + hp["m_neg"] > 0, one, jnp.nan)
        cost = jnp.where(y > 0, hp["C_pos"] * one, hp["C_neg"] * one)
        return real * cost, real * jnp.where(y > 0, hp["m_pos"] * one, hp["m_neg"] * one)


EXAMPLES = [WeightedHinge(), WeightedHinge(C_pos=2.0, C_neg=0.5, m_pos=1.5, m_neg=-0.25)]
