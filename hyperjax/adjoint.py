"""The hypergradient spelled out, with what a vjp has no way to report: residuals and an error bound.

Derivative
    With P, t as in (B), delta = dV/do (T, n) and all products per fold, the adjoint lambda, nu solves

        t P lambda + K (1 - P) lambda + nu 1 = K delta,     sum (1 - P) lambda = sum delta

    which in w = (1 - P) lambda is (B) once more.  Then, for any datum,

        dV = lambda' prox'(o - t z) + (delta - w)' K' z.

    A fold without free samples has b = (lo + hi)/2: its share of sum delta moves from b to the two samples that
    attain the ends.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from . import checks
from .criteria.base import Criterion, apply, number, refuse
from .folds import Folds, as_folds
from .implicit import kink_positions
from .operators import bordered_solve
from .problem import Inner, Problem
from .solve import Solution, cross_solve
from .types import Array, Hyperparameters, Module

__all__ = ["HypergradientInfo", "hypergradient_info"]


class HypergradientInfo(Module):
    """What stands behind a hypergradient."""

    solution: Solution
    """The folds' solution, with its certificate."""
    code: Array
    """One hyperjax.Code a fold."""
    adjoint_residual: Array
    """Largest residual of the adjoint system relative to its right-hand side, a fold."""
    error_bound: Any
    """A tree like the gradient: how far each entry may be from exact, to first order: the change when the solution is
    moved to the Newton point of (F), plus what the adjoint's residual is worth."""


def hypergradient_info(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    weights: Any = None,
    init: Any = None,
    solver: Any = None,
    tol: Any = None,
) -> tuple[Array, Hyperparameters, HypergradientInfo]:
    """(value, gradient, info) of criterion(held-out outputs, y) in the hyperparameters, by an explicit adjoint.

    The same gradient as jax.grad through `cross_decision`; `info` says how good it is.  `weights` (n,) count in
    training and in a criterion that takes them, as every one of hyperjax.criteria does.
    """
    refuse(criterion)
    folds = as_folds(folds, y, checks.n_rows(X))
    solution = cross_solve(problem, hp, X, y, folds, weights, init, solver, tol)
    X, y, fitted, weights = checks.inputs(problem, hp, X, y, weights, folds=folds)
    extra = {"criterion": hp["criterion"]} if "criterion" in hp else {}
    train = folds.train.astype(X.dtype)
    s = train if weights is None else train * weights[None, :]
    # a criterion of the library is a pytree, a bare function part of the program
    tree, function = (criterion, None) if isinstance(criterion, Criterion) else (None, criterion)
    given = problem, {**fitted, **extra}, X, y, s, folds, weights, solution
    value, gradient, residual, bound = _explicit(function, tree, *given)
    return value, gradient, HypergradientInfo(solution, solution.code, residual, bound)


@functools.partial(jax.jit, static_argnums=0)
def _explicit(
    function: Any,
    tree: Any,
    problem: Problem,
    hp: Any,
    X: Array,
    y: Array,
    s: Array,
    folds: Folds,
    weights: Array | None,
    solution: Solution,
) -> tuple[Array, Any, Array, Any]:
    """Value, gradient, adjoint residuals and error bounds at a solution."""
    criterion = function if tree is None else tree

    def value_of(outputs: Array, hp: Any) -> Array:
        moved = solution.replace(outputs=outputs)
        return number(apply(criterion, moved.held_out(folds), y, folds, hp, weights))

    def inner_of(hp: Any) -> Inner:
        return problem.inner(hp, X, y, s)

    inner = inner_of(lax.stop_gradient(hp))
    z, o = solution.z, solution.outputs
    b = jnp.zeros_like(solution.b) if problem.bias == "regularised" else solution.b
    value, (delta, direct) = jax.value_and_grad(value_of, argnums=(0, 1))(o, hp)
    gradient, residual, adjoint_error = _contract(inner_of, inner, hp, z, b, o, delta)

    z_next, b_next = _newton_point(inner, z, b, o)
    o_next = inner.outputs(z_next, b_next)
    delta_next, direct_next = jax.grad(value_of, argnums=(0, 1))(o_next, hp)
    gradient_next, _, _ = _contract(inner_of, inner, hp, z_next, b_next, o_next, delta_next)
    add = jax.tree.map(jnp.add, gradient, direct)
    add_next = jax.tree.map(jnp.add, gradient_next, direct_next)
    bound = jax.tree.map(lambda a, a_next, e: jnp.abs(a_next - a) + jnp.abs(e), add, add_next, adjoint_error)
    return value, add, residual, bound


