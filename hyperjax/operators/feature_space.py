"""The bordered system in feature space, where K = Phi Phi' is kept factored and the loss is smooth.

Problem
    With curvatures h (T, n) every fold's system is, for x = (w, b) (no b without an unregularised bias),

        [ I + Phi' diag(h) Phi   Phi' h ]
        [ h' Phi                 sum h  ]  x = r

Solved by
    a Cholesky factor a fold, which costs n p^2; or conjugate gradients on all folds at once, 4 n p a fold and
    product, where only a factor for other curvatures is at hand or Phi is sparse.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve

from ..sparse import Matrix
from ..types import Array
from .base import where_true
from .conjugate import conjugate_gradients

__all__ = ["factor_solve", "feature_factors", "feature_solve"]

MANY, FEW = 4096, 8
"""From MANY rows on, rows without curvature are left out of a factor where no more than one in FEW has any."""
PART = 1 << 18
"""Entries of Phi that are weighted at a time: 1 MB in float32, which fits into a core's own cache."""


def feature_factors(phi: Array, h: Array, border: bool) -> Array:
    """Cholesky factors (T, p, p) of I + Phi' diag(h) Phi, bordered by Phi' h and sum h where the bias is free."""

    n = phi.shape[0]
    few = n // FEW

    def products(phi: Array, h: Array) -> tuple[Array, Array]:
        weighted = h[:, None] * phi
        return weighted.T @ phi, jnp.sum(weighted, axis=0)

    def added(phi: Array, h: Array) -> tuple[Array, Array]:
        # part by part: a weighted copy of all rows would be new pages of memory in every call
        size = max(1, PART // phi.shape[1])
        parts = phi.shape[0] // size
        if parts < 2:
            return products(phi, h)

        def add(sums: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
            some = (lax.dynamic_slice_in_dim(v, k * size, size) for v in (phi, h))
            return jax.tree.map(jnp.add, sums, products(*some)), None

        return lax.scan(add, products(phi[parts * size :], h[parts * size :]), jnp.arange(parts))[0]

    def gathered(h: Array) -> tuple[Array, Array]:
        index = where_true(h != 0, few)
        some = jnp.take(phi, index, axis=0, mode="clip")
        return added(some, h.at[index].get(mode="fill", fill_value=0.0))

    def fold(h: Array) -> Array:
        if n >= MANY:
            S, side = lax.cond(jnp.sum(h != 0) <= few, lambda: gathered(h), lambda: added(phi, h))
        else:
            S, side = added(phi, h)
        S = S + jnp.eye(phi.shape[1], dtype=phi.dtype)
        if border:
            corner = jnp.sum(h)
            corner = jnp.where(corner > 0, corner, 1.0)
            S = jnp.block([[S, side[:, None]], [side[None, :], corner[None, None]]])
        return lax.linalg.cholesky(S, symmetrize_input=False)

    return lax.map(fold, h)


def factor_solve(L: Array, r: Array) -> Array:
    """x (T, p) with L L' x = r; one factor L serves all rows of r."""
    if L.shape[0] == 1:
        return cho_solve((L[0], True), r.T).T
    return jax.vmap(lambda L, r: cho_solve((L, True), r))(L, r)


def feature_solve(
    phi: Any, h: Array, r: Array, border: bool, L: Array | None = None, accuracy: Any = 0.0, limit: int | None = None
) -> tuple[Array, Array, Array]:
    """x (T, p or p + 1) by conjugate gradients: preconditioned by factors L or, for None, by the diagonal.

    With which folds are solved to `accuracy`, and the number of products.
    """

    def matvec(x: Array) -> Array:
        w = x[:, :-1] if border else x
        v = h * (w @ phi.T + (x[:, -1:] if border else 0.0))
        out = w + v @ phi
        return jnp.concatenate([out, jnp.sum(v, axis=1, keepdims=True)], axis=1) if border else out

    if L is not None:
        return conjugate_gradients(matvec, r, lambda r: factor_solve(L, r), accuracy, limit)
    scale = 1.0 + h @ (phi.squared() if isinstance(phi, Matrix) else phi * phi)
    if border:
        total = jnp.sum(h, axis=1, keepdims=True)
        scale = jnp.concatenate([scale, jnp.where(total > 0, total, 1.0)], axis=1)
    return conjugate_gradients(matvec, r, lambda r: r / scale, accuracy, limit)
