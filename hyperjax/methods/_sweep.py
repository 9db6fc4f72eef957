"""Linear models of all folds at one C after the other: truncated Newton and dual coordinate descent, as Chu et al.

    E(w; C) = |w|^2 / 2 + C L(w),   L the total loss,   g = w + C dL(w)

Both solvers end a fold at |g| <= tol max(min(n+, n-), 1) / n |C dL(0)|, the package LIBLINEAR's rule, eq. (28); a start
that meets it is returned as it is, bit by bit.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..criteria.base import hard
from ..losses import SquaredHinge
from ..objective import Task
from ..operators import Features, Sparse
from ..problem import Inner
from ..results import Code
from ..solve import held_out
from ..solvers.newton import line_length
from ..sparse import Matrix
from ..types import Array, Module, static
from ._passes import one_pass

__all__ = ["Models", "Sweep", "step"]

FORCING = 0.1
"""Relative residual at which conjugate gradients stop."""
FLOOR = 1e-12
"""Least factor in the stop rule: a class of a few rows among many would ask for more than double precision has."""


class Models(Module):
    """The models of all folds: weights w (T, p), and dual coefficients alpha (T, n) where a dual solver made them."""

    w: Array
    alpha: Array | None


class Sweep(Module):
    """Everything a step along C needs but C and the models."""

    task: Task
    phi: Array | Matrix
    tol: Array
    stop_tol: Array
    key: Array
    dual: bool = static()
    shared: bool = static()
    warm: bool = static()
    max_iterations: int = static()

    def start(self) -> Models:
        """Zeros."""
        T, (n, p) = self.task.folds.n_folds, self.phi.shape
        return Models(jnp.zeros((T, p), self.phi.dtype), jnp.zeros((T, n), self.phi.dtype) if self.dual else None)

    def inner(self, C: Array) -> Inner:
        """The folds' problems at C."""
        train = self.task.folds.train.astype(self.phi.dtype)
        s = train if self.task.weights is None else train * self.task.weights[None, :]
        y = jnp.broadcast_to(self.task.y[None, :], s.shape)
        op = Sparse(self.phi) if isinstance(self.phi, Matrix) else Features(self.phi)
        return Inner(self.task.problem.loss, {"C": C}, op, y, s, False)


def step(sweep: Sweep, before: Models, C: Array, ratio: Array, hp: Any, key: Array) -> tuple[Models, dict[str, Array]]:
    """The models at C from those at C / ratio, and what is known about both."""
    inner = sweep.inner(C)
    zero = norms(gradient(inner, jnp.zeros_like(before.w))[1])
    goal = share(inner, sweep.tol) * zero
    start = _start(sweep, before, ratio, inner)
    if sweep.dual:
        models, iterations, products = _dual(inner, start, goal, key, sweep.max_iterations)
    elif sweep.shared:
        w, iterations, products = _one_after_the_other(inner, start.w, goal, sweep.max_iterations)
        models = Models(w, None)
    else:
        w, iterations, products = newton(inner, start.w, goal, sweep.max_iterations)
        models = Models(w, None)

    o, g = gradient(inner, models.w)
    outputs = held_out(o, jnp.zeros_like(iterations), sweep.task.folds)
    ended = norms(g) <= goal
    facts = {
        "value": sweep.task.score(outputs, hp),
        "hard": sweep.task.score(outputs, hp, hard),
        "ratio": norms(gradient(inner, before.w)[1]) / jnp.where(zero > 0, zero, 0.0),
        "share": share(inner, sweep.stop_tol),
        "w": models.w,
        "unchanged": jnp.all(models.w == before.w, axis=1),
        "iterations": iterations,
        "products": products,
        "kkt": jnp.max(jnp.where(inner.s > 0, jnp.abs(g @ rows_of(inner).T), 0.0), axis=1),
        "code": jnp.where(ended, jnp.int32(Code.OK), jnp.int32(Code.MAX_STEPS)),
        "start_primal": primal(inner, start.w),
        "primal": primal(inner, models.w),
        "start_dual": _dual_value(inner, start),
        "dual": _dual_value(inner, models),
        "norm": norms(models.w),
        "start_norm": norms(start.w),
    }
    return models, {**facts, "gap": (facts["primal"] - facts["dual"]) / facts["primal"]}


def _start(sweep: Sweep, before: Models, ratio: Array, inner: Inner) -> Models:
    """Primal: the same w.  Dual: alpha times the ratio, which is feasible, and w with it."""
    if not sweep.warm:
        return sweep.start()
    if before.alpha is None:
        return before
    alpha = before.alpha * ratio
    return Models((inner.y * alpha) @ sweep.phi, alpha)


