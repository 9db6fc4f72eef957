"""The area under the ROC curve."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from ..types import Array
from ._smoothing import classes, not_positive, one_class, spread
from .base import Criterion

__all__ = ["AUC", "EXAMPLES"]

BLOCK = 2**20
"""Pairs held at a time."""


class AUC(Criterion):
    """One minus the area under the ROC curve: the share of pairs in the wrong order.

    Problem:    V = sum_{i in +, j in -} w_i w_j sigma(-s1 (o_i - o_j)) / (W+ W-),   s1 = steepness / std(o)
    Hard:       1 - AUC by ranks, a tie counting one half
    Derivative: of the formula; outputs that are all equal give 1/2 and a zero gradient.  O(n^2) time in blocks of
                pairs that the backward pass computes anew: memory stays O(n) beside one block
    Source:     Keerthi, Sindhwani & Chapelle name it among their validation functions; Yan et al., Optimizing
                Classifier Performance via an Approximation to the Wilcoxon-Mann-Whitney Statistic, for pairs
    """

    labels: ClassVar[bool] = True
    steepness: float = 10.0

    def problem_with(self, y):
        return one_class(y) or not_positive(steepness=self.steepness)

    def value(self, o, y, w, hp):
        positive, negative = classes(y, w)
        _, std, differ = spread(o, w)
        wrong = _pairs(jnp.where(differ, self.steepness / std * o, 0.0), positive, negative)
        return wrong / (jnp.sum(positive) * jnp.sum(negative))

    def hard(self, o, y, w, hp):
        positive, negative = classes(y, w)
        order = jnp.argsort(o)
        ranked = o[order]
        below = jnp.concatenate([jnp.zeros_like(o[:1]), jnp.cumsum(negative[order])])
        beaten = 0.5 * (below[jnp.searchsorted(ranked, o)] + below[jnp.searchsorted(ranked, o, side="right")])
        return 1.0 - jnp.sum(positive * beaten) / (jnp.sum(positive) * jnp.sum(negative))


def _pairs(odds: Array, positive: Array, negative: Array) -> Array:
    """The weight of all pairs, each by how far its negative row is above its positive one."""
    n = odds.shape[0]
    rows = max(1, min(n, BLOCK // n))
    short = -n % rows
    blocks = [jnp.pad(v, (0, short)).reshape(-1, rows) for v in (odds, positive)]

    @jax.checkpoint
    def share(block: list[Array]) -> Array:
        mine, w = block
        above = jax.nn.sigmoid(odds[None, :] - mine[:, None])
        return jnp.sum(w * jnp.sum(above * negative[None, :], axis=1))

    return jnp.sum(lax.map(share, blocks))


EXAMPLES = [AUC(), AUC(steepness=3.0)]
