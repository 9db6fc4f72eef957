"""The logistic loss."""

from typing import ClassVar

import jax.numpy as jnp
from jax import lax

from .base import Loss
from .smooth_hinge import sigmoid_interval, softplus

__all__ = ["EXAMPLES", "Logistic"]


class Logistic(Loss):
    """The loss of logistic regression.

    Problem:     phi(o, y) = C log(1 + e^{-m}),  m = y o
    Optimality:  z = y s C sigmoid(-m)
    Derivative:  phi'' = C q (1 - q) with q = sigmoid(-m); prox slope 1 / (1 + ts phi'')
    Source:      Chu, Ho, Tsai, Lin & Lin, Warm Start for Parameter Selection of Linear Classifiers: logistic
                 regression.
    """

    labels = True
    smooth: ClassVar[bool | None] = True
    C: float = 1.0

    def phi(self, o, y, hp):
        return hp["C"] * softplus(-y * o)

    def init(self, X, y):
        return {"C": self.C}

    def interval(self, z, y, s, hp):
        z, y, s, hp = lax.stop_gradient((z, y, s, hp))
        return sigmoid_interval(z, y, s * hp["C"], 0.0, jnp.ones_like(z))


EXAMPLES = [Logistic(), Logistic(C=4.0)]
