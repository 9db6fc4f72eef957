"""The pictures, from results.json alone: python -m experiments.keerthi.plot"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from experiments import common
from experiments.keerthi.report import PAPER

HERE = Path(__file__).parent


def contours(table: dict[str, Any]) -> None:
    """figure1.png: validation and test error over the plane, the points visited and the grid's best."""
    import matplotlib.pyplot as plt

    surface, path = (common.rows_of(table, "figure1", method=name) for name in ("surface", "path"))
    if not surface or not path:
        return
    at, way = surface[0], path[0]
    Cs, gammas, order = np.unique(at["C"]), np.unique(at["gamma"]), np.lexsort((at["C"], at["gamma"]))
    fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for axis, name, title, unit in zip(axes, ("value", "test"), ("smoothed validation error", "test error"),
                                       (100.0, 1.0), strict=True):  # fmt: skip
        Z = unit * np.array(at[name], float)[order].reshape(len(gammas), len(Cs))  # None, not solved, is NaN
        drawn = axis.contourf(Cs, gammas, Z, levels=15, cmap="Greys")
        fig.colorbar(drawn, ax=axis, label="percent")
        axis.plot(way["C"], way["gamma"], "s-", color="C0", ms=4, label="visited")
        axis.plot(way["C"][-1], way["gamma"][-1], "s", color="C3", ms=8, label="end")
        best = int(np.nanargmin(np.array(at["value"], float)))
        axis.plot(at["C"][best], at["gamma"][best], "o", mfc="none", mec="C3", ms=12, label="best of the grid")
        axis.set(xscale="log", yscale="log", xlabel="C", title=title)
    axes[0].set_ylabel("gamma")
    axes[0].legend(loc="lower left")
    fig.savefig(HERE / "figure1.png", dpi=110)


def sizes(table: dict[str, Any]) -> None:
    """table1.png: test error on ijcnn1 against training rows, ours and the paper's."""
    import matplotlib.pyplot as plt

    fig, axis = plt.subplots(figsize=(5.5, 4), layout="constrained")
    for color, (method, label) in enumerate((("grad", "one width"), ("ard", "one a feature"))):
        paper = sorted((n, found[method][0]) for (data, n), found in PAPER.items() if data == "ijcnn1")
        axis.plot(*zip(*paper, strict=True), "--", color=f"C{color}", label=f"{label}, paper")
        rows = common.rows_of(table, "table1", data="ijcnn1", method=method)
        axis.plot([row["rows"] for row in rows], [row["error"] for row in rows], "o", mfc="none", color=f"C{color}",
                  label=f"{label}, ours, a subset each")  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="training rows", ylabel="test error, percent", title="ijcnn1")
    axis.set_xticks([2000, 4000, 8000, 16000, 32000], ["2,000", "4,000", "8,000", "16,000", "32,000"])
    axis.set_yticks([1.0, 1.5, 2.0, 3.0], ["1", "1.5", "2", "3"])
    axis.minorticks_off()
    axis.legend()
    fig.savefig(HERE / "table1.png", dpi=110)


def main() -> None:
    matplotlib.use("Agg")
    table = common.read(HERE / "results.json")
    contours(table)
    sizes(table)


if __name__ == "__main__":
    main()
