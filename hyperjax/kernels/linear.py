"""The linear kernel."""

import jax.numpy as jnp

from .base import Kernel

__all__ = ["Linear"]


class Linear(Kernel):
    """The inner product of two rows.

    Problem: k(x, z) = x'z.  No hyperparameters; the feature map is the (selected) row itself.
    Derivative: in X alone, bilinear.
    Source: textbook.
    """

    def k(self, x, z, hp):
        return jnp.sum(x * z)

    def cross(self, hp, X, Z):
        return self.select(X) @ self.select(Z).T

    def diagonal(self, hp, X):
        X = self.select(X)
        return jnp.sum(X * X, axis=1)

    def features(self, hp, X):
        return self.select(X)


EXAMPLES = [Linear(), Linear(columns=(0, 2))]
