"""The squared loss."""

from typing import ClassVar

import jax.numpy as jnp

from .piecewise import Pieces, Piecewise

__all__ = ["EXAMPLES", "Squared"]


class Squared(Piecewise):
    """Kernel ridge regression, or the least squares SVM when y holds labels.

    Problem:     phi(o, y) = C r^2,  r = o - y
    Optimality:  z = -2 s C r
    Derivative:  phi'' = 2 C; prox = (v + 2 ts C y) / (1 + 2 ts C)
    Source:      Saunders, Gammerman & Vovk, Ridge regression learning algorithm in dual variables (1998);
                 their ridge parameter is 1 / (2 C).
    """

    smooth: ClassVar[bool | None] = True
    C: float = 1.0

    def phi(self, o, y, hp):
        return hp["C"] * (o - y) ** 2

    def init(self, X, y):
        return {"C": self.C}

    def pieces(self, y, hp):
        flat, bend = jnp.zeros_like(y), 2.0 * hp["C"] * jnp.ones_like(y)
        return Pieces((y,), (flat, flat), (bend, bend))


EXAMPLES = [Squared(), Squared(C=0.3)]
