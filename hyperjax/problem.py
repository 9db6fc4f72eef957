"""The inner problem, and the only statement of its optimality in the library.  Read this file first.

Problem
    minimise over f, b    1/2 |f|^2_K + sum_i s_i phi(f(x_i) + b, y_i; hp),     f = sum_j z_j k(., x_j)

Optimality
    -z_i in s_i d phi(o_i) with outputs o = K z + b, and sum_i z_i = 0 where b is unregularised; or, for any t_i > 0,

        o_i = prox_{t_i s_i phi}(o_i - t_i z_i),     o = K z + b                                        (F)

Bias
    True: unregularised.  False: none.  "regularised": K + 1 takes the place of K, and b = sum z is read off.
"""

import dataclasses
import functools
from typing import Any, Self

import jax
import jax.numpy as jnp
from jax import lax

from . import operators
from . import prox as automatic
from .kernels.base import as_kernel
from .kernels.rbf import RBF
from .losses.base import Loss
from .losses.hinge import Hinge
from .sparse import is_sparse, matrix
from .types import Array, Bool, Float, Hyperparameters, Module, static

__all__ = ["Inner", "Problem", "begun"]


class Problem(Module):
    """What is solved: a loss, a kernel and a kind of bias.

    `loss` is a `hyperjax.losses.Loss`, `kernel` a `hyperjax.kernels.Kernel` or a bare callable k(x, z),
    `bias` one of True (unregularised), False, "regularised" (a constant feature, LIBLINEAR's default).
    """

    loss: Loss = dataclasses.field(default_factory=Hinge)
    kernel: Any = dataclasses.field(default_factory=RBF)
    bias: bool | str = static(default=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))

    def init(self, X: Any, y: Any) -> Hyperparameters:
        """Start values: a tree of plain arrays {"loss": {..}, "kernel": {..}} in the float type of X."""
        X, y = matrix(X) if is_sparse(X) else jnp.asarray(X), jnp.asarray(y)
        dtype = X.dtype if jnp.issubdtype(X.dtype, jnp.floating) else jnp.result_type(float)
        X, y = X.astype(dtype), y.astype(dtype)
        values = {"loss": self.loss.init(X, y), "kernel": self.kernel.init(X, y)}
        for part, found in values.items():
            if not isinstance(found, dict):
                name, kind = type(getattr(self, part)).__name__, type(found).__name__
                raise ValueError(f"{part}: init of {name} returned a {kind}: return a dict of start values")
        return jax.tree.map(lambda v: jnp.asarray(v, dtype), values)

    def domains(self, hp: Hyperparameters) -> Any:
        """The domain of every hyperparameter, a tree like `hp`."""
        return {"loss": self.loss.domain_tree(hp["loss"]), "kernel": self.kernel.domain_tree(hp["kernel"])}

    @staticmethod
    def from_sklearn(estimator: Any) -> "Problem":
        """The problem a scikit-learn SVC, LinearSVC, SVR, LinearSVR or LogisticRegression solves.

        Its `init` gives the estimator's own hyperparameter values.
        """
        from .interop import problem_of

        return problem_of(estimator)

    def growth(self, hp: Hyperparameters, y: Float[Array, " n"]) -> Float[Array, " n"]:
        """What coefficients grow with (n,) from one hp["loss"] to another: the slope scale where they sit at kinks and
        bounds.  Those of a differentiable loss follow the outputs, which move less.
        """
        loss, at = self.loss.expand(hp)
        return jnp.ones_like(y) if _smooth(loss) else loss.scale(y, at)

    def inner(
        self, hp: Hyperparameters, X: Any, y: Float[Array, "*folds n"], s: Float[Array, "T n"]
    ) -> "Inner":
        """The batch of inner problems with weights s (T, n); the kernel matrix is built here, once."""
        loss, loss_hp = self.loss.expand(hp["loss"])
        op = operators.build(self.kernel, hp["kernel"], X, offset=self.bias == "regularised")
        return Inner(loss, loss_hp, op, jnp.broadcast_to(y, s.shape), s, self.bias is True)


LOOSEST = 0.1
"""Share of the largest |y|, the margin of a classifier, that rounding may loosen a tolerance to."""
begun = jax.jit(Problem.init)
"""The same start values; what is traced for rows of one shape serves all further calls."""


