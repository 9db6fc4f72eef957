"""Conjugate gradients, several right-hand sides at once."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["conjugate_gradients"]


def conjugate_gradients(
    matvec: Callable[[Array], Array],
    b: Array,
    precondition: Callable[[Array], Array],
    accuracy: Array | float = 0.0,
    limit: int | None = None,
) -> tuple[Array, Array, Array]:
    """Preconditioned conjugate gradients on every row of b, down to rounding or to no progress.

    `precondition` multiplies by the inverse of what stands for the matrix, `accuracy` (a number, or one a row) is a
    residual, relative to b in that metric, that will do, `limit` the most steps.  Returns x, which rows got there, and
    the number of steps.
    """
    eps = jnp.finfo(b.dtype).eps
    soft = precondition(b)
    first = jnp.sum(b * soft, axis=1)
    goal = jnp.maximum(50.0 * eps, accuracy) ** 2 * first
    limit = 4 * b.shape[1] if limit is None else limit

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
        soft = precondition(res)
        new = jnp.where(go, jnp.sum(res * soft, axis=1), 0.0)
        ratio = jnp.where(go, new / jnp.where(go, rz, 1.0), 0.0)[:, None]
        return x, res, soft + ratio * d, new, it + 1

    start = (jnp.zeros_like(b), b, soft, first, jnp.zeros((), jnp.int32))
    x, _, _, rz, count = lax.while_loop(cond, body, start)
    return x, rz <= goal, count
