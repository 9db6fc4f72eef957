"""The squared hinge loss."""

from typing import ClassVar

import jax.numpy as jnp

from .piecewise import Pieces, Piecewise, mirror, squared_part

__all__ = ["EXAMPLES", "SquaredHinge"]


class SquaredHinge(Piecewise):
    """The squared hinge, LIBLINEAR's L2-loss classifier.

    Problem:     phi(o, y) = C (1 - m)_+^2,  m = y o
    Optimality:  z = 2 s C y (1 - m)_+
    Derivative:  phi' = -2 C y (1 - m)_+,  phi'' = 2 C below m = 1 and 0 above; prox slope 1 / (1 + 2 ts C) or 1
    Source:      Chu, Ho, Tsai, Lin & Lin, Warm Start for Parameter Selection of Linear Classifiers: L2-loss SVM.
    """

    labels = True
    smooth: ClassVar[bool | None] = True
    C: float = 1.0

    def phi(self, o, y, hp):
        return hp["C"] * squared_part(1.0 - y * o)

    def init(self, X, y):
        return {"C": self.C}

    def pieces(self, y, hp):
        one, flat = jnp.ones_like(y), jnp.zeros_like(y)
        return mirror(y, Pieces((one,), (flat, flat), (2.0 * hp["C"] * one, flat)))


EXAMPLES = [SquaredHinge(), SquaredHinge(C=0.3)]
