"""What several kernels share: distances between all pairs of rows, and start values."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..types import Array, ArrayLike

__all__ = ["default_gamma", "exponential", "floating", "known", "squared_distances", "start", "sum_over_features"]


def squared_distances(X: Array, Z: Array, gamma: Array | None = None) -> Array:
    """sum_j gamma_j (x_j - z_j)^2 for all pairs of rows by one matrix product; gamma (d,), 1 when absent.

    Both are centred by the mean of Z first: the formula |x|^2 + |z|^2 - 2 x'z cancels digits in
    proportion to the squared norms.  The result does not depend on the centre, so it carries no
    derivative.  Negative rounding errors are lifted to 0 while the derivative passes unclipped,
    which keeps first and second derivatives exact at coinciding rows.  gamma enters without a
    square root and may be 0.
    """
    centre = jax.lax.stop_gradient(jnp.mean(Z, axis=0, keepdims=True))
    X, Z = X - centre, Z - centre
    weighted_X, weighted_Z = (X, Z) if gamma is None else (X * gamma[None, :], Z * gamma[None, :])
    norms = jnp.sum(weighted_X * X, axis=1)[:, None] + jnp.sum(weighted_Z * Z, axis=1)[None, :]
    squares = norms - 2.0 * (weighted_X @ Z.T)
    return squares + jax.lax.stop_gradient(jnp.maximum(-squares, 0.0))


@jax.custom_jvp
def known(value: Array, formula: Array) -> Array:
    """A formula whose value is at hand: only its derivatives are computed."""
    return value


@known.defjvp
def _known_rule(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return known(*primals), tangents[1]


@jax.custom_jvp
def exponential(value: Array, formula: Array) -> Array:
    """exp(formula), whose value is at hand."""
    return value


@exponential.defjvp
def _exponential_rule(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    out = exponential(*primals)
    return out, out * tangents[1]


def sum_over_features(term: Callable[[Array, Array], Array], X: Array, Z: Array) -> Array:
    """sum_j term(x_j, z_j) for all pairs of rows, one feature at a time: (m, n) memory, never (m, n, d).

    Only the term is rematerialised: the reverse sweep then keeps columns, not matrices.
    """
    one_feature = jax.checkpoint(lambda x, z: term(x[:, None], z[None, :]))

    def add(total: Array, column: tuple[Array, Array]) -> tuple[Array, None]:
        return total + one_feature(*column), None

    total = jnp.zeros_like(X[:, :1] - Z[:, :1].T)
    return jax.lax.scan(add, total, (X.T, Z.T))[0]


def floating(X: ArrayLike) -> Array:
    """X as an array of a floating type."""
    X = jnp.asarray(X)
    return X if jnp.issubdtype(X.dtype, jnp.floating) else jnp.asarray(X, float)


def default_gamma(X: ArrayLike) -> Array:
    """1 / (d var(X)), the variance over all entries; 1/d where the data do not vary."""
    X = floating(X)
    if not isinstance(X, Tracer) and X.is_fully_addressable:
        with np.errstate(all="ignore"):  # infinite data are refused later, in words
            variance = np.var(np.asarray(X))
        return jnp.asarray(1.0 / (max(X.shape[1], 1) * (variance if variance > 0 else 1.0)), X.dtype)
    variance = jnp.var(X)
    return 1.0 / (max(X.shape[1], 1) * jnp.where(variance > 0, variance, 1.0))


def start(value: Any, default: Any, X: ArrayLike) -> Array:
    """A start value in the type of X: the one a field holds, or the default when it holds None."""
    return jnp.asarray(default if value is None else value, floating(X).dtype)
