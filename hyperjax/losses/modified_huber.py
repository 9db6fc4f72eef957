"""The modified Huber loss."""

from typing import ClassVar

import jax.numpy as jnp

from .piecewise import Pieces, Piecewise, mirror, squared_part

__all__ = ["EXAMPLES", "ModifiedHuber"]


class ModifiedHuber(Piecewise):
    """A squared hinge that goes on as a straight line below m = -1, so that outliers pull no harder.

    Problem:     phi(o, y) = C (1 - m)_+^2 where m >= -1,  -4 C m below;  m = y o
    Optimality:  z = y alpha with 0 <= alpha = min(2 (1 - m)_+, 4) s C
    Derivative:  phi'' = 2 C for -1 < m < 1, else 0
    Source:      Zhang, Solving large scale linear prediction problems using stochastic gradient descent
                 algorithms (2004); scikit-learn's "modified_huber", here times C.
    """

    labels = True
    smooth: ClassVar[bool | None] = True
    C: float = 1.0

    def phi(self, o, y, hp):
        m = y * o
        return hp["C"] * jnp.where(m >= -1.0, squared_part(1.0 - m), -4.0 * m)

    def init(self, X, y):
        return {"C": self.C}

    def pieces(self, y, hp):
        one, flat = jnp.ones_like(y), jnp.zeros_like(y)
        steep, bend = -4.0 * hp["C"] * one, 2.0 * hp["C"] * one
        return mirror(y, Pieces((-one, one), (steep, steep, flat), (flat, bend, flat)))


EXAMPLES = [ModifiedHuber(), ModifiedHuber(C=0.7)]
