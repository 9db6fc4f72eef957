"""Ratios, growth and memory from results.json: python -m experiments.speed.plot"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments import common
from experiments.speed import table as lines

HERE = Path(__file__).parent
COLOURS = {True: "#2a9d4b", False: "#c8321f", None: "#888888"}


def save(figure: Any, folder: Path, name: str) -> None:
    figure.tight_layout()
    figure.savefig(folder / name, dpi=110, bbox_inches="tight")
    plt.close(figure)


def ratios(rows: list[dict[str, Any]], folder: Path) -> None:
    """Peer over hyperjax with what must be reached; the bar is the spread of our seconds."""
    rows = [row for row in rows if row["unit"] == "x" and row["value"]][::-1]
    if not rows:
        return
    figure, axis = plt.subplots(figsize=(12.0, 1.2 + 0.2 * len(rows)))
    for at, row in enumerate(rows):
        low, high = (np.median(row["theirs"]) / end for end in (max(row["ours"]), min(row["ours"])))
        axis.plot([low, high], [at, at], color=COLOURS[row["green"]], lw=2.5, alpha=0.4, solid_capstyle="butt")
        axis.plot(row["value"], at, "o", color=COLOURS[row["green"]], ms=5)
        target = row["earlier"] if row["reach"] is None else row["reach"]
        if target is not None:
            axis.plot(target, at, "|", color="black", ms=11, mew=1.6)
    axis.set_yticks(range(len(rows)), [f"{row['work']} | {row['peer']}" for row in rows], fontsize=7)
    axis.set_ylim(-0.8, len(rows) - 0.2)
    axis.set_xscale("log")
    axis.axvline(1.0, color="black", lw=0.8)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(axis="x", which="both", alpha=0.3)
    axis.set_xlabel("seconds of the peer / of hyperjax (dash: target)")
    save(figure, folder, "ratios.png")


def growth(rows: list[dict[str, Any]], folder: Path) -> None:
    """Seconds by rows and by hyperparameters, with the fitted exponents."""
    panels = [
        ("rows", [row for row in rows if row["cell"] == "growth-rows" and row.get("x")]),
        ("hyperparameters", [row for row in rows if row["key"] == "growth" and row.get("x")]),
    ]
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        return
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.6), squeeze=False)
    for axis, (label, found) in zip(axes[0], panels, strict=True):
        for row, colour in zip(found, ("#1b6ca8", "#d95f02"), strict=False):
            power = "" if row["value"] is None else f", exponent {row['value']:.2f}"
            what = "five cold folds" if row["key"] == "solve" else "value and gradient"
            axis.plot(row["x"], row["y"], "o-", color=colour, label=f"{what}{power}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
        if label == "hyperparameters":
            seconds = found[0]["y"]
            axis.set_ylim(0.3 * min(seconds), 3.0 * max(seconds))
    axes[0][0].set_ylabel("seconds")
    save(figure, folder, "growth.png")


def memory(rows: list[dict[str, Any]], folder: Path) -> None:
    """Peak resident memory of each cell before a peer has run."""
    found = {row["cell"]: row["memory"] / 1e9 for row in rows if row.get("memory")}
    if not found:
        return
    figure, axis = plt.subplots(figsize=(8.0, 1.2 + 0.19 * len(found)))
    names = list(found)[::-1]
    axis.barh(range(len(names)), [found[name] for name in names], color="#1b6ca8", height=0.7)
    for row in rows:
        if row["unit"] == "GB" and row["cell"] in found:
            at = names.index(row["cell"])
            axis.plot([row["reach"]] * 2, [at - 0.45, at + 0.45], color="black", lw=1.6)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set_ylim(-0.8, len(names) - 0.2)
    axis.grid(axis="x", alpha=0.3)
    axis.set_xlabel("peak resident memory, GB (dash: what may be used)")
    save(figure, folder, "memory.png")


def main(argv: Sequence[str] = ()) -> None:
    """The pictures of a table, beside it."""
    path = Path(argv[0]) if argv else HERE / "results.json"
    rows = lines.ordered(common.rows_of(common.read(path), "speed"))
    for draw in (ratios, growth, memory):
        draw(rows, path.parent)


if __name__ == "__main__":
    main(sys.argv[1:])
