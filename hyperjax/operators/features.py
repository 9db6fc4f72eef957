"""K = Phi Phi' kept factored: linear models and explicit feature maps."""

import jax.numpy as jnp

from ..types import Array, Float, Int
from .base import Operator

__all__ = ["Features"]


class Features(Operator):
    """K = Phi Phi' with Phi (n, p), p small: products cost 2 n p a fold and K is never formed."""

    phi: Array

    @property
    def n(self) -> int:
        return self.phi.shape[0]

    def matmul(self, v: Float[Array, "T n"]) -> Float[Array, "T n"]:
        return v @ self.phi @ self.phi.T

    def whole(self) -> Float[Array, "n n"]:
        return self.phi @ self.phi.T

    def block(self, index: Int[Array, " m"]) -> Float[Array, "m m"]:
        part = jnp.take(self.phi, index, axis=0, mode="clip")
        return part @ part.T

    def diagonal(self) -> Float[Array, " n"]:
        return jnp.sum(self.phi * self.phi, axis=1)

    def factors(self) -> Array:
        return self.phi
