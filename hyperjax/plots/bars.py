"""What a kernel looks at: widths of features, weights of kernels."""

import dataclasses
from typing import Any

import numpy as np

from ..coordinates import dotted, flatten
from ..plugins import snake
from .base import COLOURS, QUIET, axes_for, leaf

__all__ = ["KernelWeightsDisplay", "RelevanceDisplay"]


@dataclasses.dataclass
class RelevanceDisplay:
    """The widths gamma_j of an ARD kernel, the largest first: how much each feature decides, once scaled alike."""

    names: list[str]
    gamma: np.ndarray
    start: np.ndarray
    left_out: int = 0
    figure_: Any = None
    axes_: Any = None

    @classmethod
    def from_result(
        cls, result: Any, features: Any = None, name: str = "kernel.gamma", top: int = 20, ax: Any = None
    ) -> "RelevanceDisplay":
        """Draw the `top` largest entries of the vector `name`; `features` are the names of the columns."""
        gamma, start = leaf(result.hp, name), leaf(result.start, name)
        if gamma.ndim != 1:
            raise ValueError(f"{name} is one number for all features: relevances need an ARD kernel")
        if features is not None and len(features) != gamma.size:
            raise ValueError(f"features has {len(features)} names, and {name} has {gamma.size} entries")
        named = [f"feature {j}" for j in range(gamma.size)] if features is None else list(map(str, features))
        order = np.argsort(-gamma, kind="stable")[: max(1, top)]
        display = cls([named[j] for j in order], gamma[order], start[order], gamma.size - len(order))
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "RelevanceDisplay":
        """Draw on `ax`, or on a new figure."""
        self.axes_ = axes_for(ax, (6.4, 1.4 + 0.26 * len(self.names)))[:1]
        axis = self.axes_[0]
        self.figure_ = axis.figure
        rows = np.arange(len(self.names))
        axis.scatter(self.start, rows, marker="|", s=70, color=QUIET, label="start", zorder=2)
        axis.hlines(rows, np.minimum(self.start, self.gamma), np.maximum(self.start, self.gamma), color="#bbbbbb")
        axis.scatter(self.gamma, rows, s=36, color=COLOURS[0], label="tuned", zorder=3)
        axis.set(xscale="log", xlabel="gamma (larger: the feature decides more)", ylim=(len(rows) - 0.4, -0.6))
        axis.set_yticks(rows, self.names)
        axis.grid(axis="x", alpha=0.25)
        if self.left_out:
            axis.set_title(f"the {len(rows)} largest of {len(rows) + self.left_out}", fontsize="medium", loc="left")
        _legend_above(axis)
        return self


@dataclasses.dataclass
class KernelWeightsDisplay:
    """The weights beta_p of a sum of kernels, before and after."""

    names: list[str]
    beta: np.ndarray
    start: np.ndarray
    figure_: Any = None
    axes_: Any = None

    @classmethod
    def from_result(cls, result: Any, names: Any = None, ax: Any = None) -> "KernelWeightsDisplay":
        """Draw the weights; `names` stand for the kernels in the place of their classes."""
        if not any(dotted(path) == "kernel.beta" for path, _ in flatten(result.hp)):
            raise ValueError("the problem has no kernel.beta: weights need the kernel hyperjax.kernels.Weighted")
        beta, start = leaf(result.hp, "kernel.beta"), leaf(result.start, "kernel.beta")
        if names is None:
            names = [_described(kernel) for kernel in result.problem.kernel.kernels]
        if len(names) != beta.size:
            raise ValueError(f"names has {len(names)} entries, and there are {beta.size} kernels")
        return cls(list(map(str, names)), beta, start).plot(ax)

    def plot(self, ax: Any = None) -> "KernelWeightsDisplay":
        """Draw on `ax`, or on a new figure."""
        self.axes_ = axes_for(ax, (6.4, 1.4 + 0.34 * len(self.names)))[:1]
        axis = self.axes_[0]
        self.figure_ = axis.figure
        rows = np.arange(len(self.names))
        axis.barh(rows, self.beta, height=0.6, color=COLOURS[0], label="tuned")
        axis.scatter(self.start, rows, marker="|", s=180, color=COLOURS[1], linewidths=2, label="start", zorder=3)
        axis.set(xlabel="weight beta", ylim=(len(rows) - 0.4, -0.6), xlim=(0, None))
        axis.set_yticks(rows, self.names)
        axis.grid(axis="x", alpha=0.25)
        _legend_above(axis)
        return self


def _legend_above(axis: Any) -> None:
    """Outside: bars and dots may be anywhere."""
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0.2)


def _described(kernel: Any) -> str:
    """rbf, or rbf (2 columns)."""
    columns = getattr(kernel, "columns", None)
    name = snake(type(kernel).__name__)
    if columns is None:
        return name
    return f"{name} (column {columns[0]})" if len(columns) == 1 else f"{name} ({len(columns)} columns)"
