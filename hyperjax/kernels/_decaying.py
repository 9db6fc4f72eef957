"""Kernels that fall off exponentially with a distance."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from ..types import Array
from .base import Kernel
from .pairs import default_gamma, exponential, known, start

__all__ = ["Decaying"]

NEAR = 0.99
"""Values above this have lost digits of their distances: their logarithm is next to rounding."""
LOOKS = 8
"""Rows of K, at least, that tell how near most are."""


class Decaying(Kernel):
    """exp(-gamma D), one gamma > 0 that starts at 1/(d var(X)) for the columns looked at; a subclass defines D.

    Derivative: dK/dgamma = -D o K, where D = -log(K) / gamma is read off K once that is stored, unless its values are
    next to 1.
    """

    gamma: float | None = None

    def distances(self, X: Array, Z: Array) -> Array:
        """D of all pairs of rows."""
        raise NotImplementedError(f"{type(self).__name__} must define distances(self, X, Z)")

    def init(self, X: Any, y: Any) -> dict[str, Any]:
        X = self.select(X)
        return {"gamma": start(self.gamma, default_gamma(X), X)}

    def cross(self, hp: Any, X: Array, Z: Array) -> Array:
        return jnp.exp(-hp["gamma"] * self.distances(self.select(X), self.select(Z)))

    def legible(self, K: Array) -> Array:
        # entries further off than that tell the scale of the others' errors; those of a few outliers do not
        return jnp.mean(K[:: max(1, K.shape[0] // LOOKS)] < NEAR) > 0.5

    def again(self, hp: Any, X: Array, Z: Array, K: Array) -> Array:
        X, Z, gamma = self.select(X), self.select(Z), hp["gamma"]
        # where K has underflown its derivative is 0 at any finite distance
        D = -jnp.log(jnp.maximum(K, jnp.finfo(K.dtype).tiny)) / lax.stop_gradient(gamma)
        return exponential(K, -gamma * known(D, self.distances(X, Z)))

    def diagonal(self, hp: Any, X: Array) -> Array:
        return jnp.ones_like(X[:, 0])
