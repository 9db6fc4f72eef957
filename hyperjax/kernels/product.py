"""The product of kernels."""

import functools

import jax.numpy as jnp

from .composite import Composite
from .polynomial import Polynomial
from .rbf import RBF

__all__ = ["Product"]


class Product(Composite):
    """The elementwise product of kernels.

    Problem: k(x, z) = prod_p k_p(x, z); hyperparameters {"kernels": [..]}, one entry a kernel.
    Derivative: each kernel's own times the product of the others.
    Source: textbook (Schur: positive semidefinite again).
    """

    def cross(self, hp, X, Z):
        return functools.reduce(jnp.multiply, self.crosses(hp, X, Z))

    def diagonal(self, hp, X):
        return functools.reduce(jnp.multiply, self.diagonals(hp, X))


EXAMPLES = [Product([RBF(gamma=0.5, columns=(0,)), Polynomial(degree=2.0, columns=(1, 2))])]
