"""What the outer loop makes small, as compiled programs: theta to criterion, gradient, certificate and warm start.

Problem
    J(theta) = criterion(held-out outputs at hp(theta)) + strength / 2 sum_j a_j (theta_j - centre_j)^2

Derivative
    One adjoint solve for all folds and coordinates, by the rule of implicit.py.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import checks
from .compiling import compiled
from .coordinates import Coordinates, real
from .criteria.base import apply, hard, number
from .folds import Folds
from .loo import left_out
from .losses.piecewise import PiecewiseLinear
from .problem import Problem
from .results import Code
from .solve import Solution, held_out, solve_batch
from .solvers.decomposition import Decomposition
from .sparse import Matrix
from .types import Array, Module, static

__all__ = ["Task", "differentiate", "evaluate", "evaluate_many", "size", "slope", "train"]

ENOUGH = 1e-3
"""The tolerance down to which SMO alone solves most problems."""


class Task(Module):
    """Everything an evaluation needs but theta and the warm start."""

    problem: Problem
    criterion: Any
    """A Criterion, or None where `function` is a bare callable."""
    X: Array
    y: Array
    """(n,), or (k, n) for k one-vs-rest classes that share their hyperparameters."""
    folds: Folds
    weights: Array | None
    coords: Coordinates
    centre: Array
    """Where the prior has its minimum (k,)."""
    strength: Array
    """The prior's weight; 0 switches it off."""
    apply_to: Array
    """1 for coordinates the prior looks at, 0 for the others (k,)."""
    solver: Any
    function: Any = static(default=None)
    loo: bool = static(default=False)
    """Whether outputs are left out of one fit to all rows (loo.py), instead of held out by folds."""

    @property
    def classes(self) -> int:
        """One-vs-rest problems in one batch."""
        return self.y.shape[0] if self.y.ndim == 2 else 1

    def start(self) -> tuple[Array, Array]:
        """The cold start: coefficients in units of the loss's slope scale (k T, n), and biases."""
        count = self.classes * self.folds.n_folds
        return jnp.zeros((count, self.X.shape[0]), self.X.dtype), jnp.zeros((count,), self.X.dtype)

    def score(self, outputs: Array, hp: Any, of: Any = apply) -> Array | None:
        """The criterion (or, with of=hard, its hard counterpart) of held-out outputs, averaged over classes."""
        judge = self.function if self.criterion is None else self.criterion
        if self.y.ndim == 1:
            return of(judge, outputs, self.y, self.folds, hp, self.weights)
        values = [of(judge, o, y, self.folds, hp, self.weights) for o, y in zip(outputs, self.y, strict=True)]
        return None if values[0] is None else sum(values[1:], values[0]) / jnp.asarray(len(values), outputs.dtype)

    def batch(self) -> tuple[Array, Array]:
        """Targets and weights (k T, n) of all problems."""
        train = self.folds.train.astype(self.X.dtype)
        s = train if self.weights is None else train * self.weights[None, :]
        y = jnp.repeat(jnp.atleast_2d(self.y), self.folds.n_folds, axis=0)
        return y, jnp.tile(s, (self.classes, 1))

    def held_out(self, hp: Any, start: Any, tol: Array) -> tuple[Array, dict[str, Array]]:
        """Held-out outputs (n,), (R, n) with repeats, and a class axis before them where there is one; all the rest."""
        y, s = self.batch()
        fitted = {name: part for name, part in hp.items() if name != "criterion"}
        scale = lax.stop_gradient(jax.vmap(lambda y: self.problem.growth(fitted["loss"], y))(y))
        init = lax.stop_gradient((start[0] * scale, start[1]))
        parts = solve_batch(self.problem, fitted, self.X, y, s, init, self.solver, tol)
        outputs = self.judged(fitted, y, s, parts["z"], parts["outputs"], parts["code"])
        parts["start"] = lax.stop_gradient((parts["z"] / scale, parts["b"]))
        return outputs, parts

    def judged(self, fitted: Any, y: Array, s: Array, z: Array, o: Array, code: Array) -> Array:
        """What the criterion sees of the solutions (k T, n)."""
        if self.loo:
            outputs = left_out(self.problem, fitted, self.X, y, s, z, o, code)
        else:
            own, codes = o.reshape(self.classes, -1, self.X.shape[0]), code.reshape(self.classes, -1)
            outputs = jnp.stack([held_out(o, c, self.folds) for o, c in zip(own, codes, strict=True)])
        return outputs[0] if self.y.ndim == 1 else outputs


def _objective(task: Task, theta: Array, start: Any, tol: Array) -> tuple[Array, dict[str, Any]]:
    hp = task.coords.build(theta)
    outputs, parts = task.held_out(hp, start, tol)
    value = number(task.score(outputs, hp))
    away = task.apply_to * (theta - task.centre)
    facts: dict[str, Any] = {name: parts[name] for name in ("kkt", "gap", "code", "iterations", "distance", "start")}
    facts["fit"] = lax.stop_gradient({name: part for name, part in parts.items() if name != "start"})
    facts["value"] = value
    facts["hard"] = task.score(lax.stop_gradient(outputs), lax.stop_gradient(hp), hard)
    return value + 0.5 * task.strength * jnp.sum(away * away), facts


