"""The Gaussian kernel."""

import jax.numpy as jnp

from ._decaying import Decaying
from .pairs import squared_distances

__all__ = ["RBF"]


class RBF(Decaying):
    """The Gaussian kernel with one width.

    Problem: k(x, z) = exp(-gamma |x - z|^2), gamma > 0; gamma starts at 1/(d var(X)).
    Derivative: dK/dgamma = -D o K with D the squared distances, which do not depend on gamma;
    dk/dx = -2 gamma (x - z) k.
    Source: Keerthi, Sindhwani & Chapelle, An efficient method for gradient-based adaptation of
    hyperparameters in SVM models, NIPS 2006 (their width is sigma^2 = 1/(2 gamma)).
    """

    def k(self, x, z, hp):
        return jnp.exp(-hp["gamma"] * jnp.sum((x - z) ** 2))

    def distances(self, X, Z):
        return squared_distances(X, Z)


EXAMPLES = [RBF(), RBF(gamma=0.7, columns=(1, 2))]
