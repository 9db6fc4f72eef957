"""Solver and rule together: from hyperparameters to a differentiable Solution."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import checks
from .compiling import jitted
from .faces import certificate, settle_bias
from .folds import Folds, as_folds
from .implicit import attach
from .operators import cross_matmul
from .problem import Problem
from .results import Code
from .solvers.loop import Solver, pick
from .sparse import Matrix
from .types import Array, Bool, Float, Hyperparameters, Int, Module

__all__ = ["Solution", "cross_decision", "cross_solve", "solve"]


class Solution(Module):
    """Coefficients, bias and outputs of one or several folds, with the certificate that they solve the problem.

    z (n,), b () and the rest scalars; with weights (T, n) a leading T on all.  z, b, `outputs` and `decision` are
    differentiable in hyperparameters, X, y and weights; the certificate is not.
    """

    problem: Problem
    hp: Hyperparameters
    X: Any
    z: Float[Array, "*T n"]
    b: Float[Array, "*T"]
    outputs: Float[Array, "*T n"]
    """o = K z + b on the training rows, removed ones included."""
    kkt: Float[Array, "*T"]
    """Violation of (F) in output units, the quantity `tol` bounds."""
    gap: Float[Array, "*T"]
    """Duality gap relative to the primal value."""
    code: Int[Array, "*T"]
    """One hyperjax.Code a fold."""
    iterations: Int[Array, "*T"]
    n_free: Int[Array, "*T"]
    """Samples on a curved piece or a kink of their loss."""
    degenerate: Int[Array, "*T"]
    """Samples on a kink without slack, where the derivative is one-sided."""
    distance: Float[Array, "*T"]
    """How far the nearest sample is from changing its piece, in output units."""

    @property
    def converged(self) -> Bool[Array, "*T"]:
        """code == OK."""
        return self.code == Code.OK

    def decision(self, X_new: Any) -> Float[Array, "*T m"]:
        """Outputs at new rows, (m,) or (T, m); differentiable, in blocks of rows.

        With a Precomputed kernel X_new holds the kernel values between new and training rows, (m, n).
        """
        X_new = checks.new_rows(self.problem, X_new, self.X)
        X, z, b = self.X, jnp.atleast_2d(self.z), jnp.atleast_1d(self.b)
        if checks.concrete((X, z, X_new)) and not isinstance(X, Matrix) and not self.problem.kernel.needs_all_rows():
            X, z = _support(X, z, X_new.shape[0])
        out = _decision(self.problem, self.hp, X, z, b, X_new)
        return out if self.z.ndim == 2 else out[0]

    def held_out(self, folds: Folds) -> Float[Array, "*R n"]:
        """Outputs (n,) of every sample by the fold that tests it; (R, n) for R > 1 repeats.

        Rows that no fold tests hold 0.  A fold that failed (see `raise_if_failed`) makes its outputs NaN.
        """
        folds = as_folds(folds, None, self.outputs.shape[-1])
        checks.same_folds(folds, self.outputs)
        return held_out(self.outputs, self.code, folds)

    def raise_if_failed(self) -> "Solution":
        """Itself, or a RuntimeError that names the folds whose solution must not be used."""
        checks.known("call raise_if_failed on the solution that jit returns, or look at its code", code=self.code)
        codes, kkt = np.atleast_1d(np.asarray(self.code)), np.atleast_1d(np.asarray(self.kkt))
        bad = [(t, Code(int(c)), k) for t, (c, k) in enumerate(zip(codes, kkt, strict=True)) if Code(int(c)).failed]
        if bad:
            lines = "; ".join(f"fold {t}: {c.name} (kkt {k:.1e})" for t, c, k in bad)
            raise RuntimeError(f"{len(bad)} of {len(codes)} solves failed: {lines}. {checks.remedy(bad[0][1])}")
        return self

    def save(self, path: Any) -> None:
        """Write an npz file with a JSON header, support vectors only."""
        from .storage import save

        save(self, path)

    def to_sklearn(self, classes: Any = (-1, 1)) -> Any:
        """A fitted scikit-learn estimator with the same outputs; a ValueError says where there is none."""
        from .exports import to_sklearn

        return to_sklearn(self, classes)

    @staticmethod
    def load(path: Any, problem: Problem | None = None) -> "Solution":
        """Read what `save` wrote; `problem` is needed for losses and kernels defined outside the library."""
        from .storage import load

        return load(path, problem)


def solve(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    weights: Any = None,
    init: Any = None,
    solver: Solver | None = None,
    tol: Any = None,
) -> Solution:
    """Solve the inner problem at the hyperparameters hp.

    weights (n,) scale the samples' losses (0 removes one); (T, n) solves T problems at once.  `init` is a Solution
    or a pair (z, b) to start from, `solver` one of hyperjax.solvers (None picks by the loss), `tol` bounds `kkt`
    (default 1e-8 in float64, 1e-3 in float32, and no less than rounding in K z allows).  Concrete arguments are
    checked; traced ones give codes instead.
    """
    X, y, hp, weights = checks.inputs(problem, hp, X, y, weights, solver=solver)
    s = jnp.ones_like(y) if weights is None else weights
    single = s.ndim == 1
    s = jnp.atleast_2d(s)
    tol = checks.tolerance(tol, X.dtype)
    parts = solve_batch(problem, hp, X, y, s, _start(problem, hp, y, s, init), solver, tol)
    return Solution(problem, hp, X, **(jax.tree.map(lambda v: v[0], parts) if single else parts))


def cross_solve(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    folds: Any,
    weights: Any = None,
    init: Any = None,
    solver: Solver | None = None,
    tol: Any = None,
) -> Solution:
    """Solve all folds together; the Solution has a leading fold axis.

    `folds` is a Folds, a bare (T, n) array of training weights, or a number of folds; `weights` (n,) multiply the
    folds' training weights.
    """
    folds = as_folds(folds, y, checks.n_rows(X))
    X, y, hp, weights = checks.inputs(problem, hp, X, y, weights, folds, solver)
    train = folds.train.astype(X.dtype)
    s = train if weights is None else train * weights[None, :]
    tol = checks.tolerance(tol, X.dtype)
    return Solution(problem, hp, X, **solve_batch(problem, hp, X, y, s, _start(problem, hp, y, s, init), solver, tol))


def cross_decision(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    folds: Any,
    weights: Any = None,
    init: Any = None,
    solver: Solver | None = None,
    tol: Any = None,
) -> Float[Array, "*R n"]:
    """The held-out outputs (n,) of a cross-validation, (R, n) with R repeats: cross_solve(...).held_out(folds)."""
    folds = as_folds(folds, y, checks.n_rows(X))
    return cross_solve(problem, hp, X, y, folds, weights, init, solver, tol).held_out(folds)


@jitted
def solve_batch(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Float[Array, "*folds n"],
    s: Float[Array, "T n"],
    init: Any,
    solver: Solver | None,
    tol: Array,
) -> dict[str, Array]:
    """The whole of a solve under one jit: search on constants, certificate, then the derivative attached.

    s is (T, n), y (n,) or (T, n), `init` (z (T, n), b (T,)) or None; nothing is checked.  The fields of a Solution.
    `tol` is a tolerance, or a pair of it and what rounding may loosen it to.
    """
    # data a caller's jit has closed over would otherwise be folded, kernel matrix and all, while compiling
    X, y, s = lax.optimization_barrier((X, y, s))
    inner = problem.inner(hp, X, y, s)
    checks.elementwise(inner.loss, inner.hp, inner.y)
    tol, limit = lax.stop_gradient(jnp.broadcast_to(tol, (2,)) if tol.ndim == 0 else tol)
    fixed = lax.stop_gradient(inner.loosened(limit))
    method = pick(fixed) if solver is None else solver
    objection = method.supports(fixed)
    if objection is not None:
        raise ValueError(f"solver={type(method).__name__} does not fit: {objection}; solver=None picks one that does")
    (z, b), stats = method.solve(fixed, lax.stop_gradient(init), tol)
    b, o, chosen = settle_bias(fixed, z, b)
    facts = certificate(fixed, z, b, o, chosen, tol)
    facts["code"] = jnp.where(checks.sound(*lax.stop_gradient((problem, hp, X, y, s))), facts["code"], Code.NONFINITE)
    z, b, o = attach(*lax.stop_gradient((z, b, o)), inner)
    if problem.bias == "regularised":
        b = jnp.sum(z, axis=1)
    return {"z": z, "b": b, "outputs": o, "iterations": stats["iterations"], **lax.stop_gradient(facts)}


@jax.jit
def _decision(problem: Problem, hp: Hyperparameters, X: Array, z: Array, b: Array, X_new: Array) -> Array:
    X, X_new = lax.optimization_barrier((X, X_new))
    if isinstance(X, Matrix) or isinstance(X_new, Matrix):
        return z @ X @ X_new.T + b[:, None]
    return cross_matmul(problem.kernel, hp["kernel"], X_new, X, z) + b[:, None]


def _start(problem: Problem, hp: Hyperparameters, y: Array, s: Array, init: Any) -> Any:
    """(z, b) of a warm start; the coefficients of a Solution grow with the loss's slope scale since then."""
    if init is None:
        return None
    z, b = checks.start(init, s.shape[0], y)
    return lax.stop_gradient((_grown(problem, init.hp, hp, y, z) if isinstance(init, Solution) else z, b))


