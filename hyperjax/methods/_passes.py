"""One pass of dual coordinate descent over a linear model, for every loss whose one-coordinate problem is known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["hinge_update", "one_pass"]

Update = Callable[[Array, Array, Array, Array], Array]
"""(alpha (T,), margin (T,), squared norm of the row, upper bound (T,)) -> the optimal alpha (T,)."""


def one_pass(
    update: Update, key: Array, signed: Array, squares: Array, alpha: Array, w: Array, upper: Array
) -> tuple[Array, Array]:
    """(alpha (T, n), w (T, p)) after all rows y_i x_i of `signed` in a fresh random order, the same for every fold.

    A row whose upper bound is 0 keeps its alpha.
    """
    order = jax.random.permutation(key, signed.shape[0])

    def one(w: Array, x: tuple[Array, ...]) -> tuple[Array, Array]:
        row, q, alpha, upper = x
        new = jnp.where(upper > 0, update(alpha, jnp.sum(w * row[None, :], axis=1), q, upper), alpha)
        return w + (new - alpha)[:, None] * row[None, :], new

    w, moved = lax.scan(one, w, (signed[order], squares[order], alpha.T[order], upper.T[order]))
    return alpha.at[:, order].set(moved.T), w


def hinge_update(alpha: Array, margin: Array, q: Array, upper: Array) -> Array:
    """The optimum within [0, upper], its ends met exactly; a row of zeros cannot be fitted and sits at its bound."""
    return jnp.where(q > 0, jnp.clip(alpha - (margin - 1.0) / jnp.where(q > 0, q, 1.0), 0.0, upper), upper)
