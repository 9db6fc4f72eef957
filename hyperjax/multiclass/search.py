"""The search for the coefficients of a multi-class problem."""

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
REFINEMENTS = 2
"""Corrections of every solve with the matrix itself."""
FLOOR = 0.6
"""K + slack / p is factored with slack / p no less than eps**FLOOR times K's mean diagonal: below that, rounding in K
has eaten the difference.  What this makes a step miss is part of the next one's right-hand side."""
SHIFT = 10.0
"""Multiples of eps added to the diagonal of the last system, relative to each entry."""
TO_THE_WALL = 0.99
"""The part of the way to the boundary that a step goes at most."""


def search(inner: Rows, tol: Array) -> tuple[Array, Array]:
    """Coefficients (1, n k) that meet tol, and the number of steps (1,).

    Iteration
        Mehrotra's interior-point method on p_i = s_i C own class - z_i, a point of a simplex.  A step solves with
        K + D_j for each class j, D diagonal, and with the sum of their inverses, and never with an n k x n k matrix.
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
        p, level, slack = _interior_step(K, most, own, d, state)
        Z = most[:, None] * own - p
        z, o = inner.flat(Z), inner.flat(K @ Z)
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


def _interior_step(
    K: Array, most: Array, own: Array, d: Array, state: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Predictor and corrector for p >= 0, slack >= 0, p slack = 0, sum_j p_j = most, level - (K Z + d) = slack.

    Everything is (n, k) but `level` and `most`, (n,).  With e = sqrt(p / slack) the inverse of K + slack / p is
    e (I + e K e)^-1 e = V'V.
    """
    p, level, slack = state
    in_play = (most > 0)[:, None]
    live = jnp.sum(in_play).astype(p.dtype) * p.shape[1]
    slack = jnp.where(in_play, slack, 1.0)
    off = jnp.where(in_play, level[:, None] - K @ (most[:, None] * own - p) - d - slack, 0.0)
    safe = jnp.where(in_play, p, 1.0)
    least = jnp.finfo(K.dtype).eps ** FLOOR * jnp.trace(K) / K.shape[0]
    ratio = jnp.maximum(slack / safe, least)
    e, eye = jnp.where(in_play, 1.0 / jnp.sqrt(ratio), 0.0).T, jnp.eye(K.shape[0], dtype=K.dtype)
    L = lax.linalg.cholesky(eye[None] + e[:, :, None] * K[None] * e[:, None, :], symmetrize_input=False)
    V = solve_triangular(L, e[:, :, None] * eye[None], lower=True)
    total = jnp.einsum("jab,jac->bc", V, V)
    # relative to each entry: they differ by many powers of ten
    ridge = jnp.where(in_play[:, 0], SHIFT * jnp.finfo(K.dtype).eps * jnp.diagonal(total), 1.0)
    S = lax.linalg.cholesky(total + jnp.diag(ridge), symmetrize_input=False)

    def inverse(r: Array) -> Array:
        return jnp.einsum("jab,ja->bj", V, jnp.einsum("jab,bj->ja", V, r))

    short = jnp.where(in_play[:, 0], most - jnp.sum(p, axis=1), 0.0)

    def solve(r: Array, short: Array) -> tuple[Array, Array]:
        w = inverse(r)
        dlevel = cho_solve((S, True), jnp.sum(w, axis=1) - short)
        return w - inverse(jnp.broadcast_to(dlevel[:, None], w.shape)), dlevel

    def direction(product: Array) -> tuple[Array, Array, Array]:
        """The step that changes p slack by `product`, to first order."""
        r = product / safe - off

        def refine(_: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
            dp, dlevel = x
            left = jnp.where(in_play, r - K @ dp - ratio * dp - dlevel[:, None], 0.0)
            more = solve(left, short - jnp.sum(dp, axis=1))
            return dp + more[0], dlevel + more[1]

        dp, dlevel = lax.fori_loop(0, REFINEMENTS, refine, solve(r, short))
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
