"""Bilevel stochastic gradient, the baseline of Jiang & Siddiqui."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..problem import Problem
from ..tune import TuneResult
from ..types import Array
from . import _steps
from ._steps import Rule, Split, State

__all__ = ["couellan_wang"]

TAKES = _steps.TAKES


class BilevelSGD(Rule):
    """One training row and one held-out row a step and fold."""

    def init(self, split: Split, key: Array) -> State:
        """Weights uniform on [0, 1], which the first step, of length 1, wipes out."""
        shape = (split.s.shape[0], split.phi.shape[1])
        return State(split.low, jnp.zeros_like(split.s), jax.random.uniform(key, shape, split.phi.dtype))

    def step(self, split: Split, state: State, k: Array, key: Array) -> tuple[State, dict[str, Array]]:
        """w <- w - (w - C y_l x_l) / k, then C by the sign of - y_q y_l x_q'x_l."""
        inner_key, outer_key = jax.random.split(key)
        length = 1.0 / k.astype(state.C.dtype)
        l, found = _steps.draw(inner_key, jnp.where(state.w @ split.signed.T < 1.0, split.s, 0.0))  # noqa: E741  the paper's index
        push = jnp.where(found, length * state.C, 0.0)
        row = split.signed[l]
        w = (1.0 - length) * state.w + push[:, None] * row
        alpha = ((1.0 - length) * state.alpha).at[jnp.arange(l.shape[0]), l].add(push)

        q, violated = _steps.draw(outer_key, _steps.held_out_violators(split, w))
        g = jnp.mean(jnp.where(found & violated, -jnp.sum(split.signed[q] * row, axis=1), 0.0))
        C = _steps.move(self, split, state.C, g, k)
        return State(C, alpha, w), {"gradient": g, "iterations": jnp.ones_like(l, jnp.int32)}


def couellan_wang(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    C_min: float = 1e-4,
    C_max: float = 1e6,
    max_steps: int = 150,
    weights: Any = None,
    groups: Any = None,
    solver: Any = None,
    max_seconds: float | None = None,
    seed: int = 0,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    progress: bool = True,
    compilation: str = "auto",
) -> TuneResult:
    """Move the folds' weights and the shared C by one training row and one held-out row at a time.

    Problem:    minimise the held-out hinge loss over C for linear machines, bias as one more feature or none.
    Optimality: none is tested; the search takes `max_steps` steps from C_min and stays within [C_min, C_max].
    Derivative: from w - C y_l x_l = 0 for one margin violator l: dw/dC = y_l x_l, hence - y_q y_l x_q'x_l with one
                held-out violator q.  One term in the place of the sum is nobody's optimality condition: the inner
                iteration solves a machine whose effective C is C over the number of violators, which is why the
                method is the baseline.
    Source:     Couellan & Wang, Bi-level stochastic gradient for large scale support vector machine, Neurocomputing
                153 (2015), as Jiang & Siddiqui describe and use it.

    The result is at the last C.  details: C, V, gradient, .. a step, and the folds' last w and alpha.
    """
    return _steps.interleave(
        "couellan_wang", BilevelSGD(), problem, X, y, folds, criterion, C_min, C_max, max_steps, weights, groups,
        solver, seed, max_seconds, callback, progress, compilation,
    )  # fmt: skip
