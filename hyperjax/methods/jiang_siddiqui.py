"""Stochastic steps of C between passes of dual coordinate descent."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..problem import Problem
from ..tune import TuneResult
from ..types import Array, static
from . import _steps
from ._passes import hinge_update, one_pass
from ._steps import Rule, Split, State

__all__ = ["jiang_siddiqui"]

TAKES = _steps.TAKES
JACOBIANS, SAMPLES, SHRINKS = ("paper", "exact"), ("one", "all"), ("clip", "rescale")
CANCELLED = 1e-10
"""What a projection leaves of a vector, relatively, when nothing is left."""


class Interleaved(Rule):
    """Passes of dual coordinate descent, then one step of C by dw/dC and held-out margin violators."""

    exact: bool = static(default=False)
    everyone: bool = static(default=False)
    rescale: bool = static(default=False)
    passes: int = static(default=1)

    def init(self, split: Split, key: Array) -> State:
        """Zeros."""
        zeros = jnp.zeros((split.s.shape[0], split.phi.shape[1]), split.phi.dtype)
        return State(split.low, jnp.zeros_like(split.s), zeros)

    def step(self, split: Split, state: State, k: Array, key: Array) -> tuple[State, dict[str, Array]]:
        """Algorithm C of the reproduction notes: passes, Jacobian, violators, sign step, repair of alpha."""
        inner_key, outer_key = jax.random.split(key)
        upper = split.s * state.C
        alpha, w = self._descend(split, state, upper, inner_key)
        w = split.weights(alpha)

        in_play = split.s > 0
        bounded = in_play & (alpha == upper)
        free = in_play & (alpha > 0) & (alpha < upper)
        slope = split.weights(jnp.where(bounded, split.s, 0.0))
        slope = _projected(split, slope, free) if self.exact else slope
        violators = _steps.held_out_violators(split, w)
        g = self._estimate(split, slope, violators, outer_key)
        C = _steps.move(self, split, state.C, g, k)

        alpha = alpha * (C / state.C) if self.rescale else jnp.minimum(alpha, split.s * C)
        facts = {
            "gradient": g,
            "iterations": jnp.full_like(bounded[:, 0], max(self.passes, 1), jnp.int32),
            "bounded": jnp.sum(bounded, axis=1),
            "free": jnp.sum(free, axis=1),
            "violators": jnp.sum(violators > 0, axis=1),
        }
        return State(C, alpha, split.weights(alpha)), facts

    def _descend(self, split: Split, state: State, upper: Array, key: Array) -> tuple[Array, Array]:
        if self.passes > 0:

            def again(i: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
                return one_pass(hinge_update, jax.random.fold_in(key, i), split.signed, split.squares, *x, upper)

            return lax.fori_loop(0, self.passes, again, (state.alpha, state.w))
        index, _ = _steps.draw(key, split.s)
        at = jnp.arange(index.shape[0]), index
        margin = jnp.sum(state.w * split.signed[index], axis=1)
        new = jax.vmap(hinge_update)(state.alpha[at], margin, split.squares[index], upper[at])
        return state.alpha.at[at].set(new), state.w

    def _estimate(self, split: Split, slope: Array, violators: Array, key: Array) -> Array:
        """The mean over folds of - y_q x_q'dw/dC, for one violator q each or summed over all of them."""
        if self.everyone:
            return -jnp.mean(jnp.sum(violators * (slope @ split.signed.T), axis=1))
        q, found = _steps.draw(key, violators)
        return jnp.mean(jnp.where(found, -jnp.sum(split.signed[q] * slope, axis=1), 0.0))


def _projected(split: Split, slope: Array, free: Array) -> Array:
    """slope (T, p) without its part in the span of the free rows y_i x_i: free rows keep their margin of 1."""
    rounding = 100.0 * split.phi.shape[1] * float(jnp.finfo(slope.dtype).eps)

    def one(x: tuple[Array, Array]) -> Array:
        s, mask = x
        rows = jnp.where(mask[:, None], split.signed, 0.0)
        values, vectors = jnp.linalg.eigh(rows.T @ rows)
        spanned = jnp.where(values > rounding * jnp.maximum(values[-1], 0.0), 1.0, 0.0)
        # twice is enough: what the first projection leaves of the span is rounding
        left = s - vectors @ (spanned * (vectors.T @ s))
        left = left - vectors @ (spanned * (vectors.T @ left))
        return jnp.where(jnp.linalg.norm(left) > CANCELLED * jnp.linalg.norm(s), left, 0.0)

    return lax.map(one, (slope, free))


def jiang_siddiqui(
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any = 5,
    criterion: Any = None,
    jacobian: str = "paper",
    samples: str = "one",
    passes: int = 1,
    shrink: str = "clip",
    logarithmic: bool = False,
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
    """Interleave dual coordinate descent in every fold with sign steps of the C they share.

    Problem:    minimise the held-out hinge loss over C for linear machines, bias as one more feature or none (the
                published numbers are those of none).  One fold or many.
    Optimality: none is tested; the search takes `max_steps` steps from C_min and stays within [C_min, C_max].  Steps
                have length 1 / (k sqrt d) whatever the data are, so 150 of them reach C_min + 5.59 / sqrt(d) at most;
                `logarithmic` takes them in log C.
    Derivative: dw/dC = sum of y_i x_i over the rows at their bound (jacobian="paper", eq. 23).  That is exact only
                where no row is free: free rows keep their margin of 1, so jacobian="exact" projects the sum onto the
                complement of their span.  Without it the sign is wrong in about a quarter of random problems.  Only
                the sign is used, of - y_q x_q'dw/dC for one held-out violator q (samples="one"), or of the sum.
    Source:     Jiang & Siddiqui, Hyper-parameter Optimization for Support Vector Machines using Stochastic Gradient
                Descent and Dual Coordinate Descent, algorithm 1 and its k-fold form.

    Every step makes `passes` passes over all rows, as the paper's text and its accuracies say; passes=0 moves one row
    a step, as algorithm 1 is printed: hardly another row is then at the new bound.  When C falls, `shrink` cuts alpha
    to the box or rescales it.  The result is at the last C.  details: C, V, gradient, bounded, free, violators .. a
    step, and the folds' last w and alpha.
    """
    for name, value, choices in (
        ("jacobian", jacobian, JACOBIANS),
        ("samples", samples, SAMPLES),
        ("shrink", shrink, SHRINKS),
    ):
        if value not in choices:
            raise ValueError(f"{name}={value!r}: choose {' or '.join(map(repr, choices))}")
    if isinstance(passes, bool) or not isinstance(passes, (int, np.integer)) or passes < 0:
        raise ValueError(f"passes={passes!r}: give a whole number, 0 for one row a step")
    rule = Interleaved(bool(logarithmic), jacobian == "exact", samples == "all", shrink == "rescale", int(passes))
    return _steps.interleave(
        "jiang_siddiqui", rule, problem, X, y, folds, criterion, C_min, C_max, max_steps, weights, groups, solver,
        seed, max_seconds, callback, progress, compilation,
    )  # fmt: skip
