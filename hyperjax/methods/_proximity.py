"""The proximity-control method of PBP: one penalised problem, weights of all folds and hyperparameters together.

Problem
    minimise phi = V + nu sum_t |G_t|^2 over W (T, d) and theta (k,) with low <= theta <= high
Iteration
    With the slopes on the tube's edges that make the projected subgradient smallest, the convex model
    m(s) = V(W + s_W) + nu sum_t |G_t + J_t s|^2 is minimised with tau/2 |s|^2 added: the weights are eliminated fold by
    fold, a quadratic program in the hyperparameters is left.  A step that keeps a part `share` of what the model
    promised is taken and tau falls by sqrt 2; otherwise tau doubles.
Stops when
    the squared norm of the projected subgradient is below tol, a step is shorter than `shortest`, or tau has grown
    past its end.
Source
    Moore, Bergeron & Bennett, Model selection for primal SVM, Algorithm 3 with equations (35) to (47), corrected.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve

from ..minimum_norm import minimum_norm
from ..types import Array
from ._tubes import Measured, Tubes, linearise, measure, program, slopes

__all__ = ["Box", "Rules", "State", "Subgradient", "descend", "edges", "locate", "subgradient"]

TAU = (1e-8, 1e8)
MOST_EDGES = 200
"""Of more rows on the edge of their tube than this the nearest are counted as on it."""


class Box(NamedTuple):
    """Bounds of theta; low = high holds a coordinate."""

    low: np.ndarray
    high: np.ndarray


class Rules(NamedTuple):
    """When a step is taken and when the descent ends."""

    tol: float
    shortest: float
    share: float
    width: float
    printed: bool = False
    """The rule of tau as printed, which lets tau grow when every step is taken."""
    max_steps: int = 1000


class State(NamedTuple):
    """Weights, hyperparameters, and what they are worth."""

    W: Array
    theta: np.ndarray
    at: Measured

    def phi(self, nu: float) -> float:
        """The penalised objective."""
        return float(self.at.V) + nu * float(jnp.sum(self.at.G**2))


class Model(NamedTuple):
    """The convex model phi + g's_W + q's + 1/2 s_W'H s_W + s_W'M s + 1/2 s'D s, and the objective's own gradient."""

    g: Array
    q: Array
    H: Array
    M: Array
    D: Array


class Subgradient(NamedTuple):
    """The subgradient of least norm: its parts, the slopes behind it and the model they give."""

    W: np.ndarray
    theta: np.ndarray
    """Projected: 0 where the bounds hold a coordinate back."""
    a: np.ndarray
    e: np.ndarray
    model: Model

    @property
    def norm(self) -> float:
        """Its norm; 0 is the necessary condition of optimality."""
        return float(np.sqrt(np.sum(self.W**2) + np.sum(self.theta**2)))


@program
def _model(tubes: Tubes, W: Array, theta: Array, a: Array, e: Array, G: Array, nu: Array) -> Model:
    A, B, g = linearise(tubes, W, theta, a, e)
    Q = lax.map(lambda test: (tubes.phi * test[:, None]).T @ tubes.phi, tubes.test)
    two = 2.0 * nu
    return Model(
        g + two * jnp.einsum("tij,tj->ti", A, G),
        two * jnp.einsum("tik,ti->k", B, G),
        2.0 * Q + two * jnp.einsum("tij,tjk->tik", A, A),
        two * jnp.einsum("tij,tjk->tik", A, B),
        two * jnp.einsum("tik,til->kl", B, B),
    )


@program
def _eliminate(tubes: Tubes, model: Model, tau: Array) -> tuple[Array, Array, Array, Array]:
    """s_W = -(h + K s), and the quadratic 1/2 s'S s + c's that is left of the model with its proximal term."""
    eye = jnp.eye(model.H.shape[1], dtype=model.g.dtype)
    sides = jnp.concatenate([model.g[:, :, None], model.M], axis=2)
    factors = jnp.linalg.cholesky(model.H + tau * eye[None])
    solved = jax.vmap(lambda L, side: cho_solve((L, True), side))(factors, sides)
    h, K = solved[:, :, 0], solved[:, :, 1:]
    left = jnp.eye(len(model.q), dtype=tau.dtype)
    S = model.D + tau * left - jnp.einsum("tik,til->kl", model.M, K)
    return h, K, 0.5 * (S + S.T), model.q - jnp.einsum("tik,ti->k", model.M, h)


@program
def _step(tubes: Tubes, model: Model, h: Array, K: Array, s: Array) -> tuple[Array, Array]:
    """The step of the weights and the change the model sees."""
    move = -(h + K @ s)
    bent = jnp.einsum("ti,tij,tj->", move, model.H, move) + s @ model.D @ s
    return move, jnp.sum(model.g * move) + model.q @ s + 0.5 * bent + jnp.einsum("ti,tik,k->", move, model.M, s)


def locate(tubes: Tubes, W: Array, theta: np.ndarray) -> State:
    """The state at weights and hyperparameters."""
    return State(W, theta, measure(tubes, W, jnp.asarray(theta, W.dtype)))


def edges(tubes: Tubes, state: State, width: float) -> list[tuple[int, int, tuple[float, ...]]]:
    """Rows on the edge of their tube: fold, row, and the corners (1, -s) of dS/d(r, eps) besides (0, 0).

    One corner, with the sign s of the residual, where eps > 0; both where the tube has no width.
    """
    r, eps = np.asarray(state.at.r), np.asarray(state.at.eps)[np.asarray(tubes.group)]
    away = np.where(np.asarray(tubes.unit) > 0, np.abs(np.abs(r) - eps), np.inf)
    rows = np.argwhere(away <= width)
    rows = rows[np.argsort(away[tuple(rows.T)], kind="stable")][:MOST_EDGES]
    corners = [(1.0, -1.0) if eps[j] <= width else (float(np.sign(r[t, j])),) for t, j in rows]
    return [(int(t), int(j), signs) for (t, j), signs in zip(rows, corners, strict=True)]


def subgradient(tubes: Tubes, state: State, nu: float, box: Box, width: float) -> Subgradient:
    """The element of least norm of the subdifferential and the normals of the active bounds."""
    theta, dtype = jnp.asarray(state.theta, state.W.dtype), state.W.dtype
    r, eps = np.asarray(state.at.r), np.asarray(state.at.eps)[np.asarray(tubes.group)]
    a, e = slopes(r, eps)
    kinks = edges(tubes, state, width)
    for t, j, _ in kinks:
        a[t, j] = e[t, j] = 0.0

    def model() -> Model:
        return _model(
            tubes, state.W, theta, jnp.asarray(a, dtype), jnp.asarray(e, dtype), state.at.G, jnp.asarray(nu, dtype)
        )  # fmt: skip

    found = model()
    g, q = np.asarray(found.g, float), np.asarray(found.q, float)
    if kinks:
        g, q, shares = _choose(tubes, state, nu, box, kinks, g, q)
        for (t, j, signs), share in zip(kinks, shares, strict=True):
            a[t, j], e[t, j] = sum(share), -sum(s * p for s, p in zip(signs, share, strict=True))
        found = model()
    return Subgradient(g, _held_back(q, state.theta, box), a, e, found)


def _held_back(q: np.ndarray, theta: np.ndarray, box: Box) -> np.ndarray:
    """The hyperparameters' part without what the normals of the active bounds take away."""
    free = box.low < box.high
    return np.where(free & ~((theta <= box.low) & (q > 0)) & ~((theta >= box.high) & (q < 0)), q, 0.0)


