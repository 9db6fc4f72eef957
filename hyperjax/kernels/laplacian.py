"""The Laplacian kernel."""

import jax.numpy as jnp

from .base import Kernel
from .pairs import default_gamma, start, sum_over_features

__all__ = ["Laplacian"]


class Laplacian(Kernel):
    """The exponential of the city-block distance.

    Problem: k(x, z) = exp(-gamma sum_j |x_j - z_j|), gamma > 0; gamma starts at 1/(d var(X)).
    Derivative: dK/dgamma = -D o K with D the distances; dk/dx_j = -gamma sign(x_j - z_j) k, with
    sign(0) = 0 where the kernel has its kink.
    Source: textbook.
    """

    gamma: float | None = None

    def k(self, x, z, hp):
        return jnp.exp(-hp["gamma"] * jnp.sum(jnp.abs(x - z)))

    def init(self, X, y):
        X = self.select(X)
        return {"gamma": start(self.gamma, default_gamma(X), X)}

    def cross(self, hp, X, Z):
        distances = sum_over_features(lambda x, z: jnp.abs(x - z), self.select(X), self.select(Z))
        return jnp.exp(-hp["gamma"] * distances)

    def diagonal(self, hp, X):
        return jnp.ones_like(X[:, 0])


EXAMPLES = [Laplacian(), Laplacian(gamma=0.5, columns=(2, 0))]
