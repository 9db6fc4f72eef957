"""Counts along the precision-recall curve."""

import jax.numpy as jnp

from ..types import Array

__all__ = ["counts_at_outputs"]


def counts_at_outputs(o: Array, c: Array) -> tuple[Array, Array]:
    """(n,) twice: the weight c of the rows at least as high as each row, and of those strictly higher."""
    order = jnp.argsort(o)
    ranked = o[order]
    above = jnp.concatenate([jnp.cumsum(c[order][::-1])[::-1], jnp.zeros_like(c[:1])])
    return above[jnp.searchsorted(ranked, o)], above[jnp.searchsorted(ranked, o, side="right")]
