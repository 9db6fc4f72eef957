"""What the displays share: a figure to draw on, colours, names of hyperparameters, held-out outputs at other values."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..compiling import compiled
from ..coordinates import dotted, flatten
from ..domains import Positive
from ..problem import Problem
from ..solve import cross_decision
from ..types import Array, Hyperparameters

__all__ = ["COLOURS", "QUIET", "axes_for", "leaf", "outputs_at", "short", "spread_around", "with_leaves"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Told apart by people who see colours differently (Okabe & Ito)."""
QUIET = "#666666"
"""Of guides and notes."""


QUICK_WORK = 200_000
"""Points times rows up to which compiling would take longer than computing."""


def axes_for(given: Any, size: tuple[float, float], rows: int = 1, columns: int = 1, **shared: Any) -> Any:
    """An array of axes: those given, or new ones on a new figure."""
    if given is not None:
        axes = np.atleast_1d(np.asarray(given, object)).ravel()
        if axes.size < rows * columns:
            raise ValueError(f"ax holds {axes.size} axes, and this picture has {rows * columns} panels: pass as many")
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: install hyperjax[plots]") from error
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **shared)
    return axes.ravel()


def short(name: str) -> str:
    """loss.C as C, kernel.kernels.1.gamma as gamma of kernel 1."""
    *way, last = name.split(".")
    numbers = [part for part in way if part.isdigit()]
    return f"{last} of kernel {'.'.join(numbers)}" if numbers else last


def leaf(hp: Hyperparameters, name: str) -> np.ndarray:
    """The value under a dotted path; a ValueError lists the paths there are."""
    found = {dotted(path): value for path, value in flatten(hp)}
    if name not in found:
        raise ValueError(f"there is no hyperparameter {name!r}; there are {', '.join(found)}")
    return np.asarray(found[name], float)


def scalar(problem: Problem, hp: Hyperparameters, name: str) -> float:
    """A positive number under a dotted path, one that can lie on a logarithmic axis."""
    value = leaf(hp, name)
    if value.ndim:
        raise ValueError(f"{name} has {value.size} entries; this picture needs single numbers, such as loss.C")
    domains = {dotted(path): domain for path, domain in flatten(problem.domains(hp))}
    if not isinstance(domains.get(name), Positive):
        raise ValueError(f"{name} is not on a logarithmic scale; choose a positive hyperparameter, such as loss.C")
    return float(value)


def spread_around(values: Any, resolution: int, decades: float = 1.0) -> np.ndarray:
    """A geometric grid around positive values, `decades` beyond them on both sides."""
    logs = np.log10(np.asarray(values, float))
    return np.logspace(logs.min() - decades, logs.max() + decades, resolution)


def with_leaves(hp: Hyperparameters, names: tuple[str, ...], values: Any) -> Hyperparameters:
    """The tree with the leaves of these dotted paths replaced."""
    chosen = dict(zip(names, values, strict=True))

    def pick(path: Any, value: Any) -> Any:
        name = ".".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)
        return jnp.asarray(chosen[name], jnp.asarray(value).dtype) if name in chosen else value

    return jax.tree_util.tree_map_with_path(pick, hp)


def _outputs(problem: Problem, hp: Any, names: tuple[str, ...], points: Array, X: Array, y: Array, folds: Any) -> Array:
    return lax.map(lambda point: cross_decision(problem, with_leaves(hp, names, point), X, y, folds), points)


def outputs_at(result: Any, names: tuple[str, ...], points: Any, X: Any, y: Any) -> Array:
    """Held-out outputs (m, n), or (m, R, n), with the named hyperparameters at the rows of points and the others tuned.

    One program solves the points one after the other; a failed solve gives NaN.
    """
    dtype = result.solution.z.dtype
    X, y, points = (jnp.asarray(np.asarray(part), dtype) for part in (X, y, points))
    if X.shape != result.solution.X.shape:
        raise ValueError(f"X has shape {X.shape}, and the search ran on {result.solution.X.shape}: pass the same rows")
    hp = {part: result.hp[part] for part in ("loss", "kernel")}
    hp = jax.tree.map(lambda value: jnp.asarray(value, dtype), hp)
    compilation = "quick" if len(points) * len(X) <= QUICK_WORK else "full"
    return compiled(_outputs, compilation, ("names",))(result.problem, hp, names, points, X, y, result.folds)
