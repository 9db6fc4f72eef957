"""How well the optimum of a search is determined: the Hessian of its objective, and what it allows to move.

Problem
    J(theta + d) = J + g'd + 1/2 d'H d near the optimum theta, in the coordinates of the search (logarithms of positive
    hyperparameters), the prior included.
Derivative
    H is the derivative of the hypergradient along each coordinate: forward over reverse, by the rule of implicit.py.
    For losses with kinks it belongs to the piece of the active set at theta.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import checks, objective

__all__ = ["Sensitivity", "sensitivity"]

FLAT = 1e-3
"""A direction is flat whose curvature is below this part of the largest."""


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """The objective around the optimum, coordinate by coordinate and direction by direction."""

    names: tuple[str, ...]
    objective: float
    gradient: np.ndarray
    hessian: np.ndarray
    """(k, k), in the coordinates of the search."""
    curvatures: np.ndarray
    """Its eigenvalues, ascending."""
    directions: np.ndarray
    """The eigenvectors, one a column."""
    share: float
    alone: np.ndarray
    """How far each coordinate may move for `share` of the objective, the others held; inf where nothing bends."""
    together: np.ndarray
    """The same where the others are tuned again: what the data leave open."""
    distance: float
    """How far the nearest sample of a fold is from changing its piece, in output units: H holds up to there."""

    @property
    def flat(self) -> list[dict[str, float]]:
        """The flat directions, each by the coordinates that make up most of it."""
        limit = FLAT * max(float(self.curvatures[-1]), 0.0)
        out = []
        for value, direction in zip(self.curvatures, self.directions.T, strict=True):
            if value <= limit:
                order = np.argsort(-np.abs(direction))
                kept = [i for i in order if abs(direction[i]) >= 0.2 * abs(direction[order[0]])][:6]
                out.append({self.names[i]: float(direction[i]) for i in kept})
        return out

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [
            f"objective {self.objective:.6g}; moves that cost {100 * self.share:g} %, in the coordinates of the search "
            "(0.1 is a factor of 1.1 for a positive hyperparameter)",
            f"{'':{width}}  {'gradient':>10}  {'curvature':>10}  {'alone':>8}  {'together':>8}",
        ]
        for i, name in enumerate(self.names):
            lines.append(
                f"{name:{width}}  {self.gradient[i]:10.2e}  {self.hessian[i, i]:10.2e}  {self.alone[i]:8.3g}  "
                f"{self.together[i]:8.3g}"
            )
        for direction in self.flat:
            lines.append("flat: " + " ".join(f"{value:+.2f} {name}" for name, value in direction.items()))
        return "\n".join(lines)


def sensitivity(task: objective.Task, hp: Any, share: float = 0.01, tol: Any = None) -> Sensitivity:
    """The sensitivity of a task's objective at hp."""
    if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 < float(share) < 1:
        raise ValueError(f"share={share!r}: give a part of the objective between 0 and 1, such as 0.01")
    theta = task.coords.read(hp)
    value, gradient, hessian, distance = _second_order(task, theta, checks.tolerance(tol, theta.dtype))
    H, g = (np.asarray(part, float) for part in (hessian, gradient))
    H = 0.5 * (H + H.T)
    if not np.all(np.isfinite(H)):
        raise RuntimeError("the folds could not be solved at the optimum: see result.history[-1]['codes']")
    curvatures, directions = np.linalg.eigh(H)
    budget = share * abs(float(value))
    # what the others give way to: directions without curvature leave a coordinate free
    safe = np.maximum(curvatures, 1e-12 * max(float(curvatures[-1]), 1e-300))
    schur = 1.0 / np.sum(directions**2 / safe, axis=1)
    return Sensitivity(
        task.coords.names, float(value), g, H, curvatures, directions, float(share), _move(np.diag(H), g, budget),
        _move(schur, np.zeros_like(g), budget), float(np.min(np.asarray(distance))),
    )  # fmt: skip


def _move(curvature: np.ndarray, gradient: np.ndarray, budget: float) -> np.ndarray:
    """The smallest move d > 0 with |g| d + c d^2 / 2 = budget; inf where there is none."""
    c, g = np.maximum(curvature, 0.0), np.abs(gradient)
    with np.errstate(divide="ignore"):
        return np.where((c > 0) | (g > 0), 2.0 * budget / (g + np.sqrt(g * g + 2.0 * c * budget)), np.inf)


@jax.jit
def _second_order(task: objective.Task, theta: Any, tol: Any) -> tuple[Any, Any, Any, Any]:
    def gradient(theta: Any) -> Any:
        value, slope, facts = objective.slope(task, theta, task.start(), tol)
        return slope, (value, facts["distance"])

    def column(direction: Any) -> Any:
        return jax.jvp(gradient, (theta,), (direction,), has_aux=True)[1]

    slope, (value, distance) = gradient(theta)
    return value, slope, lax.map(column, jnp.eye(len(theta), dtype=theta.dtype)), distance