def _newton_point(inner: Inner, z: Array, b: Array, o: Array) -> tuple[Array, Array]:
    """One Newton step on (F) from a solution; where nobody is free every coefficient already sits on its bound."""
    t = inner.steps()
    nobody = inner.nobody_free(z)
    P = jnp.where(nobody[:, None], 1.0, inner.faces(z, o, t))
    total = -jnp.sum(z, axis=1) if inner.border else jnp.zeros_like(b)
    dz, db = bordered_solve(inner.op, P, t, -inner.residual(z, o, t), total, inner.border, inner.smooth)
    return z + jnp.where(nobody[:, None], 0.0, dz), b + jnp.where(nobody, 0.0, db)


def _contract(inner_of: Any, inner: Inner, hp: Any, z: Array, b: Array, o: Array, delta: Array):
    """The gradient lambda' prox' + (delta - w)' K' z, the adjoint's residual, and what that residual is worth."""
    t = inner.steps()
    v, nobody, ends = o - t * z, inner.nobody_free(z), None
    P = jnp.where(nobody[:, None], 1.0, inner.faces(z, o, t))
    if inner.border and inner.loss.flat:
        at, share = kink_positions(inner, z, o - b[:, None])
        ends = at, jnp.where(nobody[None, :, None], share, 0.0) * jnp.sum(delta, axis=1)[None, :, None]
        delta = delta - jnp.sum(ends[1], axis=0)
    Kd, total = inner.op.matmul(delta), jnp.sum(delta, axis=1)
    lam, w, nu = _adjoint(inner, P, t, Kd, total)
    error = Kd - t * P * lam - inner.op.matmul((1.0 - P) * lam) - nu[:, None]
    short = total - jnp.sum((1.0 - P) * lam, axis=1) if inner.border else jnp.zeros_like(total)
    size = jnp.max(jnp.abs(Kd), axis=1) + jnp.abs(total)
    worst = jnp.maximum(jnp.max(jnp.abs(error), axis=1), jnp.abs(short))
    residual = worst / jnp.where(size > 0, size, 1.0)
    lam_error, w_error, _ = _adjoint(inner, P, t, error, short)

    def pairing(hp: Any, lam: Array, kernel_weight: Array, ends: Any) -> Array:
        moved = inner_of(hp)
        out = jnp.sum(lam * moved.prox(v, t)) + jnp.sum(kernel_weight * moved.op.matmul(z))
        return out if ends is None else out + jnp.sum(ends[1] * jax.vmap(lambda at: moved.prox(at, t))(ends[0]))

    gradient = jax.grad(pairing)(hp, lam, delta - w, ends)
    return gradient, residual, jax.grad(pairing)(hp, lam_error, -w_error, None)


def _adjoint(inner: Inner, P: Array, t: Array, Kd: Array, total: Array) -> tuple[Array, Array, Array]:
    """lambda, w = (1 - P) lambda and nu for the right-hand side K delta, sum delta."""
    w, nu = bordered_solve(inner.op, P, t, (1.0 - P) * Kd, total, inner.border, inner.smooth)
    read_off = P >= 0.5
    lam = jnp.where(
        read_off,
        (Kd - inner.op.matmul(w) - nu[:, None]) / jnp.where(read_off, t * P, 1.0),
        w / jnp.where(read_off, 1.0, 1.0 - P),
    )
    return lam, (1.0 - P) * lam, nu
