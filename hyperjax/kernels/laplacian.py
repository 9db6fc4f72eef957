"""The Laplacian kernel."""

import jax.numpy as jnp

from ._decaying import Decaying
from .pairs import sum_over_features

__all__ = ["Laplacian"]


class Laplacian(Decaying):
    """The exponential of the city-block distance.

    Problem: k(x, z) = exp(-gamma sum_j |x_j - z_j|), gamma > 0; gamma starts at 1/(d var(X)).
    Derivative: dK/dgamma = -D o K with D the distances; dk/dx_j = -gamma sign(x_j - z_j) k, with
    sign(0) = 0 where the kernel has its kink.
    Source: textbook.
    """

    def k(self, x, z, hp):
        return jnp.exp(-hp["gamma"] * jnp.sum(jnp.abs(x - z)))

    def distances(self, X, Z):
        return sum_over_features(lambda x, z: jnp.abs(x - z), X, Z)


EXAMPLES = [Laplacian(), Laplacian(gamma=0.5, columns=(2, 0))]
