"""The bordered system (B): the Newton step of the solvers and the derivative of the solution.

Problem
    Given the slopes P of the proximal map, find dz and db with

        (1 - P_i) ((K dz)_i + db) + t_i P_i dz_i = g_i        sum_i dz_i = total

    (without an unregularised bias: no db and no sum).  P = 1 is a linear piece of the loss: dz is
    read off.  P = 0 is a kink: the output is tied.  In between h = (1 - P)/(t P) is a curvature.

Symmetric form
    With c = sqrt(1 - P) and dz = base + c u, where base = g/(tP) on the samples with (1 - P) K_ii <= tP (0 elsewhere),

        [ c K c + tP   c ] [ u  ]   [ g/c where base = 0, else 0, less c (K base) ]
        [ c'           0 ] [ db ] = [ total - sum base                          ]

    which is well scaled for kinks (tP = 0) and for saturated smooth losses (1 - P tiny) alike.

Solved by
    Woodbury's identity in feature space (K factored, smooth loss), Cholesky on the gathered samples that take part
    (their number picks one of a few block sizes), or conjugate gradients on the system itself, with K as it is stored
    (more samples than the last size, or sparse factors: Woodbury's identity loses digits that would take as many
    products again to bring back).
    A rank-one shift c c' moves the border's null direction away, a ridge of rounding size followed by
    iterative refinement gives the least-norm solution when K is singular.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve

from ..sparse import Matrix
from ..types import Array, Float
from .base import Operator, scatter, where_true
from .conjugate import conjugate_gradients
from .feature_space import factor_solve, feature_factors

__all__ = ["bordered_solve"]

DIRECT_SIZES = (256, 320, 384, 512, 704, 896, 1216, 1536, 2048, 2560)
"""Block sizes of the direct solve; more samples than the last go to conjugate gradients.

