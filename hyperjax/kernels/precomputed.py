"""A kernel matrix in the place of features."""

import jax.numpy as jnp
import numpy as np

from ._matrices import asymmetry, indefiniteness, rounding
from .base import Kernel

__all__ = ["Precomputed"]


class Precomputed(Kernel):
    """X is the kernel matrix.

    Problem: X (n, n) = K between the training rows, X_new (m, n) = K between new and training rows.
    `columns` picks one of several matrices laid side by side, X = [K_1 .. K_P]: as children of
    `Weighted`, Precomputed(columns=range(p n, (p + 1) n)).
    Derivative: the identity in X.
    Source: none.
    """

    def cross(self, hp, X, Z):
        K = self.select(X)
        if K.shape[1] != Z.shape[0]:
            raise ValueError(
                f"Precomputed: X must hold the kernel between its rows and all {Z.shape[0]} training rows, "
                f"and has {K.shape[1]} columns"
            )
        return K

    def needs_all_rows(self):
        return True

    def diagonal(self, hp, X):
        return jnp.diagonal(self.select(X))

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        K = np.asarray(self.select(X))
        if K.shape[0] != K.shape[1]:
            return f"Precomputed needs the square kernel matrix as X, and found shape {K.shape}; pass K, not features"
        found = asymmetry(K)
        if found:
            return f"the kernel matrix is not symmetric: K and K' {found}; pass (K + K')/2 if that is meant"
        found = indefiniteness(K)
        if found is None:
            return None
        low, high = found
        return (
            f"the kernel matrix is far from positive semidefinite: eigenvalue {low:.3g} against a largest of "
            f"{high:.3g}; add at least {-low:.3g} to its diagonal or clip its negative eigenvalues to 0"
        )

    def sound(self, X, hp):
        K = self.select(X)
        return jnp.max(jnp.abs(K - K.T)) <= rounding(K.dtype) * jnp.max(jnp.abs(K))


# It reads a kernel matrix, so no instance accepts three columns of features.
EXAMPLES: list[Kernel] = []
