"""The one while-loop of the solvers, and their common interface."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..operators import Sparse
from ..problem import Inner
from ..sparse import Matrix
from ..types import Array, Float, Module

__all__ = ["Progress", "Solver", "granted", "imbalance", "pick", "run", "start_point", "violation"]


class Progress(Module):
    """Where a solver stands: its state, the violation (T,) it drives to zero, and the best point seen."""

    state: Any
    z: Array
    b: Array
    violation: Array
    best: Array
    tol: Array
    """What the best violation is held against (T,)."""
    merit: Array
    """The least objective (T,) seen, where the solver tells it."""
    stalled: Array
    """Steps (T,) since the best violation last fell by a tenth, or the objective measurably."""
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
    ) -> tuple[tuple[Float[Array, "T n"], Float[Array, " T"]], dict[str, Array]]:
        """Minimise; returns (z (T, n), b (T,)) and statistics with "iterations" (T,)."""
        raise NotImplementedError(f"{type(self).__name__} must define solve(self, inner, init, tol)")


def run(
    step: Callable[[Any, Array], tuple[Any, ...]],
    state: Any,
    inner: Any,
    tol: Array,
    max_steps: int,
    patience: int,
    first: tuple[Array, Array, Array] | None = None,
) -> tuple[tuple[Array, Array], dict[str, Array]]:
    """Repeat state, z, b, violation = step(state, active) until every fold meets tol, stalls or runs out of steps.

    A solver whose violation need not fall on the way gives its objective (T,) as a fifth value: as long as that falls
    nothing has stalled.

    `active` (T,) marks the folds still at work; a step must leave the others alone.  Returns the best (z, b) seen.
    `first` is (z, b, violation) of the starting point, for solvers that know it: a fold that meets tol takes no step.
    """
    z = jnp.zeros_like(inner.s)
    b = jnp.zeros_like(inner.s[:, 0])
    far = jnp.full_like(b, jnp.inf)
    zero = jnp.zeros_like(b, jnp.int32)
    small = jnp.sqrt(jnp.finfo(b.dtype).eps)

    def active(p: Progress) -> Array:
        return (p.best > p.tol) & (p.stalled < patience)

    def body(carry: tuple[Progress, Array]) -> tuple[Progress, Array]:
        p, it = carry
        go = active(p)
        state, z, b, violation, *objective = step(p.state, go)
        better = go & (violation < p.best)
        progress = better & (violation < 0.9 * p.best)
        merit = p.merit
        if objective:
            progress = progress | (objective[0] < merit - small * jnp.abs(merit)) | ~jnp.isfinite(merit)
            merit = jnp.where(go & (objective[0] < merit), objective[0], merit)
        z, b = jnp.where(better[:, None], z, p.z), jnp.where(better, b, p.b)
        best = jnp.where(better, violation, p.best)
        stalled = jnp.where(progress, 0, p.stalled + go.astype(jnp.int32))
        return Progress(
            state,
            z,
            b,
            jnp.where(go, violation, p.violation),
            best,
            granted(inner, z, b, tol, best, stalled > 0),
            merit,
            stalled,
            p.iterations + go.astype(jnp.int32),
        ), it + 1

    if first is not None:
        z, b, far = first[0], first[1], jnp.where(jnp.isfinite(first[2]), first[2], far)
    met = granted(inner, z, b, tol, far, zero > 0)
    start = Progress(state, z, b, far, far, met, jnp.full_like(b, jnp.inf), zero, zero)
    end, _ = lax.while_loop(
        lambda c: jnp.any(active(c[0])) & (c[1] < max_steps), body, (start, jnp.zeros((), jnp.int32))
    )
    return (end.z, end.b), {"iterations": end.iterations, "violation": end.best}


FAR = 10.0
"""Outputs more than so many times y away from it say little of the loss there."""
SIGNS, ABREAST, CHUNKS = 8, 2, 8
"""Draws of random signs that a product's rounding is judged by, how many go through K at once, and the parts that a
factored product is added up in."""


def granted(
    inner: Any,
    z: Float[Array, "T n"],
    b: Float[Array, " T"],
    tol: Array,
    worst: Float[Array, " T"],
    stuck: Array | bool = True,
) -> Float[Array, " T"]:
    """The tolerance (T,) at (z, b): tol, or up to `inner.limit` the rounding of the outputs, below which no violation
    is known.

    It is measured only where it decides: for a violation `worst` (T,) between tol and the limit that is `stuck` (T,).
    A measurement costs about as much as a step that would be one too many.
    """
    # zeros made of z: where rows are sharded both branches below must vary alike
    tol = jnp.broadcast_to(tol, z.shape[:1]) + jnp.zeros_like(z[:, 0])
    phi = inner.op.factors()
    doubtful = (worst > tol) & (worst <= inner.limit) & stuck

    def bounded(rounding: Array) -> Array:
        return jnp.where(jnp.isfinite(rounding), jnp.clip(rounding, tol, jnp.maximum(tol, inner.limit)), tol)

    def measure() -> Array:
        if phi is None:
            return bounded(_stored(inner, z))
        met = tol
        for part in _factored(inner, phi, z, b):  # the cheapest first, and the next where that is not enough
            enough = jnp.all(~doubtful | (worst <= met))
            met = lax.cond(enough, lambda met: met, lambda met, part=part: jnp.maximum(met, bounded(part())), met)
        return met

    return lax.cond(jnp.any(doubtful), measure, lambda: tol)


def _stored(inner: Any, z: Array) -> Array:
    """What rounds the outputs (T,) of a stored K: the mean over all signs of what _with_signs draws some of."""
    K, length = inner.op.whole(), jnp.sqrt(jnp.sum(z * z, axis=1))
    # |z|_1 / |z| is sqrt(m) for m equal terms; a few large ones among many small ones count as few
    root = jnp.sum(jnp.abs(z), axis=1) / jnp.where(length > 0, length, 1.0)
    return 0.5 * jnp.finfo(z.dtype).eps * root * jnp.sqrt((z * z) @ jnp.einsum("ij,ij->i", K, K) / z.shape[1])


def _factored(inner: Any, phi: Any, z: Array, b: Array) -> list[Callable[[], Array]]:
    """What rounds the outputs (T,) of a factored K, each part a function, those that take fewest products first."""

    def by_size() -> Array:
        # an error of w = Phi'z, from z's own digits and from adding up, is the same for all rows, which may lie at very
        # different distances, and the violation is that of the worst: twice the expected size
        found = _with_signs(inner.op.matmul, z, z.shape)
        return 2.0 * jnp.finfo(z.dtype).eps * jnp.max(jnp.where(inner.s > 0, found, 0.0), axis=1)

    parts = [by_size]
    if not isinstance(phi, Matrix):
        parts.insert(0, lambda: _by_order(inner, phi, z))
    if inner.smooth:
        parts.append(lambda: _by_slopes(inner, phi, z, b))
    return parts


def _signs(first: Array | int, draws: int, n: int) -> Array:
    """Random signs (draws, 1, n), those of draws `first` and following: the first bit of a hash of the place.

    JAX's own generator is long to compile, and nothing here needs its quality.
    """
    x = jnp.arange(draws * n, dtype=jnp.uint32) + jnp.asarray(first * n, jnp.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return jnp.where(x >> 31 == 0, 1, -1).reshape(draws, 1, n)


def _with_signs(product: Callable[[Array], Array], z: Array, shape: tuple[int, ...]) -> Array:
    """The products, of this shape, of z (T, n) with random signs, as the root of their mean square over some draws.

    Rounding errors of a sum of m equal terms have random signs and grow as sqrt(m) times the size of its partial sums;
    with random signs in place of z's own the sum itself has that size.
    """
    share = jnp.full((ABREAST,), 1.0 / SIGNS, z.dtype)

    def add(total: Array, first: Array) -> tuple[Array, None]:
        signs = _signs(first, ABREAST, z.shape[1]).astype(z.dtype)
        sums = product((signs * z[None]).reshape(-1, z.shape[1]))
        # as a product, because sums over a leading axis are slow on a CPU
        return total + (share @ (sums * sums).reshape(ABREAST, -1)).reshape(shape), None

    return jnp.sqrt(lax.scan(add, jnp.zeros(shape, z.dtype) + 0.0 * z[:, :1], jnp.arange(0, SIGNS, ABREAST))[0])


def _by_slopes(inner: Any, phi: Any, z: Array, b: Array) -> Array:
    """The rounding (T,) of outputs whose own rounding has gone through z = -s phi'(o): large where a row is long and
    the loss is curved there.
    """
    w = z @ phi
    off = 0.5 * jnp.finfo(z.dtype).eps * _with_signs(lambda w: w @ phi.T, w, z.shape)
    moved = _with_signs(inner.op.matmul, inner.curvature(w @ phi.T + b[:, None]) * off, z.shape)
    return jnp.max(jnp.where(inner.s > 0, moved, 0.0), axis=1)


def _by_order(inner: Any, phi: Array, z: Array) -> Array:
    """The rounding (T,) of Phi (Phi'z): how far outputs move when Phi'z is added up in another order."""
    size = z.shape[1] // CHUNKS

    def add(w: Array, k: Array) -> tuple[Array, None]:
        part = lax.dynamic_slice_in_dim(z, k * size, size, axis=1), lax.dynamic_slice_in_dim(phi, k * size, size)
        return w + part[0] @ part[1], None

    rest = z[:, size * CHUNKS :] @ phi[size * CHUNKS :]
    moved = (lax.scan(add, rest, jnp.arange(CHUNKS))[0] - z @ phi) @ phi.T
    return jnp.max(jnp.where(inner.s > 0, jnp.abs(moved), 0.0), axis=1)


def start_point(inner: Inner, init: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The warm start with removed samples cleared and broken numbers replaced, or zeros."""
    z0, b0 = jnp.zeros_like(inner.s), jnp.zeros_like(inner.s[:, 0])
    if init is None:
        return z0, b0
    z, b = jax.tree.map(lambda v: jnp.where(jnp.isfinite(v), v, 0.0), init)
    return jnp.where(inner.s > 0, jnp.broadcast_to(z, z0.shape), 0.0), jnp.broadcast_to(b, b0.shape)


def violation(
    inner: Inner, z: Float[Array, "T n"], o: Float[Array, "T n"], t: Float[Array, "T n"]
) -> Float[Array, " T"]:
    """max(max_i |o_i - prox(o_i - t z_i)|, what |sum z| is worth), the certificate `kkt`, shape (T,).

    No less than the last digit of the outputs where a bias has carried all of them far beyond y: there the difference
    is 0 by rounding alone.
    """
    in_play = inner.s > 0
    worst = jnp.max(jnp.where(in_play, jnp.abs(inner.residual(z, o, t)), 0.0), axis=1)
    least = jnp.min(jnp.where(in_play, jnp.abs(o) - FAR * jnp.abs(inner.y), jnp.inf), axis=1)
    unseen = jnp.where(jnp.isfinite(least), jnp.finfo(o.dtype).eps * jnp.maximum(least, 0.0), 0.0)
    return jnp.maximum(jnp.maximum(worst, unseen), imbalance(inner, z, o))


def imbalance(inner: Any, z: Float[Array, "T n"], o: Float[Array, "T n"]) -> Float[Array, " T"]:
    """What |sum z| (T,) is worth in output units where the bias is free, else 0.

    |sum z| / sum_i s_i c_i for any loss.  Where phi is differentiable an error db of the bias leaves
    |sum_i s_i phi'(o_i)| near db sum_i h_i, h = s phi'': losses that are all but straight at every sample tie b down
    that weakly, and the larger of that sum and |sum z|, rounding included, counts as the error it stands for.
    Curvatures below rounding tie nothing: there the bias is an interval.
    """
    if not inner.border:
        return jnp.zeros_like(z[:, 0])
    in_play, off = inner.s > 0, jnp.abs(jnp.sum(z, axis=1))
    budget = jnp.sum(jnp.where(in_play, inner.scale(), 0.0), axis=1)
    plain = off / jnp.where(budget > 0, budget, 1.0)
    if not inner.smooth:
        return plain
    eps = jnp.finfo(z.dtype).eps
    bend = jnp.sum(jnp.where(in_play, inner.curvature(o), 0.0), axis=1)
    off = jnp.maximum(off, jnp.abs(jnp.sum(jnp.where(in_play, inner.slope(o), 0.0), axis=1)))
    rounding = 0.5 * eps * jnp.sqrt(jnp.sum(z * z, axis=1))
    tied = bend > eps * budget
    return jnp.where(tied, jnp.maximum(plain, (off + rounding) / jnp.where(tied, bend, 1.0)), plain)


def pick(inner: Inner) -> Solver:
    """The solver for a loss: Newton where phi is differentiable, Decomposition where it is piecewise linear."""
    from ..losses.piecewise import PiecewiseLinear
    from .decomposition import Decomposition
    from .newton import Newton
    from .proxgrad import ProxGrad

    if inner.smooth:
        return Newton()
    rows = not isinstance(inner.op, Sparse)
    return Decomposition() if isinstance(inner.loss, PiecewiseLinear) and rows else ProxGrad()