Each is one more program to compile; a factor costs what the next size up does, which grows as its cube."""
REFINEMENTS = 2
"""Corrections with the matrix itself after a solve with its ridged factor."""


def bordered_solve(
    op: Operator,
    P: Float[Array, "T n"],
    t: Float[Array, "T n"],
    g: Float[Array, "T n"],
    total: Float[Array, " T"],
    border: bool,
    smooth: bool,
    again: bool = False,
) -> tuple[Float[Array, "T n"], Float[Array, " T"]]:
    """dz (T, n) and db (T,) of the system above; linear in (g, total), differentiable in everything.

    `border` says whether the bias is unregularised, `smooth` that P is never 0 (a choice of method only).  `again`
    keeps the derivative in P right at P = 1 too, where c has none (a curved loss at a weight of 0), for two more
    products: there D = (1 - P)/(t P) is 0 but for its derivative, and dz = v - D (K v + db) with v = base + c u.
    """
    gap, e = 1.0 - P, t * P
    c = jnp.where(gap > 0, jnp.sqrt(jnp.where(gap > 0, gap, 1.0)), 0.0)
    read_off = lax.stop_gradient((gap * op.diagonal()[None, :] <= e) | (c <= 0))
    base = jnp.where(read_off, g / jnp.where(read_off, e, 1.0), 0.0)
    D = jnp.where(c <= 0, gap / jnp.where(c <= 0, e, 1.0), 0.0)

    def bent(v: Array, db: Array) -> Array:
        return v - D * (op.matmul(v) + db[:, None]) if again else v

    none = jnp.zeros_like(total)
    straight, base = base, bent(base, none)
    rhs = jnp.where(read_off, 0.0, g / jnp.where(read_off, 1.0, c)) - c * op.matmul(base)

    def symmetric(u: Array, db: Array = none) -> Array:
        return e * u + c * op.matmul(bent(c * u, db))

    op0, c0, e0 = op.constant(), lax.stop_gradient(c), lax.stop_gradient(e)
    if not border:
        u = lax.custom_linear_solve(
            symmetric, rhs, solve=lambda _, r: _solve(op0, c0, e0, r, none, border, smooth)[0], symmetric=True
        )
        return bent(straight + c * u, none), none

    def join(u: Array, db: Array) -> Array:
        return jnp.concatenate([u, db[:, None]], axis=1)

    def matvec(x: Array) -> Array:
        u, db = x[:, :-1], x[:, -1]
        return join(symmetric(u, db) + c * db[:, None], jnp.sum(bent(c * u, db), axis=1))

    # one array, not a pair: JAX transposes the solve only where its whole right-hand side is linear
    x = lax.custom_linear_solve(
        matvec,
        join(rhs, total - jnp.sum(base, axis=1)),
        solve=lambda _, r: join(*_solve(op0, c0, e0, r[:, :-1], r[:, -1], border, smooth)),
        symmetric=True,
    )
    return bent(straight + c * x[:, :-1], x[:, -1]), x[:, -1]


@functools.partial(jax.jit, static_argnames=("border", "smooth"))  # a solve and its transpose are traced once
def _solve(op: Operator, c: Array, e: Array, r: Array, total: Array, border: bool, smooth: bool) -> tuple[Array, Array]:
    """Pick the method by what is stored and by how many samples take part."""
    phi = op.factors()
    if isinstance(phi, Matrix):
        return _conjugate_gradients(op, c, e, r, total, border)
    if phi is not None and smooth:
        return _in_feature_space(phi, c, e, r, total, border)
    if op.n <= DIRECT_SIZES[-1]:
        return _direct(op, c, e, r, total, border)
    return lax.cond(
        jnp.max(jnp.sum(c > 0, axis=1)) <= DIRECT_SIZES[-1],
        lambda c, e, r, total: _direct(op, c, e, r, total, border),
        lambda c, e, r, total: _conjugate_gradients(op, c, e, r, total, border),
        c, e, r, total,
    )  # fmt: skip


def _direct(op: Operator, c: Array, e: Array, r: Array, total: Array, border: bool) -> tuple[Array, Array]:
    """By a factor a fold, of the gathered samples that take part.

    All there is to gather is gathered once, at the largest size: what is left to a branch is what its size changes,
    because a program is compiled for each.
    """
    sizes = [m for m in DIRECT_SIZES if m < op.n] + ([op.n] if op.n <= DIRECT_SIZES[-1] else [])
    index = jax.vmap(lambda on: where_true(on, sizes[-1]))(c > 0)

    def take(v: Array, fill: float) -> Array:
        return jax.vmap(lambda v, index: v.at[index].get(mode="fill", fill_value=fill))(v, index)

    trace = jnp.sum(c * c * op.diagonal()[None, :] + jnp.where(c > 0, e, 0.0), axis=1)
    number = jnp.maximum(jnp.sum(c > 0, axis=1), 1).astype(c.dtype)
    rho = jnp.where(trace > 0, trace, 1.0) / number if border else jnp.zeros_like(total)
    ridge = jnp.finfo(c.dtype).eps * (trace + rho * jnp.sum(c * c, axis=1))

    def branch(m: int):
        def fold(x: tuple[Array, ...]) -> tuple[Array, Array]:
            index, c, e, r, total, trace, rho, ridge = x
            A = op.block(index) * (c[:, None] * c[None, :])
            u, db = _dense(A, c, e, r, total, trace, rho, ridge, border)
            return jnp.pad(u, (0, sizes[-1] - m)), db

        return lambda *x: lax.map(fold, (*(part[:, :m] for part in x), total, trace, rho, ridge))

    most = jnp.max(jnp.sum(c > 0, axis=1))
    which = sum((most > m).astype(jnp.int32) for m in sizes[:-1])
    u, db = lax.switch(which, [branch(m) for m in sizes], index, take(c, 0.0), take(e, 1.0), take(r, 0.0))
    # a sample with c = 0 is decoupled: its row reads e u = r
    alone = jnp.where(c > 0, 0.0, r / jnp.where(c > 0, 1.0, e))
    return jax.vmap(lambda u, index: scatter(u, index, op.n))(u, index) + alone, db


def _dense(
    A: Array, c: Array, e: Array, r: Array, total: Array, trace: Array, rho: Array, ridge: Array, border: bool
) -> tuple[Array, Array]:
    """Least-norm solution of the bordered system with a dense positive semidefinite A + diag(e).

    `rho` is the size of the shift c c', `ridge` the first one tried.  A program is compiled for every size, so each
    LAPACK call stands in it once, at the head of its loop, and sums are products.  LAPACK asks for columns one after
    the other and loops carry rows: the factor is kept transposed, or every triangular solve would turn it round first.
    """
    on = jnp.arange(A.shape[0])
    diagonal = on[:, None] == on[None, :]
    shifted = A + (rho * c)[:, None] * c[None, :] if border else A

    def ridged(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, ridge, tries = state
        # transposed, a symmetric matrix already has the column order LAPACK asks for
        L = lax.linalg.cholesky_p.bind(jnp.where(diagonal, shifted + (e + ridge)[:, None], shifted).T)
        return L.T.reshape(-1), 100.0 * ridge, tries + 1

    flat, *_ = lax.while_loop(
        lambda s: (s[2] == 0) | (jnp.isnan(s[0][-1]) & (s[1] < 100.0 * trace)),
        ridged,
        (jnp.zeros_like(A).reshape(-1), ridge, jnp.zeros((), jnp.int32)),
    )

    U = flat.reshape(A.shape)

    def refine(_: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        u, db = x
        rest, short = r - A @ u - e * u - c * db, total - c @ u
        if not border:
            return u + cho_solve((U.T, True), rest), db
        du, along = cho_solve((U.T, True), jnp.stack([rest + rho * c * short, c], axis=1)).T
        weight = c @ along
        ddb = jnp.where(weight > 0, (c @ du - short) / jnp.where(weight > 0, weight, 1.0), 0.0)
        return u + du - along * ddb, db + ddb

    return lax.fori_loop(0, 1 + REFINEMENTS, refine, (jnp.zeros_like(r), jnp.zeros_like(total)))


def _in_feature_space(phi: Array, c: Array, e: Array, r: Array, total: Array, border: bool) -> tuple[Array, Array]:
    """The system by Woodbury's identity, for e > 0 throughout, and one refinement."""
    h = c * c / e
    L = feature_factors(phi, h, border)

    def once(r: Array, total: Array) -> tuple[Array, Array]:
        rho = c * r / e
        rhs = rho @ phi
        if border:
            rhs = jnp.concatenate([rhs, (jnp.sum(rho, axis=1) - total)[:, None]], axis=1)
        x = factor_solve(L, rhs)
        w, db = (x[:, :-1], x[:, -1]) if border else (x, jnp.zeros_like(total))
        return (r - c * (w @ phi.T + db[:, None])) / e, db

    u, db = once(r, total)
    rest = r - e * u - c * ((c * u) @ phi @ phi.T + db[:, None])
    du, ddb = once(rest, total - jnp.sum(c * u, axis=1))
    return u + du, db + ddb