def _choose(
    tubes: Tubes, state: State, nu: float, box: Box, kinks: list[Any], g: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The subgradient of least norm in both parts, and each kink's shares of its corners."""
    T, d = g.shape
    phi, G, group = np.asarray(tubes.phi), np.asarray(state.at.G), np.asarray(tubes.group)
    unit, C = np.asarray(tubes.unit), np.asarray(state.at.C)
    moves = np.asarray(_eps_moves(tubes, jnp.asarray(state.theta, state.W.dtype)), float)
    free = box.low < box.high
    columns, blocks = [], []
    for block, (t, j, signs) in enumerate(kinks):
        force = 2.0 * nu * C[group[j]] * unit[t, j] * float(phi[j] @ G[t])
        for s in signs:
            column = np.zeros((T + 1, max(d, len(q))))
            column[t, :d] = force * phi[j]
            column[T, : len(q)] = np.where(free, -s * force * moves[group[j]], 0.0)
            columns.append(np.append(column[:T, :d].ravel(), column[T, : len(q)]))
            blocks.append(block)
    base = np.append(g.ravel(), np.where(free, q, 0.0))
    for i in np.flatnonzero(free):
        sign = float(state.theta[i] >= box.high[i]) - float(state.theta[i] <= box.low[i])
        if sign:
            columns.append(sign * np.eye(1, len(base), T * d + i)[0])
            blocks.append(-1)
    p, least = minimum_norm(base, np.stack(columns, axis=1), np.asarray(blocks))
    ends = list(itertools.accumulate(len(signs) for _, _, signs in kinks))
    return least[: T * d].reshape(T, d), least[T * d :], np.split(p[: ends[-1]], ends[:-1])


@program
def _eps_moves(tubes: Tubes, theta: Array) -> Array:
    """deps_g / dtheta (G, k)."""
    return jax.jacfwd(lambda theta: tubes.natural(theta)[1])(theta)


def _bounded(S: np.ndarray, c: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The minimiser of 1/2 s'S s + c's in a box."""
    free = low < high
    s = np.zeros_like(c)
    if not free.any():
        return s
    S, c, low, width = S[np.ix_(free, free)], c[free], low[free], (high - low)[free]
    values, vectors = np.linalg.eigh(S)
    root = np.sqrt(np.maximum(values, 1e-14 * max(float(values.max()), 1e-300)))
    trial = -vectors @ (vectors.T @ c / root**2)
    if np.any((trial < low) | (trial > low + width)):
        base = root * (vectors.T @ low) + vectors.T @ c / root
        p, _ = minimum_norm(base, (root[:, None] * vectors.T) * width[None, :], np.arange(len(c)))
        trial = low + width * np.clip(p, 0.0, 1.0)
    s[free] = trial
    return s


def descend(
    tubes: Tubes, state: State, nu: float, tau: float, box: Box, rules: Rules, seen: Callable[..., None]
) -> tuple[State, float, str]:
    """Minimise for one nu: the state, the last tau, and why it ended; `seen` is told of every step taken."""
    dtype = state.W.dtype
    for _ in range(rules.max_steps):
        here = subgradient(tubes, state, nu, box, rules.width)
        if here.norm**2 < rules.tol:
            return state, tau, "stationary"
        before = state.phi(nu)
        while True:
            h, K, S, c = _eliminate(tubes, here.model, jnp.asarray(tau, dtype))
            low, high = box.low - state.theta, box.high - state.theta
            s = _bounded(np.asarray(S, float), np.asarray(c, float), low, high)
            move, promised = _step(tubes, here.model, h, K, jnp.asarray(s, dtype))
            new = locate(tubes, state.W + move, np.clip(state.theta + s, box.low, box.high))
            length = float(np.sqrt(np.sum(np.asarray(move, float) ** 2) + np.sum(s**2)))
            if rules.printed:
                tau *= 2.0
            after = new.phi(nu)
            if promised < 0 and after - before < rules.share * float(promised) and after < before:
                break
            if not rules.printed:
                tau *= 2.0
            if not length >= rules.shortest or tau > TAU[1]:
                return state, min(tau, TAU[1]), "small step"
        state, tau = new, max(tau / np.sqrt(2.0), TAU[0])
        seen(nu, state, tau, after)
        if length < rules.shortest:
            return state, tau, "small step"
        if tau > TAU[1]:
            return state, TAU[1], "small step"
    return state, tau, "max_steps"
