"""Points that a method has found by its own iteration, in the books of a search."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..problem import Problem
from ..run import Point
from ..sparse import Matrix
from ..types import Array, Hyperparameters
from .base import Search

__all__ = ["outside", "plain_cost", "record", "rows"]

JITTER = 1e-10
"""What a stored kernel matrix gets on its diagonal, relative to the mean, before it is factored (float64)."""


def record(search: Search, theta: Any, facts: dict[str, Any], products: int, kept: list[Point]) -> None:
    """Count a point, keep it if it is the best and write it into the history; Stop ends the search.

    `facts` holds value, hard, gradient, kkt, gap, code and iterations (one a fold); `products` are the products of the
    kernel matrix with one vector that the point has cost; `kept` gets the point before anything can end the search.
    """
    run = search.run
    theta = np.asarray(theta, run.task.X.dtype)
    host = {name: np.atleast_1d(np.asarray(facts[name])) for name in ("kkt", "gap", "code", "iterations")}
    value = float(facts["value"])
    hard = np.nan if facts.get("hard") is None else float(facts["hard"])
    gradient = np.broadcast_to(np.asarray(facts.get("gradient", 0.0), float), theta.shape)
    point = Point(theta, value, value, hard, gradient, host["kkt"], host["gap"], host["code"], host["iterations"])
    run.log.append({"seconds": np.atleast_1d(run.seconds)})
    run.inner_iterations += int(host["iterations"].sum())
    run.kernel_products += products
    if point.ok and (run.best is None or point.objective < run.best.objective):
        run.best = point
    kept.append(point)
    search.note(point)


def rows(problem: Problem, hp: Hyperparameters, X: Array) -> Array:
    """Phi (n, p) with K = Phi Phi', whatever p is: the features of a linear model, or a Cholesky factor of a stored K.

    A regularised bias is one more column of ones.
    """
    phi = problem.kernel.features(hp["kernel"], X)
    if isinstance(phi, Matrix):
        return phi.with_ones() if problem.bias == "regularised" else phi  # type: ignore[return-value]  # a Matrix, of the same use
    if phi is None:
        K = np.asarray(problem.kernel.cross(hp["kernel"], X, X), np.float64)
        lift = JITTER * max(float(np.mean(np.diagonal(K))), np.finfo(float).tiny)
        phi = jnp.asarray(np.linalg.cholesky(K + lift * np.eye(len(K))), X.dtype)
    return jnp.concatenate([phi, jnp.ones_like(phi[:, :1])], axis=1) if problem.bias == "regularised" else phi


def plain_cost(name: str, search: Search) -> None:
    """Refuse what a method that moves one C cannot use: several classes, or one C a row."""
    if search.task.classes > 1:
        raise ValueError(f"{name} moves the C of one problem and y has {search.task.classes} rows: call it once a row")
    if np.size(search.plan.hp["loss"]["C"]) > 1:
        raise ValueError(f"{name} moves one C and the loss has {np.size(search.plan.hp['loss']['C'])}: use one for all")


def outside(name: str, value: Any, low: float, high: float, strict: bool = True) -> None:
    """A ValueError unless value is one number in (low, high), or [low, high] where not strict."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not (low < float(value) < high if strict else low <= float(value) <= high):
        ends = f"({low:g}, {high:g})" if strict else f"[{low:g}, {high:g}]"
        raise ValueError(f"{name}={value!r}: give one number in {ends}")
