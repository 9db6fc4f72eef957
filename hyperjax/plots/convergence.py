"""How a search went down."""

import dataclasses
from typing import Any

import numpy as np

from .base import COLOURS, QUIET, axes_for

__all__ = ["ConvergenceDisplay"]


@dataclasses.dataclass
class ConvergenceDisplay:
    """The criterion, its hard counterpart and the norm of the gradient, step by step; stages are told apart."""

    evaluations: np.ndarray
    value: np.ndarray
    hard: np.ndarray
    gradient_norm: np.ndarray
    stage: list[Any]
    label: str = "criterion"
    figure_: Any = None
    axes_: Any = None

    @classmethod
    def from_result(cls, result: Any, ax: Any = None) -> "ConvergenceDisplay":
        """Draw the history of a search on two panels."""
        columns = {name: [record[name] for record in result.history] for name in ("evaluations", "value", "hard")}
        hard = np.array([np.nan if value is None else value for value in columns["hard"]], float)
        slope = np.array([record["gradient_norm"] for record in result.history], float)
        stage = [f"start {r['start'] + 1}" if r.get("start") else r["stage"] for r in result.history]
        counts, value = (np.asarray(columns[name], float) for name in ("evaluations", "value"))
        return cls(counts, value, hard, slope, stage, type(result.criterion).__name__).plot(ax)

    def plot(self, ax: Any = None) -> "ConvergenceDisplay":
        """Draw on two axes, or on a new figure."""
        self.axes_ = axes_for(ax, (6.4, 5.2), rows=2, sharex=True)[:2]
        above, below = self.axes_
        self.figure_ = above.figure
        above.plot(self.evaluations, self.value, color=COLOURS[0], marker="o", markersize=3.5, label=self.label)
        if np.isfinite(self.hard).any() and not np.allclose(self.hard, self.value, equal_nan=True):
            style = {"linestyle": "--", "marker": "s", "markersize": 3.5, "color": COLOURS[1]}
            above.plot(self.evaluations, self.hard, label="its hard counterpart", **style)
        above.set(ylabel="validation")
        below.plot(self.evaluations, self.gradient_norm, color=COLOURS[2], marker="o", markersize=3.5)
        below.set(xlabel="evaluations (all folds together)", ylabel="norm of the gradient")
        below.xaxis.get_major_locator().set_params(integer=True)
        if np.all(self.gradient_norm > 0):
            below.set(yscale="log")
            # a start on a plateau, with no gradient to speak of, shall not flatten all the rest
            shown = self.gradient_norm[self.gradient_norm > 1e-12 * self.gradient_norm.max()]
            below.set_ylim(0.5 * shown.min(), 2.0 * shown.max())
        for axis in (above, below):
            axis.grid(alpha=0.25)
            self._stages(axis, named=axis is above)
        above.legend(loc="best", framealpha=0.9)
        return self

    def _stages(self, axis: Any, named: bool) -> None:
        """A line where a new stage begins, with its name."""
        starts = [i for i in range(len(self.stage)) if i == 0 or self.stage[i] != self.stage[i - 1]]
        if len(starts) < 2:
            return
        for i in starts:
            x = self.evaluations[i]
            if i:
                axis.axvline(x, color=QUIET, linewidth=0.8, linestyle=":")
            if named:
                where = {"xycoords": axis.get_xaxis_transform(), "textcoords": "offset points", "color": QUIET}
                axis.annotate(str(self.stage[i]), (x, 1.0), xytext=(3, 3), annotation_clip=False, **where)
