"""The Gaussian kernel."""

import jax.numpy as jnp

from .base import Kernel
from .pairs import default_gamma, squared_distances, start

__all__ = ["RBF"]


class RBF(Kernel):
    """The Gaussian kernel with one width.

    Problem: k(x, z) = exp(-gamma |x - z|^2), gamma > 0; gamma starts at 1/(d var(X)).
    Derivative: dK/dgamma = -D o K with D the squared distances, which do not depend on gamma;
    dk/dx = -2 gamma (x - z) k.
    Source: Keerthi, Sindhwani & Chapelle, An efficient method for gradient-based adaptation of
    hyperparameters in SVM models, NIPS 2006 (their width is sigma^2 = 1/(2 gamma)).
    """

    gamma: float | None = None

    def k(self, x, z, hp):
        return jnp.exp(-hp["gamma"] * jnp.sum((x - z) ** 2))

    def init(self, X, y):
        X = self.select(X)
        return {"gamma": start(self.gamma, default_gamma(X), X)}

    def cross(self, hp, X, Z):
        return jnp.exp(-hp["gamma"] * squared_distances(self.select(X), self.select(Z)))

    def diagonal(self, hp, X):
        return jnp.ones_like(X[:, 0])


EXAMPLES = [RBF(), RBF(gamma=0.7, columns=(1, 2))]
