"""The one while-loop of the solvers, and their common interface."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..problem import Inner
from ..types import Array, Module

__all__ = ["Progress", "Solver", "pick", "run", "start_point", "violation"]


class Progress(Module):
    """Where a solver stands: its state, the violation (T,) it drives to zero, and the best point seen."""

    state: Any
    z: Array
    b: Array
    violation: Array
    best: Array
    stalled: Array
    """Steps (T,) since the best violation last fell by a tenth."""
    iterations: Array


class Solver(Module):
    """A search for (z, b) without derivatives.

    A solver of your own subclasses this with `supports` and `solve`; the derivative comes from (F), not from here.
    """

    def supports(self, inner: Inner) -> str | None:
        """None, or what about the loss, operator or bias this solver cannot handle, in words."""
        return None

    def solve(
        self, inner: Inner, init: tuple[Array, Array] | None, tol: Array
    ) -> tuple[tuple[Array, Array], dict[str, Array]]:
        """Minimise; returns (z (T, n), b (T,)) and statistics with "iterations" (T,)."""
        raise NotImplementedError(f"{type(self).__name__} must define solve(self, inner, init, tol)")


def run(
    step: Callable[[Any, Array], tuple[Any, Array, Array, Array]],
    state: Any,
    inner: Inner,
    tol: Array,
    max_steps: int,
    patience: int,
    first: tuple[Array, Array, Array] | None = None,
) -> tuple[tuple[Array, Array], dict[str, Array]]:
    """Repeat state, z, b, violation = step(state, active) until every fold meets tol, stalls or runs out of steps.

    `active` (T,) marks the folds still at work; a step must leave the others alone.  Returns the best (z, b) seen.
    `first` is (z, b, violation) of the starting point, for solvers that know it: a fold that meets tol takes no step.
    """
    z = jnp.zeros_like(inner.s)
    b = jnp.zeros_like(inner.s[:, 0])
    far = jnp.full_like(b, jnp.inf)
    zero = jnp.zeros_like(b, jnp.int32)

    def active(p: Progress) -> Array:
        return (p.best > tol) & (p.stalled < patience)

    def body(carry: tuple[Progress, Array]) -> tuple[Progress, Array]:
        p, it = carry
        go = active(p)
        state, z, b, violation = step(p.state, go)
        better = go & (violation < p.best)
        progress = better & (violation < 0.9 * p.best)
        return Progress(
            state,
            jnp.where(better[:, None], z, p.z),
            jnp.where(better, b, p.b),
            jnp.where(go, violation, p.violation),
            jnp.where(better, violation, p.best),
            jnp.where(progress, 0, p.stalled + go.astype(jnp.int32)),
            p.iterations + go.astype(jnp.int32),
        ), it + 1

    if first is not None:
        z, b, far = first[0], first[1], jnp.where(jnp.isfinite(first[2]), first[2], far)
    start = Progress(state, z, b, far, far, zero, zero)
    end, _ = lax.while_loop(
        lambda c: jnp.any(active(c[0])) & (c[1] < max_steps), body, (start, jnp.zeros((), jnp.int32))
    )
    return (end.z, end.b), {"iterations": end.iterations, "violation": end.best}


def start_point(inner: Inner, init: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The warm start with removed samples cleared and broken numbers replaced, or zeros."""
    z0, b0 = jnp.zeros_like(inner.s), jnp.zeros_like(inner.s[:, 0])
    if init is None:
        return z0, b0
    z, b = jax.tree.map(lambda v: jnp.where(jnp.isfinite(v), v, 0.0), init)
    return jnp.where(inner.s > 0, jnp.broadcast_to(z, z0.shape), 0.0), jnp.broadcast_to(b, b0.shape)


def violation(inner: Inner, z: Array, o: Array, t: Array) -> Array:
    """max(max_i |o_i - prox(o_i - t z_i)|, |sum z| / sum_i s_i c_i), the certificate `kkt`, shape (T,)."""
    in_play = inner.s > 0
    worst = jnp.max(jnp.where(in_play, jnp.abs(inner.residual(z, o, t)), 0.0), axis=1)
    if not inner.border:
        return worst
    budget = jnp.sum(jnp.where(in_play, inner.scale(), 0.0), axis=1)
    return jnp.maximum(worst, jnp.abs(jnp.sum(z, axis=1)) / jnp.where(budget > 0, budget, 1.0))


def pick(inner: Inner) -> Solver:
    """The solver for a loss: Newton where phi is differentiable, Decomposition where it is piecewise linear."""
    from ..losses.piecewise import PiecewiseLinear
    from .decomposition import Decomposition
    from .newton import Newton
    from .proxgrad import ProxGrad

    if inner.smooth:
        return Newton()
    return Decomposition() if isinstance(inner.loss, PiecewiseLinear) else ProxGrad()