@jax.jit
def _grown(problem: Problem, before: Hyperparameters, hp: Hyperparameters, y: Array, z: Array) -> Array:
    """z (T, n) of a solution at the hyperparameters `before`, in proportion to Problem.growth."""
    at = jax.tree.map(lambda v: jnp.asarray(v, y.dtype), before["loss"])
    then, now = (problem.growth(at, y) for at in (at, hp["loss"]))
    return z * (now / then)[None, :]


WORTH_A_COPY = 1 << 24
"""Kernel values of a prediction from which on rows without a coefficient are dropped first."""


def _support(X: Array, z: Array, m: int) -> tuple[Array, Array]:
    """The rows that some fold uses, filled up to a round number so that few programs are compiled."""
    if m * X.shape[0] < WORTH_A_COPY:
        return X, z
    rows = np.flatnonzero(np.asarray(jnp.any(z != 0, axis=0)))
    size = -(-max(len(rows), 1) // 1024) * 1024
    if size >= X.shape[0]:
        return X, z
    fill = jnp.asarray(np.r_[rows, np.zeros(size - len(rows), rows.dtype)])
    kept = jnp.arange(size) < len(rows)
    return X[fill], jnp.where(kept[None, :], z[:, fill], 0.0)


def held_out(outputs: Float[Array, "T n"], code: Int[Array, " T"], folds: Folds) -> Float[Array, "*R n"]:
    """Of the outputs (T, n) those of tested rows: (n,), or (R, n) for R > 1 repeats; NaN where a fold failed.

    NaN too where a row has no output of its own: it trained the fold that tests it, or several folds of one repeat test
    it.  Folds that are traced cannot be refused for that.
    """
    failed = jnp.isin(code, jnp.asarray([c for c in Code if c.failed], code.dtype))[:, None]
    tested = folds.test > 0
    own = jnp.where(tested, unless(failed | (folds.train > 0), outputs, tested), 0.0)
    blocks = folds.repeats, -1, own.shape[1]
    alone = jnp.sum(tested.reshape(blocks), axis=1) <= 1
    out = unless(~alone, jnp.sum(own.reshape(blocks), axis=1))
    return out[0] if folds.repeats == 1 else out


def unless(bad: Bool[Array, "*T n"], outputs: Float[Array, "*T n"], where: Any = True) -> Float[Array, "*T n"]:
    """The outputs, NaN where they are bad: by a factor, which unlike a choice makes their derivatives NaN as well.

    Entries that are not asked for (`where`) keep their value and their derivative, bad or not.
    """
    return outputs * jnp.where(bad & where, jnp.nan, jnp.ones((), outputs.dtype))
