"""K stored whole, with its derivative pulled back block by block."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ..types import Array, Float, Int, static
from .base import Operator, partial_jvp

__all__ = ["Gram", "cross_matmul"]

BLOCK_ENTRIES = 1 << 18
"""Entries of K a streamed product builds at a time: 1 MB in float32.  Its derivative keeps several arrays of that size,
which should fit into a core's own cache."""


def cross_matmul(kernel: Any, hp: Any, X_new: Array, X: Array, v: Array) -> Array:
    """v K(X, X_new) for v (T, n), without holding more than one block of rows of K(X_new, X).

    Every block is rebuilt when it is differentiated, so reverse mode stores none of them.
    """

    @jax.checkpoint
    def one(rows: Array) -> Array:
        return v @ kernel.cross(hp, rows, X).T

    m, size = X_new.shape[0], max(1, BLOCK_ENTRIES // max(1, X.shape[0]))
    if m <= size:
        return one(X_new)
    blocks = -(-m // size)
    padded = jnp.pad(X_new, ((0, blocks * size - m), (0, 0)))
    out = lax.map(one, padded.reshape(blocks, size, X_new.shape[1]))
    return jnp.moveaxis(out, 0, 1).reshape(v.shape[0], blocks * size)[:, :m]


def _matmul(source: Any, v: Array) -> Array:
    """v K(X, X) of `source` = (kernel, hp, X, K or None), K symmetric.

    With the values K at hand a kernel need not find them again to be differentiated, where it can read them.
    """
    kernel, hp, X, K = source
    if kernel.needs_all_rows():
        return cross_matmul(kernel, hp, X, X, v)
    legible = K is not None and kernel.legible(K)
    if isinstance(legible, bool):
        return _by_blocks((kernel, hp, X, K if legible else None), v)
    return lax.cond(legible, lambda: _by_blocks(source, v), lambda: _by_blocks((kernel, hp, X, None), v))


def _by_blocks(source: Any, v: Array) -> Array:
    """v K(X, X), every block on or above the diagonal built once and used on both sides of it.

    That is half the work of `cross_matmul`, which a kernel that must see all rows at once is left to.
    """
    kernel, hp, X, K = source
    n, size = X.shape[0], min(X.shape[0], math.isqrt(BLOCK_ENTRIES))
    blocks = -(-n // size)
    # the last block reaches back over rows of the one before, which count there alone
    starts = jnp.minimum(jnp.arange(blocks) * size, n - size)
    twice = blocks * size - n
    fresh = jnp.ones((blocks, size), v.dtype).at[-1, :twice].set(0.0)
    parts = jax.vmap(lambda start, on: on[None, :] * lax.dynamic_slice_in_dim(v, start, size, axis=1))(starts, fresh)

    @jax.checkpoint
    def both(i: Array, j: Array) -> tuple[Array, Array]:
        rows, columns = (lax.dynamic_slice_in_dim(X, starts[k], size) for k in (i, j))
        if K is None:
            block = kernel.cross(hp, rows, columns)
        else:
            block = kernel.again(hp, rows, columns, lax.dynamic_slice(K, (starts[i], starts[j]), (size, size)))
        return parts[j] @ block.T, jnp.where(i == j, 0.0, 1.0).astype(v.dtype) * (parts[i] @ block)

    def add(out: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        i, j = pair
        above, below = both(i, j)
        return out.at[i].add(above).at[j].add(below), None

    rows, columns = np.triu_indices(blocks)
    out, _ = lax.scan(add, jnp.zeros_like(parts), (jnp.asarray(rows), jnp.asarray(columns)))
    before = jnp.moveaxis(out[:-1], 0, 1).reshape(v.shape[0], -1)
    return jnp.concatenate([before, out[-1][:, twice:]], axis=1)


def _moved(source: Any, dsource: Any, v: Array) -> Array | None:
    """The change of v K along a tangent of `source` = (kernel, hp, X, K or None), by blocks; None: nothing moves.

    Where all that moves is one number, as the width of an RBF kernel, it is that number's tangent times one product: in
    reverse mode no block then needs a cotangent of its own.
    """
    leaves, structure = jax.tree.flatten(dsource, is_leaf=lambda leaf: isinstance(leaf, SymbolicZero))
    still = [isinstance(leaf, SymbolicZero) or leaf.dtype == jax.dtypes.float0 for leaf in leaves]
    moving = [i for i, rests in enumerate(still) if not rests]
    if len(moving) != 1 or leaves[moving[0]].shape != ():
        return partial_jvp(lambda source: _matmul(source, v), source, dsource)
    tangent = leaves[moving[0]]
    leaves[moving[0]] = jnp.ones_like(tangent)
    unit = jax.tree.unflatten(structure, leaves)

    def slope(v: Array) -> Any:
        return partial_jvp(lambda source: _matmul(source, v), source, unit)

    return tangent * _kept(slope, slope, v)


@jax.custom_jvp
def _product(K: Array, source: Any, v: Array) -> Array:
    """v K, where K is the stored value of the kernel matrix of `source`."""
    return v @ K


def _product_jvp(primals: Any, tangents: Any) -> Any:
    K, source, v = primals
    _, dsource, dv = tangents
    out = _product(K, source, v)
    change = _moved(source, dsource, v)
    if not isinstance(dv, SymbolicZero):
        along = _product(K, source, dv)
        change = along if change is None else change + along
    return out, jnp.zeros_like(out) if change is None else change


_product.defjvp(_product_jvp, symbolic_zeros=True)


def _kept(product: Callable[[Array], Array], plain: Callable[[Array], Array], v: Array) -> Array:
    """product(v) = v A, A symmetric, once more, as the solution x of  [0 I; I -A] (x, w) = (v, 0).

    JAX drops a custom derivative rule from what it transposes, and reverse mode would see its value as a constant when
    it is differentiated again.  A linear solve keeps its matrix, the rules in `product` included, in every mode, and
    the transposed solve is the same one.  `plain` is the product without rules.
    """

    def matvec(x: Array) -> Array:
        return jnp.stack([x[1], x[0] - product(x[1])])

    def solve(_: Any, r: Array) -> Array:
        return jnp.stack([r[1] + plain(r[0]), r[0]])

    # one array, not a pair: JAX transposes the solve only where its whole right-hand side is linear
    return lax.custom_linear_solve(matvec, jnp.stack([v, jnp.zeros_like(v)]), solve, symmetric=True)[0]


class Gram(Operator):
    """K (n, n) stored whole.

    Derivative: K itself is a constant; a product v K moves with v through K and with (hp, X)
    through the kernel block by block, one half of it for both.  In reverse mode the cotangent of K is a sum of T
    outer products that each block receives its share of, so no n x n cotangent exists.
    """

    K: Array
    kernel: Any
    hp: Any
    X: Array
    offset: bool = static(default=False)
    """True: the matrix is K + 1, the kernel of a regularised bias (and `K` holds that sum)."""

    @classmethod
    def build(cls, kernel: Any, hp: Any, X: Array, offset: bool) -> "Gram":
        """Evaluate the kernel on all pairs of rows, once."""
        K = kernel.cross(*lax.stop_gradient((hp, X, X)))
        return cls(K + 1.0 if offset else K, kernel, hp, X, offset)

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def _source(self) -> tuple[Any, ...]:
        """What K comes from, and K itself unless 1 was added to it, which costs small values their digits."""
        return self.kernel, self.hp, self.X, None if self.offset else self.K

    def matmul(self, v: Float[Array, "T n"]) -> Float[Array, "T n"]:
        return _kept(lambda v: _product(self.K, self._source, v), lambda v: v @ self.K, v)

    def moved(self, tangent: Any, v: Float[Array, "T n"]) -> Float[Array, "T n"] | None:
        return _moved(self._source, tangent._source, v)

    def whole(self) -> Float[Array, "n n"]:
        return self.K

    def block(self, index: Int[Array, " m"]) -> Float[Array, "m m"]:
        index = jnp.minimum(index, self.n - 1)
        return self.K.at[index[:, None], index[None, :]].get(mode="promise_in_bounds")

    def diagonal(self) -> Float[Array, " n"]:
        on = jnp.arange(self.n)
        return self.K[on, on]
