"""What an operator is: a kernel matrix as it is stored and multiplied."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ..types import Array, Bool, Float, Int, Module

__all__ = ["Operator", "partial_jvp", "scatter", "where_true"]


class Operator(Module):
    """A symmetric positive semidefinite n x n matrix K.

    `matmul` is differentiable in whatever K was built from; the others serve solvers, which
    work on constants.  Vectors carry a leading fold axis: (T, n).  A new way of storing K (sparse
    rows, tiles, shards) is a subclass with these methods; nothing above the operators changes.
    """

    @property
    def n(self) -> int:
        """Number of samples."""
        raise NotImplementedError

    def matmul(self, v: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """The rows of v times K: (T, n) -> (T, n)."""
        raise NotImplementedError

    def moved(self, tangent: Any, v: Float[Array, "T n"]) -> Float[Array, "T n"] | None:
        """How v K changes along a tangent of the operator, whose leaves may be symbolic zeros; None: not at all."""
        return partial_jvp(lambda op: op.matmul(v), self, tangent)

    def whole(self) -> Float[Array, "n n"]:
        """K itself, (n, n)."""
        raise NotImplementedError

    def block(self, index: Int[Array, " m"]) -> Float[Array, "m m"]:
        """K[index, index], shape (m, m); an index past the end may read anything."""
        raise NotImplementedError

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal, shape (n,)."""
        raise NotImplementedError

    def factors(self) -> Any:
        """Phi (n, p) with K = Phi Phi' where K is kept factored, an array or a `sparse.Matrix`; else None."""
        return None

    def constant(self) -> "Operator":
        """The same operator cut off from differentiation."""
        return jax.tree.map(jax.lax.stop_gradient, self)


def partial_jvp(f: Any, tree: Any, tangent: Any) -> Any:
    """The derivative of f(tree) along a tangent whose leaves may be symbolic zeros.

    Only the leaves that move are differentiated, so constants cost nothing.  None: f stands still.
    """
    leaves, structure = jax.tree.flatten(tree)
    moves = jax.tree.leaves(tangent, is_leaf=lambda t: isinstance(t, SymbolicZero))
    live = [i for i, t in enumerate(moves) if not isinstance(t, SymbolicZero) and t.dtype != jax.dtypes.float0]
    if not live:
        return None

    def of_live(values: list[Any]) -> Any:
        merged = list(leaves)
        for i, value in zip(live, values, strict=True):
            merged[i] = value
        return f(jax.tree.unflatten(structure, merged))

    return jax.jvp(of_live, ([leaves[i] for i in live],), ([moves[i] for i in live],))[1]


def where_true(mask: Bool[Array, " n"], size: int) -> Int[Array, " m"]:
    """Indices of the first `size` true entries of a vector; missing ones are n, which reads as nothing."""
    n = mask.shape[0]
    slot = jnp.where(mask, jnp.cumsum(mask) - 1, size)
    return jnp.full((size,), n, jnp.int32).at[slot].set(jnp.arange(n, dtype=jnp.int32), mode="drop")


def scatter(values: Float[Array, " m"], index: Int[Array, " m"], n: int) -> Float[Array, " n"]:
    """The vector of length n that holds values at index and 0 elsewhere."""
    return jnp.zeros((n,), values.dtype).at[index].set(values, mode="drop")
