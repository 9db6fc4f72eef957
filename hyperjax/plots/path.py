"""The way of a search over the contours of the validation function."""

import dataclasses
from typing import Any

import jax
import numpy as np

from ..criteria.base import apply
from .base import COLOURS, axes_for, leaf, outputs_at, scalar, short, spread_around

__all__ = ["PathDisplay"]


@dataclasses.dataclass
class PathDisplay:
    """Contours of the validation function in the plane of two hyperparameters, and the steps of a search.

    `xs` (a,), `ys` (b,) and `values` (b, a) are the grid, `path` (k, 2) the steps, `names` the two dotted paths.
    `starts` (k,) numbers the starting points the steps came from; `end` (2,) is the result, by default the last step.
    """

    xs: np.ndarray
    ys: np.ndarray
    values: np.ndarray
    path: np.ndarray
    names: tuple[str, str]
    label: str = "validation"
    starts: np.ndarray | None = None
    end: np.ndarray | None = None
    figure_: Any = None
    axes_: Any = None

    @classmethod
    def from_result(
        cls,
        result: Any,
        X: Any,
        y: Any,
        names: tuple[str, str] = ("loss.C", "kernel.gamma"),
        resolution: int = 21,
        function: Any = None,
        ax: Any = None,
    ) -> "PathDisplay":
        """Evaluate the criterion on a grid around the path and draw it.

        X and y are the rows the search ran on.  `function` takes points (m, 2) to values (m,) where there is a
        quicker way than one cross-validation a point; the other hyperparameters are at their tuned values.
        """
        first, second = (names[0], names[1])
        for name in (first, second):
            scalar(result.problem, result.hp, name)
        path = np.array([[float(leaf(record["hp"], name)) for name in (first, second)] for record in result.history])
        starts = np.array([record.get("start", 0) for record in result.history])
        end = np.array([float(leaf(result.hp, name)) for name in (first, second)])
        xs, ys = (spread_around(path[:, i], resolution) for i in (0, 1))
        points = np.stack([part.ravel() for part in np.meshgrid(xs, ys)], axis=1)
        if function is None:
            outputs = outputs_at(result, (first, second), points, X, y)
            values = _judge(result, outputs, y)
        else:
            values = np.asarray(function(points), float)
        label = f"validation: {type(result.criterion).__name__}"
        display = cls(xs, ys, values.reshape(resolution, resolution), path, (first, second), label, starts, end)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "PathDisplay":
        """Draw on `ax`, or on a new figure."""
        self.axes_ = axes_for(ax, (6.4, 4.8))[:1]
        axis = self.axes_[0]
        self.figure_ = axis.figure
        shown = np.ma.masked_invalid(self.values)
        filled = axis.contourf(self.xs, self.ys, shown, levels=20, cmap="cividis")
        axis.contour(self.xs, self.ys, shown, levels=filled.levels[::2], colors="white", linewidths=0.4, alpha=0.6)
        self.figure_.colorbar(filled, ax=axis, label=self.label)
        starts = np.zeros(len(self.path)) if self.starts is None else self.starts
        pieces = np.split(self.path, np.flatnonzero(np.diff(starts)) + 1)
        for i, piece in enumerate(pieces):
            axis.plot(*piece.T, color="white", linewidth=3.0, zorder=3)
            style = {"marker": "o", "markersize": 3.5, "label": None if i else "steps"}
            axis.plot(*piece.T, color=COLOURS[1], linewidth=1.6, zorder=4, **style)
        marks = {"edgecolors": "black", "linewidths": 0.8, "zorder": 5}
        first, last = np.stack([piece[0] for piece in pieces]), self.path[-1] if self.end is None else self.end
        axis.scatter(*first.T, s=60, marker="s", color="white", label="start", **marks)
        axis.scatter(*last, s=150, marker="*", color=COLOURS[4], label="end", **marks)
        axis.set(xscale="log", yscale="log", xlabel=short(self.names[0]), ylabel=short(self.names[1]))
        axis.set(facecolor="#cccccc")  # where a solve failed
        axis.legend(loc="best", framealpha=0.9)
        return self


def _judge(result: Any, outputs: Any, y: Any) -> np.ndarray:
    """The criterion of every row of outputs."""
    y = jax.numpy.asarray(np.asarray(y), outputs.dtype)
    judge = jax.jit(jax.vmap(lambda o: apply(result.criterion, o, y, result.folds, result.hp)))
    return np.asarray(judge(outputs), float)
