"""Second-order sequential minimal optimisation on a dense block, one fold."""

import math

import jax.numpy as jnp
from jax import lax

from ..types import Array

__all__ = ["smo"]


CHUNK = 16
"""Steps between two looks at the stopping test."""
LANES = 16
"""Parts a long maximum is taken of at once."""


def smo(
    K: Array, z: Array, g: Array, low: Array, high: Array, tol: Array, max_steps: Array | int, border: bool
) -> tuple[Array, Array]:
    """Minimise 1/2 z'Kz - a'z over low <= z <= high (and sum z kept, with a border), from z with g = a - Kz.

    K is (q, q), the rest (q,).  With a border the pair is the steepest ascending coordinate and the partner with the
    largest second-order gain; without, the coordinate with the largest gain.  Stops when the violation is within tol.
    Rooms to the bounds are carried instead of z: a coordinate at a bound has a room of exactly 0.  Returns z and the
    number of steps, a multiple of CHUNK.
    """
    step, measure = (_pair_step, _pair_violation) if border else (_single_step, _single_violation)
    here = jnp.arange(z.shape[0], dtype=jnp.int32)
    diagonal = K[here, here]
    tiny = jnp.finfo(z.dtype).eps * jnp.max(diagonal) + jnp.finfo(z.dtype).tiny

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        *point, it, _ = state
        point = lax.fori_loop(0, CHUNK, lambda _, p: step(K, diagonal, here, tiny, *p), tuple(point))
        return *point, it + CHUNK, measure(*point) > tol

    point = (high - z, z - low, g)
    start = (*point, jnp.zeros((), jnp.int32), measure(*point) > tol)
    up, down, _, taken, _ = lax.while_loop(lambda s: (s[3] < max_steps) & s[4], body, start)
    return jnp.where(up == 0, high, jnp.where(down == 0, low, low + down)), taken


def _pair_violation(up: Array, down: Array, g: Array) -> Array:
    return jnp.max(jnp.where(up > 0, g, -jnp.inf)) - jnp.min(jnp.where(down > 0, g, jnp.inf))


def _single_violation(up: Array, down: Array, g: Array) -> Array:
    return jnp.maximum(jnp.max(jnp.where(up > 0, g, 0.0)), -jnp.min(jnp.where(down > 0, g, 0.0)))


def _pair_step(
    K: Array, diagonal: Array, here: Array, tiny: Array, up: Array, down: Array, g: Array
) -> tuple[Array, Array, Array]:
    i = _argmax(jnp.where(up > 0, g, -jnp.inf), here)
    row = K[i]
    bend = jnp.maximum(diagonal[i] + diagonal - 2.0 * row, tiny)
    ahead = jnp.maximum(jnp.where(down > 0, g[i] - g, 0.0), 0.0)
    j = _argmax(ahead * ahead / bend, here)
    step = jnp.minimum(jnp.minimum(ahead[j] / bend[j], up[i]), down[j])
    # one pass over all samples is cheaper than four single writes; the rest of them is 0, so bounds stay exact
    moved = jnp.where(here == j, step, 0.0) - jnp.where(here == i, step, 0.0)
    return up + moved, down - moved, g - step * (row - K[j])


def _single_step(
    K: Array, diagonal: Array, here: Array, tiny: Array, up: Array, down: Array, g: Array
) -> tuple[Array, Array, Array]:
    pull = jnp.where(g > 0, jnp.where(up > 0, g, 0.0), jnp.where(down > 0, g, 0.0))
    bend = jnp.maximum(diagonal, tiny)
    i = _argmax(pull * pull / bend, here)
    step = jnp.clip(pull[i] / bend[i], -down[i], up[i])
    return up.at[i].add(-step), down.at[i].add(step), g - step * K[i]


def _argmax(values: Array, here: Array) -> Array:
    """The index of (nearly) the largest value.

    Value and index travel in one integer, whose maximum is several times cheaper than an argmax inside a loop; the
    index takes the last bits of the value.
    """
    mask = jnp.int32((1 << max(1, math.ceil(math.log2(values.shape[0])))) - 1)
    word = lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32)
    ordered = word ^ (lax.shift_right_arithmetic(word, jnp.int32(31)) & jnp.int32(0x7FFFFFFF))
    return _largest((ordered & ~mask) | here) & mask


def _largest(words: Array) -> Array:
    """The largest integer, by an elementwise maximum of LANES parts first.

    Compilers make vector instructions of that, and a chain of single comparisons of one long reduction.
    """
    size = -(-words.shape[0] // LANES)
    parts = jnp.pad(words, (0, LANES * size - words.shape[0]), constant_values=jnp.iinfo(words.dtype).min)
    rest = [parts[k * size : (k + 1) * size] for k in range(LANES)]
    while len(rest) > 1:
        rest = [jnp.maximum(a, b) for a, b in zip(rest[::2], rest[1::2], strict=True)]
    return jnp.max(rest[0])
