"""The hinge loss."""

import jax.numpy as jnp

from .piecewise import Pieces, PiecewiseLinear, mirror

__all__ = ["EXAMPLES", "Hinge"]


class Hinge(PiecewiseLinear):
    """The hinge of the support vector classifier.

    Problem:     phi(o, y) = C (1 - m)_+,  m = y o
    Optimality:  z = y alpha with 0 <= alpha <= s C; a free alpha keeps m = 1
    Derivative:  prox clips: v + ts C y below the kink, y on it, v above it; slope 1, 0, 1
    Source:      Jiang & Siddiqui, Hyper-parameter Optimization for Support Vector Machines using Stochastic
                 Gradient Descent and Dual Coordinate Descent: their L1-loss SVM.  C multiplies the sum.
    """

    labels = True
    C: float = 1.0

    def phi(self, o, y, hp):
        return hp["C"] * jnp.maximum(1.0 - y * o, 0.0)

    def init(self, X, y):
        return {"C": self.C}

    def kinks_and_slopes(self, y, hp):
        one, flat = jnp.ones_like(y), jnp.zeros_like(y)
        turned = mirror(y, Pieces((one,), (-hp["C"] * one, flat), (flat, flat)))
        return turned.kinks, turned.slopes


EXAMPLES = [Hinge(), Hinge(C=3.0)]
