"""The squared epsilon-insensitive loss."""

from typing import ClassVar

import jax.numpy as jnp

from ..domains import Domain, NonNegative
from .piecewise import Pieces, Piecewise, squared_part

__all__ = ["EXAMPLES", "SquaredEpsilonInsensitive"]


class SquaredEpsilonInsensitive(Piecewise):
    """The differentiable tube of support vector regression, LIBLINEAR's L2-loss regression.

    Problem:     phi(o, y) = C (|r| - eps)_+^2,  r = o - y
    Optimality:  z = -2 s C sign(r) (|r| - eps)_+
    Derivative:  phi'' = 2 C outside the tube, 0 inside
    Source:      Moore, Bergeron & Bennett, Model selection for primal SVM; with `Grouped` a pair (C_g, eps_g) for
                 every group of rows (their multiSVR).
    """

    smooth: ClassVar[bool | None] = True
    domains: ClassVar[dict[str, Domain]] = {"eps": NonNegative()}
    C: float = 1.0
    eps: float = 0.1

    def phi(self, o, y, hp):
        r, eps = o - y, hp["eps"]
        return hp["C"] * (squared_part(r - eps) + squared_part(-r - eps))

    def init(self, X, y):
        return {"C": self.C, "eps": self.eps}

    def pieces(self, y, hp):
        flat, bend = jnp.zeros_like(y), 2.0 * hp["C"] * jnp.ones_like(y)
        return Pieces((y - hp["eps"], y + hp["eps"]), (flat, flat, flat), (bend, flat, bend))

    def scale(self, y, hp):
        """|phi'| at y - 1 and y + 1, but at least C: a wide tube has no slope there."""
        cost = hp["C"] * jnp.ones_like(y)
        return cost * jnp.maximum(2.0 * (1.0 - hp["eps"]), 1.0)


EXAMPLES = [SquaredEpsilonInsensitive(), SquaredEpsilonInsensitive(C=2.0, eps=0.5)]
