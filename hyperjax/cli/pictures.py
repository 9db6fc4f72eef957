"""`--plots`: the pictures that suit the model, as PNG files."""

from pathlib import Path
from typing import Any

import numpy as np

from ..coordinates import dotted, flatten
from .job import Job

__all__ = ["draw"]

DPI = 150
CONTOURS = 4_000
"""Training rows up to which the plane of two hyperparameters is evaluated: some hundred cross-validations."""


def draw(job: Job, result: Any, out: Path) -> list[Path]:
    """Write what there is to see; the figures are made without a window."""
    from .. import plots
    from ..plots.curves import WIDE, suitable

    shapes = {dotted(path): np.shape(value) for path, value in flatten(result.hp)}
    pictures: dict[str, Any] = {"convergence": lambda: plots.ConvergenceDisplay.from_result(result, ax=_axes(2))}
    if shapes.get("kernel.gamma", ()) != ():
        features = job.raw.features
        pictures["relevance"] = lambda: plots.RelevanceDisplay.from_result(result, features, ax=_axes(1, tall=6.4))
    if "kernel.beta" in shapes:
        pictures["weights"] = lambda: plots.KernelWeightsDisplay.from_result(result, ax=_axes(1))
    small = len(job.y) <= CONTOURS
    if small and shapes.get("loss.C") == ():
        judges = suitable(job.problem.loss.labels, job.y)
        rows, columns = -(-len(judges) // WIDE), min(WIDE, len(judges))
        pictures["curves"] = lambda: plots.CurvesDisplay.from_result(
            result, job.X, job.y, criteria=judges, ax=_axes(rows, 2.3 * rows + 0.4, columns)
        )
    if small and shapes.get("loss.C") == () and shapes.get("kernel.gamma") == ():
        pictures["path"] = lambda: plots.PathDisplay.from_result(result, job.X, job.y, ax=_axes(1))
    written = []
    for name, make in pictures.items():
        path = out / f"{name}.png"
        make().figure_.savefig(path, dpi=DPI)
        written.append(path)
    return written


def _axes(rows: int, tall: float = 4.8, columns: int = 1) -> Any:
    """Axes on a figure that no window and no list of open figures knows."""
    from matplotlib.figure import Figure

    size = (max(6.4, 3.3 * columns), tall)
    return Figure(figsize=size, layout="constrained").subplots(rows, columns, sharex=True, squeeze=False).ravel()
