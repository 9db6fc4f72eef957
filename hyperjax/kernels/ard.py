"""The Gaussian kernel with one width a feature."""

import jax.numpy as jnp
import numpy as np

from .base import Kernel
from .pairs import default_gamma, exponential, squared_distances, start

__all__ = ["ARD"]


class ARD(Kernel):
    """The Gaussian kernel with automatic relevance determination: one width a feature.

    Problem: k(x, z) = exp(-sum_j gamma_j (x_j - z_j)^2), gamma (d,) positive; every gamma_j starts
    at 1/(d var(X)).
    Derivative: dK/dgamma_j = -D_j o K with D_j the squared differences in column j; u'dK/dgamma_j v
    is formed by matrix products without any D_j.  dk/dx_j = -2 gamma_j (x_j - z_j) k.
    Source: Keerthi, Sindhwani & Chapelle, NIPS 2006; Klatzer & Pock, Continuous hyper-parameter
    learning for support vector machines, CVWW 2015.
    """

    gamma: float | None = None

    def k(self, x, z, hp):
        return jnp.exp(-jnp.sum(hp["gamma"] * (x - z) ** 2))

    def init(self, X, y):
        X = self.select(X)
        gamma = start(self.gamma, default_gamma(X), X)
        return {"gamma": jnp.broadcast_to(gamma, (X.shape[1],)) if gamma.ndim == 0 else gamma}

    def cross(self, hp, X, Z):
        return jnp.exp(-squared_distances(self.select(X), self.select(Z), hp["gamma"]))

    def again(self, hp, X, Z, K):
        return exponential(K, -squared_distances(self.select(X), self.select(Z), hp["gamma"]))

    def diagonal(self, hp, X):
        return jnp.ones_like(X[:, 0])

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        shape, d = np.shape(hp["gamma"]), self.select(X).shape[1]
        if shape != (d,):
            return f"ARD needs one gamma a column, shape ({d},), and found shape {shape}; start from init(X, y)"
        return None


EXAMPLES = [ARD(), ARD(gamma=0.4, columns=(0, 2))]
