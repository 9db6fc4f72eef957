"""The search for the coefficients of a multi-class problem."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve, solve_triangular

from ..operators import bordered_solve
from ..solvers.loop import run, violation
from ..types import Array
from .problem import Rows

__all__ = ["search"]

MAX_STEPS = 100
REFINEMENTS = 8
"""Steps of conjugate gradients after every solve with the factors."""
FLOOR = 0.6
"""K + slack / p is factored with slack / p no less than eps**FLOOR times K's mean diagonal: below that, rounding in K
has eaten the difference.  Conjugate gradients, for which the factors are the preconditioner, make up for it: without
them what a step misses is larger than what it is after once C is in the thousands in float32."""
SHIFT = 10.0
"""Multiples of eps added to the diagonal of the last system, relative to each entry."""
TO_THE_WALL = 0.99
"""The part of the way to the boundary that a step goes at most."""


def search(inner: Rows, tol: Array) -> tuple[Array, Array]:
    """Coefficients (1, n k) that meet tol, and the number of steps (1,).

    Iteration
        Mehrotra's interior-point method on p_i = s_i C own class - z_i, a point of a simplex.  A step solves with
        K + D_j for each class j, D diagonal, and with the sum of their inverses, and never with an n k x n k matrix;
        conjugate gradients remove what rounding and the raised entries of D leave.
        One Newton step with (B) on the face it ends on follows.
    Stops when
        `kkt` is within tol, or stands still.
    Cost per step
        a Cholesky factor, a triangular inverse and a product, all n x n, for each class.
    Guarantee
        feasible; tens of steps, slowly more as C grows, and no more than MAX_STEPS.  The coefficients it tends to are
        the most central ones, so the face it ends on is right where K is singular as well.
    """
    most, own, d = inner.cost(), inner.rows(inner.y), inner.margins()
    in_play, K = (most > 0)[:, None], inner.op.base.whole()  # type: ignore[attr-defined]  # op is Outputs
    t = inner.steps()

    def step(state: tuple[Array, Array, Array], active: Array) -> tuple[Any, ...]:
        p, level, slack = _interior_step(inner, K, state)
        z = inner.flat(most[:, None] * own - p)
        o = inner.op.matmul(z)
        return (p, level, slack), z, jnp.zeros_like(z[:, 0]), violation(inner, z, o, t)

    p = jnp.where(in_play, most[:, None] / inner.k, 0.0) * jnp.ones_like(own)
    G = K @ (most[:, None] * own - p) + d
    room = 1.0 + jnp.max(jnp.where(in_play, jnp.max(G, axis=1, keepdims=True) - G, 0.0))
    level = jnp.max(G, axis=1) + room
    (z, _), stats = run(step, (p, level, level[:, None] - G), inner, tol, MAX_STEPS, 10)

    o = inner.op.matmul(z)
    better = inner.flat(inner.feasible(inner.rows(z + _newton(inner, z, o))))
    finer = violation(inner, better, inner.op.matmul(better), t) < violation(inner, z, o, t)
    return jnp.where(finer[:, None], better, z), stats["iterations"]


def _newton(inner: Rows, z: Array, o: Array) -> Array:
    """The step to the solution of (F) on the face that holds z, o."""
    turned = inner.turned(z, o)
    t = turned.steps()
    P, residual = turned.faces(z, o, t), turned.into(inner.residual(z, o, t))
    dz, _ = bordered_solve(turned.op, P, t, -residual, jnp.zeros_like(z[:, 0]), False, False)
    return turned.out(dz)


def _interior_step(inner: Rows, K: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Predictor and corrector for p >= 0, slack >= 0, p slack = 0, sum_j p_j = most, level - (K Z + d) = slack.

    Everything is (n, k) but `level` and `most`, (n,).
    """
    most, own, d = inner.cost(), inner.rows(inner.y), inner.margins()
    p, level, slack = state
    in_play = (most > 0)[:, None]
    live = jnp.sum(in_play).astype(p.dtype) * p.shape[1]
    slack, safe = jnp.where(in_play, slack, 1.0), jnp.where(in_play, p, 1.0)
    off = jnp.where(in_play, level[:, None] - _outputs(inner, most[:, None] * own - p) - d - slack, 0.0)
    short = jnp.where(in_play[:, 0], most - jnp.sum(p, axis=1), 0.0)
    ratio = slack / safe
    solve = _factored(K, ratio, in_play)
    apply = lambda dp: jnp.where(in_play, _outputs(inner, dp) + ratio * dp, 0.0)

    def direction(product: Array) -> tuple[Array, Array, Array]:
        """The step that changes p slack by `product`, to first order."""
        dp, dlevel = _refined(solve, apply, in_play, product / safe - off, short)
        return dp, dlevel, (product - slack * dp) / safe

    def room(dp: Array, dslack: Array) -> Array:
        """How far both stay nonnegative, at most 1."""
        falls = jnp.maximum(-dp / safe, -dslack / slack)
        return 1.0 / jnp.maximum(1.0, jnp.max(jnp.where(in_play, falls, 0.0)))

    now = jnp.where(in_play, p * slack, 0.0)
    mean = jnp.sum(now) / live
    dp, _, dslack = direction(-now)
    a = room(dp, dslack)
    ahead = jnp.sum(jnp.where(in_play, (p + a * dp) * (slack + a * dslack), 0.0)) / live
    centre = mean * jnp.clip(ahead / mean, 0.0, 1.0) ** 3
    dp, dlevel, dslack = direction(jnp.where(in_play, centre - now - dp * dslack, 0.0))
    a = jnp.minimum(1.0, TO_THE_WALL * room(dp, dslack))
    p = jnp.where(in_play, p + a * dp, 0.0)
    total = jnp.sum(p, axis=1)
    return (
        p * jnp.where(in_play[:, 0], most / total, 0.0)[:, None],
        level + a * dlevel,
        jnp.where(in_play, slack + a * dslack, 1.0),
    )


