"""K = Phi Phi' kept factored: linear models and explicit feature maps."""

import jax.numpy as jnp

from ..sparse import Matrix
from ..types import Array
from .base import Operator

__all__ = ["Features", "gather_features"]


SUM_BLOCK = 512
"""Rows added up in one go: sums of sums keep the rounding of long columns down."""


def gather_features(v: Array, phi: Array) -> Array:
    """v Phi for v (T, n), as a sum of partial sums over blocks of rows."""
    if isinstance(phi, Matrix):
        return v @ phi
    n = phi.shape[0]
    whole = n // SUM_BLOCK * SUM_BLOCK
    if whole <= SUM_BLOCK:
        return v @ phi
    blocks = phi[:whole].reshape(-1, SUM_BLOCK, phi.shape[1])
    parts = jnp.einsum("tbk,bkp->btp", v[:, :whole].reshape(v.shape[0], -1, SUM_BLOCK), blocks)
    return jnp.sum(parts, axis=0) + v[:, whole:] @ phi[whole:]


class Features(Operator):
    """K = Phi Phi' with Phi (n, p), p small: products cost 2 n p a fold and K is never formed."""

    phi: Array

    @property
    def n(self) -> int:
        return self.phi.shape[0]

    def matmul(self, v: Array) -> Array:
        return gather_features(v, self.phi) @ self.phi.T

    def whole(self) -> Array:
        return self.phi @ self.phi.T

    def block(self, index: Array) -> Array:
        part = jnp.take(self.phi, index, axis=0, mode="clip")
        return part @ part.T

    def diagonal(self) -> Array:
        return jnp.sum(self.phi * self.phi, axis=1)

    def factors(self) -> Array:
        return self.phi
