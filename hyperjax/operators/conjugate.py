"""Conjugate gradients, several right-hand sides at once."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["conjugate_gradients"]


def conjugate_gradients(matvec: Callable[[Array], Array], b: Array, scale: Array, accuracy: float = 0.0) -> Array:
    """Jacobi-preconditioned conjugate gradients on every row of b, down to rounding or to no progress.

    `scale` is the diagonal of the matrix, `accuracy` a residual, relative to b, that will do.
    """
    eps = jnp.finfo(b.dtype).eps
    goal = max(50.0 * float(eps), accuracy) ** 2 * jnp.sum(b * b / scale, axis=1)
    limit = 4 * b.shape[1]

    def cond(state: tuple[Array, ...]) -> Array:
        *_, rz, it = state
        return jnp.any(rz > goal) & (it < limit)

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, res, d, rz, it = state
        Ad = matvec(d)
        curve = jnp.sum(d * Ad, axis=1)
        go = (rz > goal) & (curve > 0)
        step = jnp.where(go, rz / jnp.where(go, curve, 1.0), 0.0)[:, None]
        x, res = x + step * d, res - step * Ad
        new = jnp.where(go, jnp.sum(res * res / scale, axis=1), 0.0)
        ratio = jnp.where(go, new / jnp.where(go, rz, 1.0), 0.0)[:, None]
        return x, res, res / scale + ratio * d, new, it + 1

    start = (jnp.zeros_like(b), b, b / scale, jnp.sum(b * b / scale, axis=1), jnp.zeros((), jnp.int32))
    return lax.while_loop(cond, body, start)[0]