def rows_of(inner: Inner) -> Array:
    """Phi (n, p)."""
    phi = inner.op.factors()
    assert phi is not None  # every sweep is made with Features
    return phi


def gradient(inner: Inner, w: Array) -> tuple[Array, Array]:
    """(outputs (T, n) on all rows, gradient (T, p)) of E at w."""
    phi = rows_of(inner)
    o = w @ phi.T
    return o, w + inner.slope(o) @ phi


def primal(inner: Inner, w: Array) -> Array:
    """E (T,)."""
    return 0.5 * jnp.sum(w * w, axis=1) + jnp.sum(inner.phi(w @ rows_of(inner).T), axis=1)


def _dual_value(inner: Inner, models: Models) -> Array:
    """The dual objective (T,), with alpha = -y s phi'(o) read off the weights where no dual solver made one."""
    phi, alpha = rows_of(inner), models.alpha
    if alpha is None:
        alpha = jnp.maximum(-inner.y * inner.slope(models.w @ phi.T), 0.0)
    w = (inner.y * alpha) @ phi
    return jnp.sum(dual_gain(inner, alpha), axis=1) - 0.5 * jnp.sum(w * w, axis=1)


def dual_gain(inner: Inner, alpha: Array) -> Array:
    """h(alpha_i) (T, n): minus the conjugate of the loss."""
    upper = inner.s * inner.hp["C"]
    if isinstance(inner.loss, SquaredHinge):
        return jnp.where(upper > 0, alpha - alpha**2 / jnp.where(upper > 0, 4.0 * upper, 1.0), 0.0)
    rest = jnp.maximum(upper - alpha, 0.0)
    return _xlogx(upper) - _xlogx(alpha) - _xlogx(rest)


def _xlogx(x: Array) -> Array:
    return jnp.where(x > 0, x * jnp.log(jnp.where(x > 0, x, 1.0)), 0.0)


def norms(v: Array) -> Array:
    """Euclidean norms (T,) of the rows of v."""
    return jnp.sqrt(jnp.sum(v * v, axis=1))


def share(inner: Inner, tol: Array) -> Array:
    """tol max(min(n+, n-), 1) / n (T,), floored."""
    there = inner.s > 0
    n = jnp.sum(there, axis=1)
    positive = jnp.sum(there & (inner.y > 0), axis=1)
    rare = jnp.maximum(jnp.minimum(positive, n - positive), 1)
    floor = max(FLOOR, 10.0 * float(jnp.finfo(inner.y.dtype).eps))
    return jnp.maximum(tol * rare.astype(inner.y.dtype) / n.astype(inner.y.dtype), floor)


def newton(inner: Inner, w: Array, goal: Array, max_iterations: int) -> tuple[Array, Array, Array]:
    """Truncated Newton from w (T, p): (w, iterations (T,), products with K (T,)).

    (I + Phi' D Phi) d = -g by conjugate gradients to a tenth of g; a step along d to where the derivative of E along it
    has nearly vanished or changed sign.
    """
    phi = rows_of(inner)

    def active(g: Array) -> Array:
        return norms(g) > goal

    def cond(state: tuple[Array, ...]) -> Array:
        return jnp.any(active(state[2])) & (state[5] < max_iterations)

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        w, o, g, iterations, products, it = state
        go = active(g)
        d, used = _conjugate_gradients(phi, inner.curvature(o), g, go)
        along = jnp.sum(w * d, axis=1), jnp.sum(d * d, axis=1)
        length = line_length(inner, o, d @ phi.T, *along)
        w = jnp.where(go[:, None], w + length[:, None] * d, w)
        o, g = gradient(inner, w)
        count = go.astype(jnp.int32)
        return w, o, g, iterations + count, products + used + 2 * count, it + 1

    none = jnp.zeros(w.shape[:1], jnp.int32)
    w, _, _, iterations, products, _ = lax.while_loop(
        cond, body, (w, *gradient(inner, w), none, none, jnp.zeros((), jnp.int32))
    )
    return w, iterations, products


