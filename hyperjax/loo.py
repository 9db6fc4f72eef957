"""Leave-one-out outputs from one solution: exact for squared losses, by the active set for the others.

Problem
    o_i^(-i), the output at row i of the model trained without it.
Optimality
    Let F be the samples with curvature or on a kink (P < 1), h their curvature, and M = [K_FF + diag(1/h_F), 1; 1', 0]
    the matrix of (B) (without its border where the bias is no unknown).  If no other sample changes its piece,

        i in F       o_i^(-i) = o_i - z_i (1 / (M^-1)_ii - 1/h_i)
        i not in F   o_i^(-i) = o_i - z_i (K_ii - m_i' M^-1 m_i),      m_i = (K_iF, 1)

    Nothing changes its piece where the loss has only one: for `Squared` the outputs are exact.
Derivative
    Of these formulas, z and o by the rule of implicit.py; F is a constant.
Source
    Allen's PRESS for ridge regression; Cawley & Talbot, leave-one-out of least-squares support vector machines (2004);
    Vapnik & Chapelle, the span of support vectors (2000), for the others.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from . import checks
from .folds import Folds
from .problem import Problem
from .results import Code
from .solve import solve, unless
from .types import Array, Hyperparameters

__all__ = ["everybody", "left_out", "loo_decision", "objection"]

LARGEST = 8192
"""More rows than this are refused: the formulas invert a matrix of that size, where ten folds would do as well."""


def loo_decision(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    weights: Any = None,
    init: Any = None,
    solver: Any = None,
    tol: Any = None,
) -> Array:
    """Leave-one-out outputs (n,) of every row, from one fit on all rows; differentiable like `cross_decision`.

    Exact for `Squared`, and for other losses as far as leaving a row out moves no other to another piece of its loss
    (smooth losses: to first order).  Rows of weight 0 get the model's outputs.  NaN where the fit failed.  O(n^3).
    """
    solution = solve(problem, hp, X, y, weights, init, solver, tol)
    X, y, hp, weights = checks.inputs(problem, hp, X, y, weights, solver=solver)
    s = jnp.ones_like(y) if weights is None else weights
    rows = (part[None] for part in (y, s, solution.z, solution.outputs, solution.code))
    return left_out(problem, hp, X, *rows)[0]


def left_out(
    problem: Problem, hp: Hyperparameters, X: Array, y: Array, s: Array, z: Array, o: Array, code: Array
) -> Array:
    """Leave-one-out outputs (k, n) of k fits to the same rows; arrays are (k, n), `code` (k,); NaN where one failed."""
    out = lax.map(lambda fit: _left_out(problem, hp, X, *fit), (y, s, z, o))
    failed = jnp.isin(code, jnp.asarray([c for c in Code if c.failed], code.dtype))
    return unless(failed[:, None], out)


def everybody(y: Any, dtype: Any) -> Folds:
    """The one fold of a search by leave-one-out: trained on every row, and every row judged."""
    ones = jnp.ones((1, y.shape[-1]), dtype)
    return Folds(ones, ones)


def objection(n: int) -> str | None:
    """What keeps the formulas from serving n rows, in words; every loss and every kind of bias will do."""
    if n < 3:
        return f"{n} rows are too few to leave one out"
    if n > LARGEST:
        return f"{n} rows need the inverse of a matrix of that size (at most {LARGEST} rows): take folds=10"
    return None


@jax.jit
def _left_out(problem: Problem, hp: Hyperparameters, X: Array, y: Array, s: Array, z: Array, o: Array) -> Array:
    X, y, s = lax.optimization_barrier((X, y, s))
    inner = problem.inner(hp, X, y, s[None, :])
    t = inner.steps()
    P = inner.faces(z[None, :], o[None, :], t)[0]
    in_play = s > 0
    free = lax.stop_gradient((P < 1.0) & in_play)
    tied = lax.stop_gradient(P <= 0.0)
    compliance = jnp.where(free & ~tied, t[0] * P / jnp.where(P < 1.0, 1.0 - P, 1.0), 0.0)

    K = problem.kernel.cross(hp["kernel"], X, X)
    K = K + 1.0 if problem.bias == "regularised" else K
    border = jnp.ones_like(z) if problem.bias is True else jnp.zeros_like(z)
    F = free.astype(K.dtype)
    known = jnp.any(free) & (problem.bias is True)
    corner = jnp.where(known, 0.0, 1.0).astype(K.dtype)
    edge = jnp.where(known, F * border, 0.0)
    body = K * F[:, None] * F[None, :] + jnp.diag(jnp.where(free, compliance, 1.0))
    M = jnp.block([[body, edge[:, None]], [edge[None, :], corner[None, None]]])
    # duplicate rows on a kink make K_FF singular; a shift of rounding size leaves the outputs alone
    shift = jnp.finfo(K.dtype).eps * jnp.max(jnp.abs(jnp.diagonal(K)))
    M = M + jnp.diag(jnp.append(shift * F, jnp.zeros((), K.dtype)))
    inverse = jnp.linalg.inv(M)

    own = jnp.diagonal(inverse)[:-1]
    alone = jnp.abs(own) <= jnp.finfo(K.dtype).eps  # the only free sample: without it the bias is anybody's
    inside = jnp.where(alone, jnp.diagonal(K), 1.0 / jnp.where(alone, 1.0, own) - compliance)
    rows = jnp.concatenate([K * F[None, :], jnp.where(known, border, 0.0)[:, None]], axis=1)
    outside = jnp.diagonal(K) - jnp.sum((rows @ inverse) * rows, axis=1)
    return o - jnp.where(in_play, z * jnp.where(free, inside, outside), 0.0)
