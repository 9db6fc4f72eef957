"""The pictures, from results.json alone: python -m experiments.klatzer_pock.plot"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from experiments import common

HERE = Path(__file__).parent
COLORS = {"01loss": "C3", "hinge": "C0", "mse": "C2"}


def figure2(table: dict[str, Any]) -> None:
    """The lines and margins that three outer losses lead to on unbalanced data with outliers."""
    import matplotlib.pyplot as plt

    points = common.rows_of(table, "figure2", method="points")
    if not points:
        return
    X, y = np.asarray(points[0]["X"]), np.asarray(points[0]["y"])
    fig, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
    axis.plot(*X[y < 0].T, "o", color="0.6", ms=4)
    axis.plot(*X[y > 0].T, "^", color="0.2", ms=4)
    across = np.linspace(X[:, 0].min() - 1, X[:, 0].max() + 1, 2)
    for name, color in COLORS.items():
        (row,) = common.rows_of(table, "figure2", method=name)
        for level, style in ((0.0, "-"), (-1.0, ":"), (1.0, ":")):
            height = (level - row["b"] - row["w"][0] * across) / row["w"][1]
            axis.plot(across, height, style, color=color, label=f"{name}, c = {row['c']:.3g}" if not level else None)
    axis.set(ylim=(X[:, 1].min() - 1, X[:, 1].max() + 1), xlabel="x1", ylabel="x2")
    axis.legend()
    fig.savefig(HERE / "figure2.png", dpi=110)


def along(table: dict[str, Any], part: str, label: str) -> None:
    """Surrogates (scaled to the range of the CV error), CV error and test error along one hyperparameter."""
    import matplotlib.pyplot as plt

    rows = common.rows_of(table, part, seed=0)
    if not rows:
        return
    row = rows[0]
    cv, at = np.asarray(row["cv"]), row["at"]
    fig, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    axis.plot(at, cv, "k-", label="CV error")
    axis.plot(at, row["test"], "k--", label="test error")
    for name, color in COLORS.items():
        values = np.asarray(row[name])
        low, high = values.min(), np.percentile(values, 90)
        scaled = cv.min() + (cv.max() - cv.min()) * (values - low) / max(high - low, 1e-12)
        axis.plot(at, scaled, color=color, label=f"{name}, scaled")
    axis.set(xscale="log", xlabel=label, ylabel="percent", ylim=(0.9 * cv.min(), 1.1 * cv.max()), title=row["data"])
    axis.legend()
    fig.savefig(HERE / f"{part}.png", dpi=110)


def confusions(table: dict[str, Any]) -> None:
    """figure5.png: the confusion matrices of figures 5 to 7 side by side, rows the true class."""
    import matplotlib.pyplot as plt

    rows = common.rows_of(table, "images", seed=0)
    if not rows:
        return
    fig, axes = plt.subplots(1, len(rows), figsize=(3.3 * len(rows), 3.5), layout="constrained", squeeze=False)
    for axis, row in zip(axes[0], rows, strict=True):
        found, places = np.asarray(row["confusion"]), range(len(row["labels"]))
        axis.imshow(found, cmap="Blues", vmin=0, vmax=100)
        for i in places:
            for j in places:
                axis.text(j, i, f"{found[i, j]:.1f}", ha="center", va="center", color="w" if found[i, j] > 50 else "k")
        axis.set(title=f"{row['method']}, mean {np.mean(np.diag(found)):.1f}", xlabel="found")
        axis.set_xticks(places, row["labels"])
        axis.set_yticks(places, row["labels"])
    axes[0, 0].set_ylabel("true class")
    fig.savefig(HERE / "figure5.png", dpi=110, bbox_inches="tight")


def main() -> None:
    matplotlib.use("Agg")
    table = common.read(HERE / "results.json")
    figure2(table)
    along(table, "figure3", "c")
    along(table, "figure4", "gamma")
    confusions(table)


if __name__ == "__main__":
    main()
