"""The exponential chi-squared kernel, for histograms."""

import jax.numpy as jnp
import numpy as np

from ..types import Array
from ._decaying import Decaying
from .pairs import sum_over_features

__all__ = ["ExpChi2"]


class ExpChi2(Decaying):
    """The exponential of the chi-squared distance between histograms.

    Problem: k(x, z) = exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), features not negative, 0/0 := 0,
    gamma > 0; gamma starts at 1/(d var(X)).
    Derivative: dK/dgamma = -D o K with D the distances; with t = (x_j - z_j)/(x_j + z_j) the distance
    has slope t (2 - t) in x_j and -t (2 + t) in z_j, taken as 0 where both are 0 (a corner).
    Source: Klatzer & Pock, Continuous hyper-parameter learning for support vector machines, CVWW 2015.
    """

    def k(self, x, z, hp):
        return jnp.exp(-hp["gamma"] * jnp.sum(_chi2(x, z)))

    def distances(self, X, Z):
        return sum_over_features(_chi2, X, Z)

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        lowest = np.min(self.select(X), axis=0)
        if np.all(lowest >= 0):
            return None
        worst = int(np.argmin(lowest))
        column = worst if self.columns is None else self.columns[worst]
        return (
            f"ExpChi2 needs features that are not negative, and column {column} reaches {lowest[worst]:.3g}; "
            "shift or rescale the features, or use RBF or Laplacian"
        )

    def sound(self, X, hp):
        return jnp.all(self.select(X) >= 0)


def _chi2(x: Array, z: Array) -> Array:
    """(x - z)^2 / (x + z) elementwise, 0 where the sum is not positive."""
    total = x + z
    defined = total > 0
    return jnp.where(defined, (x - z) ** 2 / jnp.where(defined, total, 1.0), 0.0)


EXAMPLES = [ExpChi2(), ExpChi2(gamma=0.5, columns=(0, 1))]
