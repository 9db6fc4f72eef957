"""K = X X' with sparse rows X: only products, K and X'X are never formed."""

import jax.numpy as jnp

from ..sparse import Matrix
from ..types import Array
from .base import Operator
from .conjugate import conjugate_gradients

__all__ = ["Sparse", "primal_solve"]


class Sparse(Operator):
    """K = Phi Phi' with a sparse Phi (n, p): a product costs two passes over its entries a fold.

    Systems are solved by conjugate gradients alone, so it serves differentiable losses with Newton, Trust and the
    derivative rule in p unknowns, and kinked ones with ProxGrad in n.
    """

    phi: Matrix

    @property
    def n(self) -> int:
        return self.phi.shape[0]

    def matmul(self, v: Array) -> Array:
        return v @ self.phi @ self.phi.T

    def whole(self) -> Array:
        raise ValueError(
            "X is sparse and this needs its n x n kernel matrix: use solver=None, folds in place of leave-one-out, or "
            "pass X.toarray()"
        )

    def block(self, index: Array) -> Array:
        return self.whole()

    def diagonal(self) -> Array:
        return self.phi.diagonal()

    def factors(self) -> Array:
        # it stands for an array: `v @ phi`, `w @ phi.T`, shape and dtype are there, rows one by one are not
        return self.phi  # type: ignore[return-value]


def primal_solve(
    phi: Matrix, h: Array, right: Array, right_b: Array, border: bool, accuracy: float = 0.0
) -> tuple[Array, Array]:
    """(w (T, p), b (T,)) with  w + Phi' h (Phi w + b) = right,  sum_i h_i (Phi w + b)_i = right_b  where there is a b.

    Conjugate gradients, scaled by the diagonal, to a residual of `accuracy` relative to the right-hand side, or to
    rounding.
    """
    scale = 1.0 + h @ phi.squared()
    if not border:
        out = conjugate_gradients(lambda w: w + (h * (w @ phi.T)) @ phi, right, scale, accuracy)
        return out, jnp.zeros_like(right_b)
    total = jnp.sum(h, axis=1)
    total = jnp.where(total > 0, total, 1.0)

    def matvec(x: Array) -> Array:
        w, b = x[:, :-1], x[:, -1:]
        weighted = h * (w @ phi.T + b)
        return jnp.concatenate([w + weighted @ phi, jnp.sum(weighted, axis=1, keepdims=True)], axis=1)

    x = conjugate_gradients(
        matvec,
        jnp.concatenate([right, right_b[:, None]], axis=1),
        jnp.concatenate([scale, total[:, None]], axis=1),
        accuracy,
    )
    return x[:, :-1], x[:, -1]
