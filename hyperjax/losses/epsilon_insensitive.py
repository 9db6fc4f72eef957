"""The epsilon-insensitive loss."""

from typing import ClassVar

import jax.numpy as jnp

from ..domains import Domain, NonNegative
from .piecewise import PiecewiseLinear

__all__ = ["EXAMPLES", "EpsilonInsensitive"]


class EpsilonInsensitive(PiecewiseLinear):
    """The tube of support vector regression.

    Problem:     phi(o, y) = C (|r| - eps)_+,  r = o - y
    Optimality:  -s C <= z <= s C; z > 0 free keeps o = y - eps, z < 0 free keeps o = y + eps
    Derivative:  prox clips at both edges of the tube, which move with y and eps
    Source:      Smola & Scholkopf, A tutorial on support vector regression (2004), equation 4;
                 Moore, Bergeron & Bennett, Model selection for primal SVM, for (C, eps) as hyperparameters.
    """

    domains: ClassVar[dict[str, Domain]] = {"eps": NonNegative()}
    C: float = 1.0
    eps: float = 0.1

    def phi(self, o, y, hp):
        return hp["C"] * jnp.maximum(jnp.abs(o - y) - hp["eps"], 0.0)

    def init(self, X, y):
        return {"C": self.C, "eps": self.eps}

    def kinks_and_slopes(self, y, hp):
        steep = hp["C"] * jnp.ones_like(y)
        return (y - hp["eps"], y + hp["eps"]), (-steep, jnp.zeros_like(y), steep)


EXAMPLES = [EpsilonInsensitive(), EpsilonInsensitive(C=2.0, eps=0.5)]