class Inner(Module):
    """T inner problems that share their rows: everything (F) is a function of, and (F) itself.

    Arrays carry a leading fold axis: y, s, z, o are (T, n), b is (T,).  s_i = 0 takes sample i out.  The folds of a
    cross-validation have the same y; one-vs-rest classes are T problems that differ in nothing but y.
    """

    loss: Loss
    hp: Hyperparameters
    op: operators.Operator
    y: Float[Array, "*each T n"]
    s: Float[Array, "*each T n"]
    border: bool = static()
    """Whether sum z = 0 is part of the problem (an unregularised bias)."""
    limit: Array | float = 0.0
    """How far rounding in K z may loosen the tolerance of a search; 0: not at all.  No part of the problem itself."""

    def loosened(self, limit: Array) -> Self:
        """The same problems with this `limit`, or a tenth of the largest |y| where that is less.

        Outputs known no better than that solve nothing.
        """
        return self.replace(limit=jnp.minimum(limit, LOOSEST * jnp.max(jnp.abs(self.y))))

    def pieces(self) -> Any:
        """The pieces of a piecewise loss, every array (T, n)."""
        return over_folds(_pieces, self.loss, self.hp, self.y)

    @property
    def smooth(self) -> bool:
        """Whether phi is differentiable in o."""
        return _smooth(self.loss)

    def scale(self) -> Float[Array, "T n"]:
        """s_i c_i (T, n), c the loss's slope scale; c_i where the sample is out."""
        return jnp.where(self.s > 0, self.s, 1.0) * over_folds(_scale, self.loss, self.hp, self.y)

    def steps(self) -> Float[Array, "T n"]:
        """t_i = 1 / (s_i c_i): puts (F) in units of outputs.  A constant: the solution does not depend on t."""
        return lax.stop_gradient(1.0 / self.scale())

    def phi(self, o: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """s_i phi(o_i)."""
        return self.s * over_folds(_phi, self.loss, self.hp, o, self.y)

    def slope(self, o: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """s_i phi'(o_i)."""
        return self.s * over_folds(_slope, self.loss, self.hp, o, self.y)

    def curvature(self, o: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """s_i phi''(o_i)."""
        return self.s * over_folds(_curvature, self.loss, self.hp, o, self.y)

    def prox(self, v: Float[Array, "T n"], t: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """prox_{t_i s_i phi}(v_i)."""
        return over_folds(_prox, self.loss, self.hp, v, self.y, t * self.s)

    def interval(self, z: Float[Array, "T n"]) -> tuple[Float[Array, "T n"], Float[Array, "T n"]]:
        """The outputs at which z_i is optimal: -z_i in s_i d phi(o) on [lo_i, hi_i]."""
        return over_folds(_interval, self.loss, self.hp, z, self.y, self.s)

    def residual(self, z: Float[Array, "T n"], o: Float[Array, "T n"], t: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """(F), coordinate by coordinate; zero exactly at the solution."""
        return o - self.prox(o - t * z, t)

    def faces(self, z: Float[Array, "T n"], o: Float[Array, "T n"], t: Float[Array, "T n"]) -> Float[Array, "T n"]:
        """P (T, n), the slope of the prox: 0 at a kink (free), 1 on a linear piece (bounded, inactive)."""
        v = o - t * z
        return jax.jvp(lambda v: self.prox(v, t), (v,), (jnp.ones_like(v),))[1]

    def nobody_free(self, z: Float[Array, "T n"]) -> Bool[Array, " T"]:
        """Whether (T,) no coefficient ties its output to one value: an unregularised bias then has an interval."""
        if not (self.border and self.loss.flat):
            return jnp.zeros_like(z[:, 0], bool)
        low, high = lax.stop_gradient(self.interval(lax.stop_gradient(z)))
        # an interval found by bisection is a few floats wide even where it is a point
        rounding = 64.0 * jnp.finfo(z.dtype).eps * (1.0 + jnp.where(jnp.isfinite(low), jnp.abs(low), 0.0))
        return jnp.all(low + rounding < high, axis=1)

    def outputs(self, z: Float[Array, "T n"], b: Float[Array, " T"]) -> Float[Array, "T n"]:
        """o = K z + b."""
        return self.op.matmul(z) + b[:, None]

    def bias_interval(
        self, z: Float[Array, "T n"], f: Float[Array, "T n"]
    ) -> tuple[Float[Array, " T"], Float[Array, " T"]]:
        """The biases [lo, hi] (T,) at which z is optimal, given f = K z."""
        low, high = self.interval(z)
        return jnp.max(low - f, axis=1), jnp.min(high - f, axis=1)


@functools.partial(jax.jit, static_argnums=0)
def over_folds(f: Any, loss: Loss, hp: Hyperparameters, *batched: Array) -> Any:
    """f(loss, hp, ..) fold by fold: losses see vectors (n,) of arrays (T, n).

    A program asks for the same few functions dozens of times: each is traced once.
    """
    return jax.vmap(lambda *rows: f(loss, hp, *rows))(*batched)


def _smooth(loss: Loss) -> bool:
    return not automatic.has_kinks(loss) if loss.smooth is None else loss.smooth


def _pieces(loss: Any, hp: Hyperparameters, y: Array) -> Any:
    return loss.pieces(y, hp)


def _scale(loss: Loss, hp: Hyperparameters, y: Array) -> Array:
    return loss.scale(y, hp)


def _phi(loss: Loss, hp: Hyperparameters, o: Array, y: Array) -> Array:
    return loss.phi(o, y, hp)


def _slope(loss: Loss, hp: Hyperparameters, o: Array, y: Array) -> Array:
    return automatic.slope(loss, o, y, hp)


def _curvature(loss: Loss, hp: Hyperparameters, o: Array, y: Array) -> Array:
    return automatic.curvature(loss, o, y, hp)


def _prox(loss: Loss, hp: Hyperparameters, v: Array, y: Array, ts: Array) -> Array:
    return loss.prox(v, y, ts, hp)


def _interval(loss: Loss, hp: Hyperparameters, z: Array, y: Array, s: Array) -> tuple[Array, Array]:
    return loss.interval(z, y, s, hp)


def middle(lo: Array, hi: Array) -> Array:
    """The midpoint of [lo, hi]; the finite end of a half line; 0 for the whole line."""
    known_lo, known_hi = jnp.isfinite(lo), jnp.isfinite(hi)
    lo = jnp.where(known_lo, lo, jnp.where(known_hi, hi, 0.0))
    hi = jnp.where(known_hi, hi, lo)
    return 0.5 * (lo + hi)
