"""How the validation functions look along one hyperparameter."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import criteria as room
from ..criteria.base import apply, hard
from ..plugins import snake
from .base import COLOURS, QUIET, axes_for, outputs_at, scalar, short, spread_around

__all__ = ["CurvesDisplay"]

WIDE = 3
"""Panels side by side."""

REGRESSION = ("absolute_error", "r2", "squared_error")
"""Criteria that measure a distance from the target; the others look at its sign."""


@dataclasses.dataclass
class CurvesDisplay:
    """One panel a criterion: its value and its hard counterpart along one hyperparameter, the others as tuned.

    `grid` (m,), `values` and `hards` a dict of (m,) arrays by the criterion's name, `tuned` the value found.
    """

    grid: np.ndarray
    values: dict[str, np.ndarray]
    hards: dict[str, np.ndarray]
    tuned: float
    name: str
    figure_: Any = None
    axes_: Any = None

    @classmethod
    def from_result(
        cls,
        result: Any,
        X: Any,
        y: Any,
        name: str = "loss.C",
        criteria: Any = None,
        resolution: int = 41,
        decades: float = 2.0,
        ax: Any = None,
    ) -> "CurvesDisplay":
        """Evaluate and draw the criteria (default: all that suit y) within `decades` of the tuned value."""
        tuned = scalar(result.problem, result.hp, name)
        if criteria is None:
            criteria = suitable(result.problem.loss.labels, y)
        grid = spread_around([tuned], resolution, decades)
        outputs = outputs_at(result, (name,), grid[:, None], X, y)
        target = jnp.asarray(np.asarray(y), outputs.dtype)
        values, hards = {}, {}
        for criterion in criteria:
            own = getattr(criterion, "init", lambda y: {})(np.asarray(y))
            own = jax.tree.map(lambda value: jnp.asarray(value, outputs.dtype), own)
            hp = {**result.hp, "criterion": own}
            called = _called(criterion)
            for of, into in ((apply, values), (hard, hards)):
                if of is hard and not isinstance(criterion, room.Criterion):
                    continue
                judge = jax.jit(jax.vmap(lambda o, of=of, by=criterion, hp=hp: of(by, o, target, result.folds, hp)))
                into[called] = np.asarray(judge(outputs), float)
        return cls(grid, values, hards, tuned, name).plot(ax)

    def plot(self, ax: Any = None) -> "CurvesDisplay":
        """Draw on as many axes as there are criteria, or on a new figure."""
        count = len(self.values)
        columns = min(WIDE, count)
        rows = -(-count // columns)
        axes = axes_for(ax, (3.2 * columns + 0.4, 2.3 * rows + 0.4), rows, columns, sharex=True)
        for spare in axes[count:]:
            spare.set_visible(False)
        self.axes_ = axes[:count]
        self.figure_ = axes[0].figure
        for j, (axis, (called, value)) in enumerate(zip(self.axes_, self.values.items(), strict=True)):
            axis.axvline(self.tuned, color=QUIET, linewidth=0.9, linestyle=":", label="tuned")
            other = self.hards.get(called)
            if other is not None and not np.allclose(other, value, equal_nan=True):
                style = {"color": COLOURS[1], "linewidth": 1.1, "linestyle": "--"}
                axis.plot(self.grid, other, label="its hard counterpart", **style)
            axis.plot(self.grid, value, color=COLOURS[0], linewidth=1.6, label="value (small is good)")
            axis.set_title(called, fontsize="medium")
            axis.set(xscale="log")
            axis.grid(alpha=0.25)
            if j + columns >= count:
                axis.set(xlabel=short(self.name))
                axis.tick_params(labelbottom=True)
        pairs = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in self.axes_]
        handles = {label: handle for panel in pairs for handle, label in panel}
        self.figure_.legend(handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False)
        return self


def suitable(labels: bool, y: Any) -> list[Any]:
    """The shipped criteria that judge outputs for labels, or else for numbers, and have no objection to y."""
    found = [room.by_name(name) for name in room.names() if (name in REGRESSION) != labels]
    return [criterion for criterion in found if criterion.problem_with(np.asarray(y)) is None]


def _called(criterion: Any) -> str:
    name = snake(type(criterion).__name__) if isinstance(criterion, room.Criterion) else criterion.__name__
    return name.replace("_", " ")
