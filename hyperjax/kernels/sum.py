"""The sum of kernels."""

import functools

import jax.numpy as jnp

from .composite import Composite
from .linear import Linear
from .rbf import RBF
from .scaled import Scaled

__all__ = ["Sum"]


class Sum(Composite):
    """The sum of kernels.

    Problem: k(x, z) = sum_p k_p(x, z); hyperparameters {"kernels": [..]}, one entry a kernel.
    Derivative: each kernel's own.
    Source: textbook; the feature maps lie side by side.
    """

    def cross(self, hp, X, Z):
        return functools.reduce(jnp.add, self.crosses(hp, X, Z))

    def diagonal(self, hp, X):
        return functools.reduce(jnp.add, self.diagonals(hp, X))

    def features(self, hp, X):
        X = self.select(X)
        maps = [kernel.features(part, X) for kernel, part in zip(self.kernels, hp["kernels"], strict=True)]
        return None if any(phi is None for phi in maps) else jnp.concatenate(maps, axis=1)


EXAMPLES = [
    Sum([Linear(), RBF(gamma=0.5)]),
    Sum([Linear(columns=(0,)), Scaled(Linear(columns=(1,)), 2.0)], columns=(1, 2)),
]