def _outputs(inner: Rows, Z: Array) -> Array:
    """K Z (n, k)."""
    return inner.rows(inner.op.matmul(inner.flat(Z)))


def _factored(K: Array, ratio: Array, in_play: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The solution (x, level) of K x_j + ratio_j x_j + level = r_j, sum_j x_j = short, with small ratios raised.

    With e = 1 / sqrt(ratio) the inverse of K + ratio is e (I + e K e)^-1 e = V'V.
    """
    least = jnp.finfo(K.dtype).eps ** FLOOR * jnp.trace(K) / K.shape[0]
    e = jnp.where(in_play, 1.0 / jnp.sqrt(jnp.maximum(ratio, least)), 0.0).T
    eye = jnp.eye(K.shape[0], dtype=K.dtype)
    L = lax.linalg.cholesky(eye[None] + e[:, :, None] * K[None] * e[:, None, :], symmetrize_input=False)
    V = solve_triangular(L, e[:, :, None] * eye[None], lower=True)
    total = jnp.einsum("jab,jac->bc", V, V)
    # relative to each entry: they differ by many powers of ten
    ridge = jnp.where(in_play[:, 0], SHIFT * jnp.finfo(K.dtype).eps * jnp.diagonal(total), 1.0)
    S = lax.linalg.cholesky(total + jnp.diag(ridge), symmetrize_input=False)

    def inverse(r: Array) -> Array:
        return jnp.einsum("jab,ja->bj", V, jnp.einsum("jab,bj->ja", V, r))

    def solve(r: Array, short: Array) -> tuple[Array, Array]:
        w = inverse(r)
        level = cho_solve((S, True), jnp.sum(w, axis=1) - short)
        return w - inverse(jnp.broadcast_to(level[:, None], w.shape)), level

    return solve


def _refined(
    solve: Callable[[Array, Array], tuple[Array, Array]],
    apply: Callable[[Array], Array],
    in_play: Array,
    r: Array,
    short: Array,
) -> tuple[Array, Array]:
    """`solve` as the preconditioner of conjugate gradients on apply(x) + level = r, sum_j x_j = short.

    They end where the residual, in its own metric, has lost every digit of what it began with.
    """
    eps = jnp.finfo(r.dtype).eps

    def again(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, level, left, way, before, end = state
        y, rise = solve(left, short - jnp.sum(x, axis=1))
        # the level is taken out before the product: beside it the rest would drown
        left = jnp.where(in_play, left - rise[:, None], 0.0)
        size = jnp.sum(left * y)
        size = jnp.where((size > end) & (before > 0), size, 0.0)
        way = y + size / jnp.where(before > 0, before, 1.0) * way
        moved = apply(way)
        bend = jnp.sum(way * moved)
        a = jnp.where((size > 0) & (bend > 0), size / jnp.where(bend > 0, bend, 1.0), 0.0)
        return x + a * way, level + rise, left - a * moved, way, size, jnp.maximum(end, eps * size)

    x, level = solve(r, short)
    left = jnp.where(in_play, r - level[:, None], 0.0) - apply(x)
    first = (x, level, left, jnp.zeros_like(x), jnp.full((), jnp.inf, r.dtype), jnp.zeros((), r.dtype))
    x, level, *_ = lax.fori_loop(0, REFINEMENTS, again, first)
    return x, level
