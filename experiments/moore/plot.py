"""Figures 4 to 9 from results.json: python -m experiments.moore.plot"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import common
from experiments.moore.report import errors, seconds
from experiments.moore.run import OUTPUT

HERE = Path(__file__).parent
METHODS = ("grid fine", "grid coarse", "impgrad", "pbp", "pbp published", "tune")
COLOURS = dict(zip(METHODS, ("#999999", "#555555", "#1f77b4", "#d62728", "#e8a0a0", "#2ca02c"), strict=True))


def lines(ax: Any, results: Any, part: str, x: str, of: Any, methods: tuple[str, ...], **wanted: Any) -> None:
    """A line a method, with bars of one standard deviation where `of` gives several numbers."""
    for method in methods:
        rows = common.rows_of(results, part, method=method, **wanted)
        places = sorted({row[x] for row in rows})
        found = [np.atleast_1d(of([row for row in rows if row[x] == place])) for place in places]
        if places:
            spread = [values.std(ddof=1) if len(values) > 1 else 0.0 for values in found]
            means = [values.mean() for values in found]
            if len(places) < 7:
                ax.set_xticks(places, [str(place) for place in places])
                ax.minorticks_off()
            ax.errorbar(places, means, spread, label=method, color=COLOURS[method], marker="o", ms=4, capsize=2)


def bars(ax: Any, results: Any, of: Any) -> None:
    """Groups of bars a data set, a bar a method."""
    names = list(dict.fromkeys(row["data"] for row in common.rows_of(results, "figure4")))
    for k, method in enumerate(METHODS):
        found = [np.atleast_1d(of(common.rows_of(results, "figure4", data=d, method=method))) for d in names]
        spread = [values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0 for values in found]
        at = np.arange(len(names)) + 0.13 * (k - 2.5)
        ax.bar(at, [values.mean() for values in found], 0.12, yerr=spread, label=method, color=COLOURS[method])
    ax.set_xticks(np.arange(len(names)), names)


def main(folder: Path = HERE, source: Path = OUTPUT) -> None:
    """Write figure4.png to figure9.png."""
    from matplotlib.figure import Figure

    results = common.read(source)

    def save(name: str, draw: Any, title: str, y: str, x: str = "", **scales: str) -> None:
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        ax = figure.add_subplot()
        ax.set(title=title, ylabel=y, xlabel=x, **scales)
        draw(ax)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", fontsize=8, ncols=6)
        figure.savefig(folder / f"{name}.png", dpi=130)

    shown = ("grid coarse", "impgrad", "pbp", "tune")
    three = ("impgrad", "pbp", "tune")
    save("figure4", lambda ax: bars(ax, results, errors), "SVR on small QSAR sets", "test error (1 s.e.)")
    save("figure5", lambda ax: bars(ax, results, seconds), "SVR on small QSAR sets", "CPU seconds", yscale="log")
    save(
        "figure6", lambda ax: lines(ax, results, "table3", "rows", errors, shown, data="esol", groups=5),
        "Five-group SVR, esol with added noise", "test error", "modelling rows", xscale="log",
    )  # fmt: skip
    save(
        "figure7", lambda ax: lines(ax, results, "table4", "rows", errors, shown, groups=5),
        "Five-group SVR, synthetic set (floor 0.04)", "test error", "modelling rows", xscale="log",
    )  # fmt: skip
    save(
        "figure8", lambda ax: lines(ax, results, "table4", "rows", seconds, shown, groups=5),
        "Ten hyperparameters, synthetic set", "CPU seconds", "modelling rows", xscale="log", yscale="log",
    )  # fmt: skip
    save(
        "figure9", lambda ax: lines(ax, results, "figure9", "groups", seconds, three),
        "Synthetic set, 1000 rows", "CPU seconds", "groups (two hyperparameters each)", yscale="log",
    )  # fmt: skip


if __name__ == "__main__":
    main()
