"""Second-order sequential minimal optimisation on a dense block, batched over folds."""

import math

import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["smo"]


def smo(
    K: Array, z: Array, g: Array, low: Array, high: Array, tol: Array, max_steps: int, border: bool
) -> Array:
    """Minimise 1/2 z'Kz - a'z over low <= z <= high (and sum z kept, with a border), from z with g = a - Kz.

    K (q, q) is shared, z, g, low, high are (T, q), tol is (T,).  With a border the pair is the steepest ascending
    coordinate and the partner with the largest second-order gain; without, the coordinate with the largest gain.
    """
    return _pairs(K, z, g, low, high, tol, max_steps) if border else _singles(K, z, g, low, high, tol, max_steps)


def _pairs(K: Array, z: Array, g: Array, low: Array, high: Array, tol: Array, max_steps: int) -> Array:
    diagonal, fold = jnp.diagonal(K), jnp.arange(z.shape[0])
    here = jnp.arange(z.shape[1], dtype=jnp.int32)[None, :]
    tiny = jnp.finfo(z.dtype).eps * jnp.max(diagonal) + jnp.finfo(z.dtype).tiny

    def cond(state: tuple[Array, ...]) -> Array:
        return (state[2] < max_steps) & jnp.any(state[3])

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        z, g, it, _ = state
        rising = jnp.where(z < high, g, -jnp.inf)
        i = _argmax(rising, here)
        top = g[fold, i]
        row = K[i]
        bend = jnp.maximum(diagonal[i][:, None] + diagonal[None, :] - 2.0 * row, tiny)
        ahead = jnp.where(z > low, top[:, None] - g, -jnp.inf)
        j = _argmax(jnp.where(ahead > 0, ahead * ahead / bend, -jnp.inf), here)
        go = (jnp.max(rising, axis=1) - jnp.min(jnp.where(z > low, g, jnp.inf), axis=1)) > tol
        zi, zj = z[fold, i], z[fold, j]
        room_i, room_j = high[fold, i] - zi, zj - low[fold, j]
        step = jnp.clip((top - g[fold, j]) / bend[fold, j], 0.0, jnp.minimum(room_i, room_j))
        step = jnp.where(go, step, 0.0)
        new_i = jnp.where(step >= room_i, high[fold, i], zi + step)
        new_j = jnp.where(step >= room_j, low[fold, j], zj - step)
        z = jnp.where((here == i[:, None]) & go[:, None], new_i[:, None], z)
        z = jnp.where((here == j[:, None]) & go[:, None], new_j[:, None], z)
        return z, g - step[:, None] * (row - K[j]), it + 1, go

    start = (z, g, jnp.zeros((), jnp.int32), jnp.isfinite(tol))
    return lax.while_loop(cond, body, start)[0]


def _singles(K: Array, z: Array, g: Array, low: Array, high: Array, tol: Array, max_steps: int) -> Array:
    fold = jnp.arange(z.shape[0])
    here = jnp.arange(z.shape[1], dtype=jnp.int32)[None, :]
    bend = jnp.diagonal(K)
    tiny = jnp.finfo(z.dtype).eps * jnp.max(bend) + jnp.finfo(z.dtype).tiny
    bend = jnp.maximum(bend, tiny)[None, :]

    def cond(state: tuple[Array, ...]) -> Array:
        return (state[2] < max_steps) & jnp.any(state[3])

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        z, g, it, _ = state
        pull = jnp.where(g > 0, jnp.where(z < high, g, 0.0), jnp.where(z > low, g, 0.0))
        i = _argmax(pull * pull / bend, here)
        go = jnp.max(jnp.abs(pull), axis=1) > tol
        zi = z[fold, i]
        new = jnp.clip(zi + g[fold, i] / bend[0][i], low[fold, i], high[fold, i])
        new = jnp.where(go, new, zi)
        z = jnp.where(here == i[:, None], new[:, None], z)
        return z, g - (new - zi)[:, None] * K[i], it + 1, go

    start = (z, g, jnp.zeros((), jnp.int32), jnp.isfinite(tol))
    return lax.while_loop(cond, body, start)[0]


def _argmax(values: Array, here: Array) -> Array:
    """The index of (nearly) the largest entry of every row.

    Value and index travel in one integer, whose maximum is several times cheaper than an argmax inside a loop; the
    index takes the last bits of the value.
    """
    bits = max(1, math.ceil(math.log2(values.shape[1])))
    word = lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32)
    ordered = word ^ (lax.shift_right_arithmetic(word, jnp.int32(31)) & jnp.int32(0x7FFFFFFF))
    mask = jnp.int32((1 << bits) - 1)
    return jnp.max((ordered & ~mask) | here, axis=1) & mask