def slope(task: Task, theta: Array, start: Any, tol: Array) -> tuple[Array, Array, dict[str, Any]]:
    """(J, gradient, facts) as a traceable function."""
    (objective, facts), gradient = jax.value_and_grad(_objective, argnums=1, has_aux=True)(task, theta, start, tol)
    return objective, gradient, facts


def _many(task: Task, thetas: Array, tol: Array) -> tuple[Array, dict[str, Any]]:
    def one(theta: Array) -> tuple[Array, dict[str, Any]]:
        objective, facts = _objective(task, theta, task.start(), tol)
        return objective, {name: value for name, value in facts.items() if name not in ("start", "fit")}

    return lax.map(one, thetas)


def _trained(task: Task, hp: Any, tol: Array) -> dict[str, Array]:
    s = jnp.ones_like(jnp.atleast_2d(task.y)[0]) if task.weights is None else task.weights
    s = jnp.broadcast_to(s[None, :], (task.classes, task.X.shape[0]))
    return _of_classes(solve_batch(task.problem, hp, task.X, task.y, s, None, task.solver, tol), task.y)


@jax.jit
def _of_classes(parts: dict[str, Array], y: Array) -> dict[str, Array]:
    """The first of each class's solutions (k T, ..)."""
    if y.ndim == 1:
        return {name: part[0] for name, part in parts.items()}
    return {name: part[:: part.shape[0] // y.shape[0]] for name, part in parts.items()}


def evaluate(
    task: Task, theta: Array, start: Any, tol: Array, compilation: str = "full"
) -> tuple[Array, dict[str, Any]]:
    """(J, facts) at theta: value, hard, kkt, gap, code, iterations and the `start` of the next evaluation."""
    return _briefly(_objective, compilation, task, theta, start, tol)


def differentiate(
    task: Task, theta: Array, start: Any, tol: Array, compilation: str = "full"
) -> tuple[Array, Array, dict[str, Any]]:
    """(J, gradient, facts) at theta: one solve of all folds and one adjoint solve."""
    return _briefly(slope, compilation, task, theta, start, tol)


def _briefly(program: Any, compilation: str, task: Task, theta: Array, start: Any, tol: Array) -> Any:
    """What the compiled program returns, without the end of the solver where no fold needs it.

    The end goes on from where the rest has stopped: it is compiled when a fold first asks for it, and never in most
    searches in float32.
    """
    whole = compiled(program, compilation)
    if not checks.concrete(tol, theta) or float(np.ravel(tol)[0]) < ENOUGH or not _by_smo(task):
        return whole(task, theta, start, tol)
    *found, facts = whole(task.replace(solver=Decomposition(finish=False)), theta, start, tol)
    if not np.any(np.asarray(facts["code"]) == Code.MAX_STEPS):
        return *found, facts
    *found, further = whole(task, theta, facts["start"], tol)
    return *found, further | {"iterations": facts["iterations"] + further["iterations"]}


def _by_smo(task: Task) -> bool:
    """Whether it is SMO that begins: for straight pieces where nobody has chosen a solver and K is stored."""
    if task.solver is not None or isinstance(task.X, Matrix) or not isinstance(task.problem.loss, PiecewiseLinear):
        return False
    return task.problem.kernel.features(task.coords.template["kernel"], task.X[:1]) is None


def size(task: Task) -> int:
    """How many numbers stand for the kernel matrix: its own, or those of a factor."""

    def operator() -> Any:
        hp = {name: part for name, part in task.coords.build(task.centre).items() if name != "criterion"}
        return task.problem.inner(hp, task.X, *task.batch()).op

    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(operator)))


def train(task: Task, hp: Any, tol: Array, compilation: str = "full", start: Any = None) -> Solution:
    """The model on all rows at hp, k of them where y has k rows.

    With the `start` of a search it is `differentiate` that runs, the first fold training on all rows and the others on
    none: a search has that program compiled, and another often takes longer to compile than all its folds to solve.
    A row begins at the mean of the folds it trained.
    """
    fitted = {name: part for name, part in hp.items() if name != "criterion"}
    if start is None:
        parts = compiled(_trained, compilation)(task, fitted, tol)
    else:
        coords, train = task.coords.replace(template=hp), np.asarray(task.folds.train, start[0].dtype)
        alone = np.zeros_like(train)
        alone[0] = 1
        folds = task.folds.replace(train=jnp.asarray(alone, task.folds.train.dtype))
        everybody = task.replace(folds=folds, coords=coords)
        z, b = (np.asarray(part).reshape(task.classes, len(train), -1) for part in start)
        z = alone * np.sum(z * train / np.maximum(train.sum(axis=0), 1), axis=1, keepdims=True)
        b = alone[:, :1] * b.mean(axis=1, keepdims=True)
        start = jnp.asarray(z.reshape(start[0].shape)), jnp.asarray(b.reshape(start[1].shape))
        _, _, facts = _briefly(slope, compilation, everybody, real(coords, hp), start, tol)
        parts = _of_classes(facts["fit"], task.y)
    return Solution(task.problem, fitted, task.X, **parts)


def evaluate_many(task: Task, thetas: Array, tol: Array, compilation: str = "full") -> tuple[Array, dict[str, Any]]:
    """(J, facts) at the rows of thetas, each from a cold start, in one program."""
    return compiled(_many, compilation)(task, thetas, tol)