def _conjugate_gradients(op: Operator, c: Array, e: Array, r: Array, total: Array, border: bool) -> tuple[Array, Array]:
    """All folds at once with K as it is stored; the border is eliminated by a second right-hand side."""
    diagonal = op.diagonal()[None, :]
    rho = (jnp.mean(diagonal) if border else jnp.zeros((), r.dtype)) * jnp.ones_like(total)
    scale = jnp.where(c > 0, c * c * (diagonal + rho[:, None]), 0.0) + e
    scale = jnp.where(scale > 0, scale, 1.0)

    def matvec(u: Array) -> Array:
        folds = u.shape[0] // c.shape[0]
        cc, ee = jnp.tile(c, (folds, 1)), jnp.tile(e, (folds, 1))
        shift = jnp.tile(rho, folds)[:, None] * jnp.sum(cc * u, axis=1, keepdims=True)
        return ee * u + cc * (op.matmul(cc * u) + shift)

    if not border:
        return conjugate_gradients(matvec, r, lambda r: r / scale)[0], jnp.zeros_like(total)
    right = jnp.concatenate([r + rho[:, None] * c * total[:, None], c])
    both = conjugate_gradients(matvec, right, lambda r: r / jnp.tile(scale, (r.shape[0] // scale.shape[0], 1)))[0]
    u, along = jnp.split(both, 2)
    weight = jnp.sum(c * along, axis=1)
    db = jnp.where(weight > 0, (jnp.sum(c * u, axis=1) - total) / jnp.where(weight > 0, weight, 1.0), 0.0)
    return u - along * db[:, None], db
