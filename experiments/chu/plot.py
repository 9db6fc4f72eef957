"""Figures 1 to 3 from results.json: python -m experiments.chu.plot"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments import common
from experiments.chu.report import LOOSE, TIGHT, one

HERE = Path(__file__).parent
COLOURS = {"newton": "#1b6ca8", "dual": "#d95f02"}
STYLES = {True: "-", False: ":"}


def panels(table: dict[str, Any], part: str) -> tuple[Any, dict[str, Any]]:
    """A row of axes, one a set that has rows of the part."""
    names = list(dict.fromkeys(row["data"] for row in common.rows_of(table, part)))
    figure, axes = plt.subplots(1, len(names), figsize=(3.3 * len(names), 3.1), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        axis.set_title(name, fontsize=10)
    return figure, dict(zip(names, axes[0], strict=True))


def last(table: dict[str, Any], name: str) -> float | None:
    """log2 of the last C of the procedure."""
    row = one(table, "newton", data=name, loss="LR", warm=True, tol=LOOSE)
    return None if row is None or row["stop"] is None else row["log2C"][row["stop"]]


def save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(HERE / name, dpi=110)
    plt.close(figure)


def figure1(table: dict[str, Any]) -> None:
    """Accuracy along C, loose and tight, and the cumulative time of both solvers."""
    figure, axes = panels(table, "newton")
    for name, axis in axes.items():
        for tol, colour, label in ((LOOSE, "black", "CV rate"), (TIGHT, "#2a9d4b", "CV tight")):
            row = one(table, "newton", data=name, loss="LR", warm=True, tol=tol)
            if row is not None:
                axis.plot(row["log2C"], row["accuracy"], color=colour, lw=1.4, label=label)
        time = axis.twinx()
        for part, colour in COLOURS.items():
            row = one(table, part, data=name, loss="LR", warm=True, tol=LOOSE)
            if row is not None:
                time.plot(row["log2C"], row["seconds"], "--", color=colour, lw=1.0, label=f"{part}, s")
        end = last(table, name)
        if end is not None:
            axis.axvline(end, color="gray", lw=1.0)
        axis.set_xlabel("log2 C")
    first = next(iter(axes.values()))
    first.set_ylabel("CV accuracy, %")
    handles = [plt.Line2D([], [], color=c, ls="--", label=f"{p}, s") for p, c in COLOURS.items()]
    first.legend(handles=[*first.get_lines()[:2], *handles], fontsize=7, loc="best")
    save(figure, "figure1.png")


def figure2(table: dict[str, Any]) -> None:
    """Distance to the optimum at the best C over time, from a warm and from a cold start."""
    figure, axes = panels(table, "distance")
    for name, axis in axes.items():
        for row in common.rows_of(table, "distance", data=name):
            label = f"{row['inner']}, {'warm' if row['warm'] else 'cold'}"
            distance = np.maximum(row["distance"], 1e-10)
            axis.plot(row["seconds"], distance, STYLES[row["warm"]], color=COLOURS[row["inner"]], lw=1.3, label=label)
            if row["met"] is not None and row["warm"] and row["inner"] == "newton":
                axis.axhline(distance[row["met"]], color="gray", lw=0.8)
        axis.set_yscale("log")
        axis.set_xscale("symlog", linthresh=1e-2)
        axis.set_xlim(left=0.0)
        axis.set_xlabel("seconds")
    first = next(iter(axes.values()))
    first.set_ylabel("relative distance to the optimum")
    first.legend(fontsize=7)
    save(figure, "figure2.png")


def figure3(table: dict[str, Any]) -> None:
    """Cumulative time of the sweep, warm and cold."""
    figure, axes = panels(table, "newton")
    for name, axis in axes.items():
        for part, colour in COLOURS.items():
            for warm, style in STYLES.items():
                row = one(table, part, data=name, loss="LR", warm=warm, tol=LOOSE)
                if row is not None:
                    label = f"{part}, {'warm' if warm else 'cold'}"
                    axis.plot(row["log2C"], row["seconds"], style, color=colour, lw=1.3, label=label)
        end = last(table, name)
        if end is not None:
            axis.axvline(end, color="gray", lw=1.0)
        axis.set_yscale("log")
        axis.set_xlabel("log2 C")
    first = next(iter(axes.values()))
    first.set_ylabel("cumulative seconds")
    first.legend(fontsize=7)
    save(figure, "figure3.png")


def main() -> None:
    table = common.read(HERE / "results.json")
    figure1(table)
    if common.rows_of(table, "distance"):
        figure2(table)
    figure3(table)


if __name__ == "__main__":
    main()