def _conjugate_gradients(phi: Array, h: Array, g: Array, go: Array) -> tuple[Array, Array]:
    """(d (T, p), products (T,)): -g through I + Phi' diag(h) Phi, roughly; zero where a fold is at rest."""
    goal = FORCING * norms(g)
    limit = max(phi.shape[1], 5)

    def cond(state: tuple[Array, ...]) -> Array:
        return jnp.any(state[3]) & (state[5] < limit)

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        d, res, v, busy, used, it = state
        Av = v + (h * (v @ phi.T)) @ phi
        square = jnp.sum(res * res, axis=1)
        curve = jnp.sum(v * Av, axis=1)
        length = jnp.where(busy, square / jnp.where(curve > 0, curve, 1.0), 0.0)[:, None]
        d, res = d + length * v, res - length * Av
        new = jnp.sum(res * res, axis=1)
        v = res + (new / jnp.where(square > 0, square, 1.0))[:, None] * v
        return d, res, v, busy & (jnp.sqrt(new) > goal), used + busy.astype(jnp.int32), it + 1

    start = (jnp.zeros_like(g), -g, -g, go, jnp.zeros_like(go, jnp.int32), jnp.zeros((), jnp.int32))
    out = lax.while_loop(cond, body, start)
    return out[0], out[4]


def _one_after_the_other(inner: Inner, w: Array, goal: Array, max_iterations: int) -> tuple[Array, Array, Array]:
    """One vector that passes through all folds: each starts where the last one stopped, which leaks held-out rows."""

    def fold(w: Array, x: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        y, s, goal = x
        one = inner.replace(y=y[None, :], s=s[None, :])
        w, iterations, products = newton(one, w, goal[None], max_iterations)
        return w, (w[0], iterations[0], products[0])

    _, (w, iterations, products) = lax.scan(fold, w[-1:], (inner.y, inner.s, goal))
    return w, iterations, products


def _dual(inner: Inner, start: Models, goal: Array, key: Array, max_passes: int) -> tuple[Models, Array, Array]:
    """Passes of dual coordinate descent in random order; the rule is looked at after each."""
    phi = rows_of(inner)
    signed = inner.y[0][:, None] * phi
    squares = jnp.sum(phi * phi, axis=1)
    update = _squared_hinge_update if isinstance(inner.loss, SquaredHinge) else _logistic_update

    def cond(state: tuple[Array, ...]) -> Array:
        return jnp.any(state[2]) & (state[4] < max_passes)

    def body(state: tuple[Array, ...]) -> tuple[Array, ...]:
        alpha, w, busy, passes, it = state
        upper = jnp.where(busy[:, None], inner.s * inner.hp["C"], 0.0)
        alpha, _ = one_pass(update, jax.random.fold_in(key, it), signed, squares, alpha, w, upper)
        w = jnp.where(busy[:, None], (inner.y * alpha) @ phi, w)
        passes = passes + busy.astype(jnp.int32)
        return alpha, w, busy & (norms(gradient(inner, w)[1]) > goal), passes, it + 1

    assert start.alpha is not None  # Sweep.start makes it where the sweep is dual
    busy = norms(gradient(inner, start.w)[1]) > goal
    state = (start.alpha, start.w, busy, jnp.zeros(busy.shape, jnp.int32), jnp.zeros((), jnp.int32))
    alpha, w, _, passes, _ = lax.while_loop(cond, body, state)
    return Models(w, alpha), passes, 2 * passes


def _squared_hinge_update(alpha: Array, margin: Array, q: Array, upper: Array) -> Array:
    """argmax over alpha_i >= 0 of the dual with alpha_i^2 / (4 upper), the others fixed."""
    D = 0.5 / jnp.where(upper > 0, upper, 1.0)
    return jnp.maximum(alpha - (margin - 1.0 + D * alpha) / (q + D), 0.0)


def _logistic_update(alpha: Array, margin: Array, q: Array, upper: Array) -> Array:
    """The same in (0, upper): alpha = upper sigmoid(u), u + q upper sigmoid(u) + margin - q alpha = 0.

    The slope in u is at least 1 and the root lies within [-(r + q upper), -r] for r = margin - q alpha.
    """
    r = margin - q * alpha
    low, high = -(r + q * upper), -r
    top = jnp.where(upper > 0, upper, 1.0)
    inside = jnp.clip(alpha / top, 1e-12, 1.0 - 1e-12)
    u = jnp.clip(jnp.log(inside) - jnp.log1p(-inside), low, high)

    def newton(_: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        u, low, high = state
        part = jax.nn.sigmoid(u)
        F = u + q * upper * part + r
        low, high = jnp.where(F < 0, u, low), jnp.where(F > 0, u, high)
        new = u - F / (1.0 + q * upper * part * (1.0 - part))
        return jnp.where((new >= low) & (new <= high), new, 0.5 * (low + high)), low, high

    u, _, _ = lax.fori_loop(0, 12, newton, (u, low, high))
    return upper * jax.nn.sigmoid(u)
