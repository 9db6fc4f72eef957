"""The pinball loss."""

from typing import ClassVar

import jax.numpy as jnp

from ..domains import Domain, Interval
from .piecewise import PiecewiseLinear

__all__ = ["EXAMPLES", "Pinball"]


class Pinball(PiecewiseLinear):
    """Quantile regression: the fit leaves a share tau of the targets below it.

    Problem:     phi(o, y) = C (tau r_+ + (1 - tau) (-r)_+),  r = y - o
    Optimality:  -s C (1 - tau) <= z <= s C tau; a free z keeps o = y
    Derivative:  prox clips at y
    Source:      Takeuchi, Le, Sears & Smola, Nonparametric quantile estimation (2006), equation 5.
    """

    domains: ClassVar[dict[str, Domain]] = {"tau": Interval(0.0, 1.0)}
    C: float = 1.0
    tau: float = 0.5

    def phi(self, o, y, hp):
        r, tau = y - o, hp["tau"]
        return hp["C"] * (tau * jnp.maximum(r, 0.0) + (1.0 - tau) * jnp.maximum(-r, 0.0))

    def init(self, X, y):
        return {"C": self.C, "tau": self.tau}

    def kinks_and_slopes(self, y, hp):
        cost, tau = hp["C"] * jnp.ones_like(y), hp["tau"]
        return (y,), (-cost * tau, cost * (1.0 - tau))


EXAMPLES = [Pinball(), Pinball(C=2.0, tau=0.9)]
