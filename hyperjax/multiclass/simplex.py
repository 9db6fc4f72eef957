"""Projection of every row onto a scaled simplex, the face it lands on, and coordinates along that face."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["face_basis", "project", "support", "threshold"]


def support(x: Array, radius: Array) -> Array:
    """The entries (n, k) that stay positive when row i of x is projected onto {p >= 0, sum p = radius_i}.

    At least one a row: the largest, which is also where a simplex of radius 0 has its vertex.  Every pair of entries is
    compared, so equal entries share one fate.
    """
    x, radius = lax.stop_gradient((x, radius))
    above = x[:, None, :] >= x[:, :, None]
    count = jnp.sum(above, axis=2).astype(x.dtype)
    total = jnp.sum(jnp.where(above, x[:, None, :], 0.0), axis=2)
    return (radius[:, None] + count * x > total) | (x >= jnp.max(x, axis=1, keepdims=True))


def threshold(x: Array, radius: Array, on: Array) -> Array:
    """What the projection takes off the entries it keeps, (n, 1)."""
    count = jnp.sum(on, axis=1, keepdims=True).astype(x.dtype)
    return (jnp.sum(jnp.where(on, x, 0.0), axis=1, keepdims=True) - radius[:, None]) / count


def project(x: Array, radius: Array) -> Array:
    """Row i of x projected onto {p >= 0, sum p = radius_i}; differentiable in both, with the face held."""
    on = support(x, radius)
    return jnp.where(on, x - threshold(x, radius, on), 0.0)


def face_basis(on: Array, dtype: Any) -> tuple[Array, Array]:
    """An orthogonal matrix a row (n, k, k) whose columns separate what a face of the simplex may and may not do.

    Column j is the j-th unit vector where `on` is False, the mean of the face for its first entry, and one of Helmert's
    contrasts for every further one.  The contrasts, marked in the second result (n, k), span the directions along the
    face: the slope of the projection is 1 on them and 0 on the other columns.
    """
    n, k = on.shape
    order = jnp.cumsum(on, axis=1)
    free = on & (order > 1)
    before = jnp.where(free, order - 1, 1).astype(dtype)[:, None, :]
    earlier = jnp.arange(k)[:, None] < jnp.arange(k)[None, :]
    unit = jnp.broadcast_to(jnp.eye(k, dtype=dtype)[None], (n, k, k))
    inside = on.astype(dtype)[:, :, None]
    contrast = jnp.where(earlier[None], inside, -before * unit) / jnp.sqrt(before * (before + 1.0))
    mean = inside / jnp.sqrt(order[:, -1].astype(dtype))[:, None, None]
    first = (on & (order == 1))[:, None, :]
    return jnp.where(free[:, None, :], contrast, jnp.where(first, mean, unit)), free
