"""Interleaved searches for C: one rough move of the folds' linear models, one step of C, and so on.

V(C) = mean over folds of the sum over held-out rows of (1 - y w'x)_+          (Jiang & Siddiqui, section 2)
C <- clip(C - sign(g) / (k sqrt d), C_min, C_max),    g a one-sample estimate of dV/dC
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..compiling import compiled
from ..criteria.base import hard
from ..criteria.hinge_loss import HingeLoss
from ..kernels import Linear
from ..losses import Hinge
from ..objective import Task
from ..operators import Features
from ..problem import Inner, Problem
from ..results import Code
from ..run import Point
from ..solve import held_out
from ..solvers.loop import violation
from ..tune import TuneResult
from ..types import Array, Module, static
from . import _record as book
from .base import Search, Takes

__all__ = ["TAKES", "Rule", "Split", "State", "draw", "held_out_violators", "interleave", "move"]

TAKES = Takes((Hinge,), (Linear,), (False, "regularised"), (HingeLoss,), rough=True)
NOTHING = 1e-14
"""A derivative estimate of no more than this leaves C where it is."""
SOLVED = 1e-3
"""kkt from which on the record of a step says that a fold is solved."""
CHUNK = 25
"""Most steps of one compiled program: between two of them the history is written and the clock is looked at."""


class Split(Module):
    """The folds of a linear hinge problem as its steps see them."""

    task: Task
    phi: Array
    signed: Array
    """y_i x_i (n, p)."""
    squares: Array
    s: Array
    """Training weights (T, n)."""
    tested: Array
    """Weights of held-out rows (T, n)."""
    root: Array
    """sqrt(d), d the features without a constant one."""
    low: Array
    high: Array

    def weights(self, alpha: Array) -> Array:
        """w (T, p) of coefficients alpha (T, n)."""
        return alpha @ self.signed


class State(Module):
    """C, and for every fold its coefficients alpha (T, n) and weights w (T, p)."""

    C: Array
    alpha: Array
    w: Array


class Rule(Module):
    """A method: `init(split, key)` and one jittable `step(split, state, k, key)`, which returns (state, facts)."""

    logarithmic: bool = static(default=False)
    """Whether steps are taken in log C."""

    def init(self, split: Split, key: Array) -> State:
        """Where the models start."""
        raise NotImplementedError

    def step(self, split: Split, state: State, k: Array, key: Array) -> tuple[State, dict[str, Array]]:
        """One move of the models and of C."""
        raise NotImplementedError


def draw(key: Array, weights: Array) -> tuple[Array, Array]:
    """One row a fold, drawn in proportion to weights (T, n), and whether (T,) there was any to draw."""
    total = jnp.cumsum(weights, axis=1)
    shrink = 1.0 - 4.0 * float(jnp.finfo(weights.dtype).eps)
    target = shrink * total[:, -1] * jax.random.uniform(key, total.shape[:1], weights.dtype)
    index = jax.vmap(lambda cumulated, at: jnp.searchsorted(cumulated, at, side="right"))(total, target)
    return jnp.minimum(index, weights.shape[1] - 1), total[:, -1] > 0


def held_out_violators(split: Split, w: Array) -> Array:
    """The weights (T, n) of held-out rows with a margin below 1, 0 elsewhere."""
    return jnp.where(w @ split.signed.T < 1.0, split.tested, 0.0)


def move(rule: Rule, split: Split, C: Array, g: Array, k: Array) -> Array:
    """The sign step of length 1 / (k sqrt d)."""
    length = jnp.where(jnp.abs(g) > NOTHING, jnp.sign(g), 0.0) / (k.astype(C.dtype) * split.root)
    new = C * jnp.exp(-length) if rule.logarithmic else C - length
    return jnp.clip(new, split.low, split.high)


def interleave(
    name: str,
    rule: Rule,
    problem: Problem,
    X: Any,
    y: Any,
    folds: Any,
    criterion: Any,
    C_min: Any,
    C_max: Any,
    max_steps: Any,
    weights: Any,
    groups: Any,
    solver: Any,
    seed: int,
    max_seconds: float | None,
    callback: Callable[[dict[str, Any]], Any] | None,
    progress: bool,
    compilation: str,
) -> TuneResult:
    """The whole search by one rule, and the model on all rows at the last C."""
    book.outside("C_min", C_min, 0.0, np.inf)
    book.outside("C_max", C_max, 0.0, np.inf)
    if C_min > C_max:
        raise ValueError(f"C_min={C_min:g} is larger than C_max={C_max:g}: exchange them")
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise ValueError(f"max_steps={max_steps!r}: give a whole number, at least 1")
    start = {"loss": {"C": float(C_min)}}
    search = Search(
        name, TAKES, problem, X, y, folds, criterion, start, weights, groups, None,
        {"loss.C": (float(C_min) / 2.0, float(C_max) * 2.0)}, solver, seed, max_seconds, callback, progress,
        compilation, ["loss.C"],
    )  # fmt: skip
    book.plain_cost(name, search)
    split = _split(search, C_min, C_max)
    log: list[dict[str, np.ndarray]] = []
    states: list[State] = []
    points: list[Point] = []
    # whoever may stop the search between two steps wants the models of that step
    size = 1 if callback is not None or max_seconds is not None else CHUNK
    key = jax.random.key(seed)
    reason = search.walk(lambda: _steps(search, rule, split, key, int(max_steps), size, log, states, points))
    details = {key: np.concatenate([part[key] for part in log]) for key in log[0]}
    last = states[-1]
    return search.result(points[-1], reason, **details, w=np.asarray(last.w), alpha=np.asarray(last.alpha))


def _split(search: Search, C_min: float, C_max: float) -> Split:
    task = search.task
    phi = book.rows(task.problem, search.plan.hp, task.X)
    signed = task.y[:, None] * phi
    weights = jnp.ones_like(task.y) if task.weights is None else task.weights
    train, tested = (part.astype(phi.dtype) * weights[None, :] for part in (task.folds.train, task.folds.test))
    features = phi.shape[1] - (task.problem.bias == "regularised")
    root, low, high = (jnp.asarray(value, phi.dtype) for value in (np.sqrt(features), C_min, C_max))
    return Split(task, phi, signed, jnp.sum(phi * phi, axis=1), train, tested, root, low, high)


def _steps(
    search: Search,
    rule: Rule,
    split: Split,
    key: Array,
    max_steps: int,
    most: int,
    log: list[dict[str, np.ndarray]],
    states: list[State],
    points: list[Point],
) -> str:
    """All steps, up to `most` of them in one program; why they ended."""
    program = compiled(_chunk, search.run.compilation)
    state = rule.init(split, jax.random.fold_in(key, 0))
    size = max(size for size in range(1, most + 1) if max_steps % size == 0)
    for begin in range(0, max_steps, size):
        state, facts = program(rule, split, state, jnp.arange(begin + 1, begin + size + 1), key)
        log.append({name: np.asarray(value) for name, value in facts.items()})
        states[:] = [state]
        for i in range(size):
            at = {name: value[i] for name, value in log[-1].items()}
            at["code"] = np.where(at["kkt"] <= SOLVED, Code.OK, Code.MAX_STEPS)
            # records speak of theta = log C
            at["gradient"] = at["gradient"] * at["C"]
            book.record(search, [np.log(at["C"])], at, int(2 * at["iterations"].sum()), points)
    return "finished"


def _chunk(rule: Rule, split: Split, state: State, ks: Array, key: Array) -> tuple[State, dict[str, Any]]:
    def one(state: State, k: Array) -> tuple[State, dict[str, Any]]:
        state, facts = rule.step(split, state, k, jax.random.fold_in(key, k))
        return state, {**_measured(split, state), **facts}

    return lax.scan(one, state, ks)


def _measured(split: Split, state: State) -> dict[str, Any]:
    """What the models after a step are worth, and how far they are from solving their problems at its C."""
    task, o = split.task, state.w @ split.phi.T
    y = jnp.broadcast_to(task.y[None, :], o.shape)
    outputs = held_out(o, jnp.zeros_like(o[:, 0], jnp.int32), task.folds)
    hp = task.coords.build(jnp.log(state.C)[None])
    inner = Inner(task.problem.loss, {"C": state.C}, Features(split.phi), y, split.s, False)
    losses = jnp.maximum(1.0 - y * o, 0.0)
    primal = 0.5 * jnp.sum(state.w**2, axis=1) + state.C * jnp.sum(split.s * losses, axis=1)
    feasible = jnp.clip(state.alpha, 0.0, split.s * state.C)
    dual = jnp.sum(feasible, axis=1) - 0.5 * jnp.sum(split.weights(feasible) ** 2, axis=1)
    return {
        "C": state.C,
        "value": task.score(outputs, hp),
        "hard": task.score(outputs, hp, hard),
        "V": jnp.mean(jnp.sum(split.tested * losses, axis=1)),
        "kkt": violation(inner, y * state.alpha, o, inner.steps()),
        "gap": (primal - dual) / primal,
    }
