"""Search and derivative together for k outputs a sample: from hyperparameters to a differentiable solution."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks
from ..implicit import attach
from ..operators import cross_matmul
from ..results import Code
from ..solvers.loop import granted, violation
from ..types import Array, Hyperparameters, Module
from .check import inputs
from .problem import CrammerSinger, Rows
from .search import search

__all__ = ["MulticlassSolution", "solve"]


class MulticlassSolution(Module):
    """Coefficients and outputs of a multi-class problem, with the certificate that they solve it.

    z and `outputs` are (n, k), b (k,), the rest scalars.  z, b, `outputs` and `decision` are differentiable in
    hyperparameters, X and weights; the certificate is not.
    """

    problem: CrammerSinger
    hp: Hyperparameters
    X: Array
    z: Array
    b: Array
    """sum z for a regularised bias, zeros otherwise."""
    outputs: Array
    """The outputs on the training rows, removed ones included."""
    kkt: Array
    """Violation of (F) in output units, the quantity `tol` bounds."""
    gap: Array
    """Duality gap relative to the primal value."""
    code: Array
    """A hyperjax.Code."""
    iterations: Array
    n_free: Array
    """Samples with more than one class at the maximum and in use."""
    degenerate: Array
    """Samples at the edge of their face, where the derivative is one-sided."""
    distance: Array
    """How far the nearest sample is from changing its face, in output units and to a factor of k."""

    @property
    def converged(self) -> Array:
        """code == OK."""
        return self.code == Code.OK

    def decision(self, X_new: Any) -> Array:
        """Outputs (m, k) at new rows, differentiable; the class of a row is the argmax.

        With a Precomputed kernel X_new holds the kernel values between new and training rows, (m, n).
        """
        X_new = checks.new_rows(self.problem, X_new, self.X)  # type: ignore[arg-type]  # asks for its kernel alone
        return _decision(self.problem, self.hp, self.X, self.z, self.b, X_new)

    def raise_if_failed(self) -> "MulticlassSolution":
        """Itself, or a RuntimeError if it must not be used."""
        checks.known("call raise_if_failed on the solution that jit returns, or look at its code", code=self.code)
        for i, value in enumerate(np.ravel(np.asarray(self.code))):
            code = Code(int(value))
            if code.failed:
                kkt = np.ravel(np.asarray(self.kkt))[i]
                raise RuntimeError(f"problem {i} failed: {code.name} (kkt {kkt:.1e}). {checks.remedy(code)}")
        return self


def solve(
    problem: CrammerSinger,
    hp: Hyperparameters,
    X: Any,
    labels: Any,
    weights: Any = None,
    tol: Any = None,
) -> MulticlassSolution:
    """Solve a multi-class problem at the hyperparameters hp.

    labels (n,) are the integers 0 .. classes - 1, weights (n,) scale the samples' losses: 0 removes one, which is how
    tasks of different sizes are padded to one shape.  `tol` bounds `kkt` (default 1e-8 in float64, 1e-3 in float32, and
    no less than rounding in K Z allows).  Many tasks or folds are one `jax.vmap` over X, labels or weights.  Concrete
    arguments are checked; traced ones give codes instead.
    """
    X, labels, hp, weights = inputs(problem, hp, X, labels, weights)
    s = jnp.ones_like(X[:, 0]) if weights is None else weights
    return MulticlassSolution(problem, hp, X, **_solve(problem, hp, X, labels, s, checks.tolerance(tol, X.dtype)))


@jax.jit
def _solve(
    problem: CrammerSinger, hp: Hyperparameters, X: Array, labels: Array, s: Array, tol: Array
) -> dict[str, Array]:
    """Everything under one jit: search on constants, certificate, then the derivative attached."""
    # data a caller's jit has closed over would otherwise be folded, kernel matrix and all, while compiling
    X, s = lax.optimization_barrier((X, s))
    inner = problem.inner(hp, X, labels, s)
    goal, limit = lax.stop_gradient((tol[0], tol[1]))
    fixed = lax.stop_gradient(inner.loosened(limit))
    z, iterations = search(fixed, goal)
    o, t = fixed.op.matmul(z), fixed.steps()
    facts = _certificate(fixed, z, o, t, goal)
    known = jnp.all((s <= 0) | ((labels >= 0) & (labels < problem.classes)))
    sound = known & checks.sound(*lax.stop_gradient((problem, hp, X, labels, s[None, :])))[0]  # type: ignore[arg-type]  # asks for its kernel alone
    facts["code"] = jnp.where(sound, facts["code"], Code.NONFINITE)

    # the rule of implicit.py, in coordinates in which the slope of the prox is diagonal
    turned = inner.turned(z, o)
    zero = jnp.zeros_like(z[:, 0])
    z, _, o = attach(*lax.stop_gradient((turned.into(z), zero, turned.into(o))), turned)
    z, o = inner.rows(turned.out(z)), inner.rows(turned.out(o))
    b = jnp.sum(z, axis=0) if problem.bias == "regularised" else jnp.zeros_like(z[0])
    facts = lax.stop_gradient({**facts, "iterations": iterations})
    return {"z": z, "b": b, "outputs": o, **{name: value.reshape(()) for name, value in facts.items()}}


@jax.jit
def _decision(problem: CrammerSinger, hp: Hyperparameters, X: Array, z: Array, b: Array, X_new: Array) -> Array:
    X, X_new = lax.optimization_barrier((X, X_new))
    return cross_matmul(problem.kernel, hp["kernel"], X_new, X, z.T).T + b[None, :]


def _certificate(inner: Rows, z: Array, o: Array, t: Array, tol: Array) -> dict[str, Array]:
    """kkt, gap, code, n_free, degenerate and distance of a solution."""
    kkt, turned = violation(inner, z, o, t), inner.turned(z, o)
    away = inner.distances(z, o, t)
    size = jnp.max(jnp.abs(inner.rows(o)), axis=1) + jnp.max(jnp.abs(inner.rows(t * z)), axis=1)
    ties = inner.op.base.diagonal() > 0  # type: ignore[attr-defined]  # op is Outputs
    degenerate = jnp.sum((away <= 64.0 * jnp.finfo(o.dtype).eps * (1.0 + size)) & ties)
    regulariser = jnp.sum(z * o)
    indefinite = regulariser < -jnp.sqrt(jnp.finfo(o.dtype).eps) * jnp.sum(jnp.abs(z)) * jnp.max(jnp.abs(o))
    finite = jnp.all(jnp.isfinite(z)) & jnp.all(jnp.isfinite(o)) & jnp.isfinite(kkt[0])
    code = jnp.where(degenerate > 0, Code.DEGENERATE, Code.OK)
    code = jnp.where(kkt[0] <= granted(inner, z, jnp.zeros_like(kkt), tol, kkt)[0], code, Code.MAX_STEPS)
    code = jnp.where(indefinite, Code.SINGULAR, code)
    code = jnp.where(finite, code, Code.NONFINITE).astype(jnp.int32)
    return {
        "kkt": kkt,
        "gap": inner.gap(z, o),
        "code": code,
        "n_free": jnp.sum(jnp.any(turned.free, axis=1)),
        "degenerate": degenerate,
        "distance": jnp.min(away),
    }
