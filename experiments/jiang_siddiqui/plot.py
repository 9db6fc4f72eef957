"""Figure 1 from results.json: python -m experiments.jiang_siddiqui.plot"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments import common

HERE = Path(__file__).parent
COLOURS = {"bilevel-SGD": "#d95f02", "SGD+DCD": "#1b6ca8", "SGD+DCD, exact": "#2a9d4b"}


def main() -> None:
    table = common.read(HERE / "results.json")
    names = [
        n
        for n in ("cancer", "pima", "svmguide1", "connect4", "connect4_onehot", "magic04")
        if common.rows_of(table, "figure1", data=n, bias="none")
    ]
    figure, axes = plt.subplots(2, len(names), figsize=(3.1 * len(names), 5.2), sharex=True, squeeze=False)
    for column, name in zip(axes.T, names, strict=True):
        tested = 0.0
        for method, colour in COLOURS.items():
            for row in common.rows_of(table, "figure1", data=name, bias="none", method=method):
                steps = np.arange(1, len(row["C"]) + 1)
                for axis, key in zip(column, ("accuracy", "V"), strict=True):
                    mean, sd = np.array(row[key]), np.array(row[f"{key}_sd"])
                    axis.plot(steps, mean, color=colour, lw=1.4, label=method)
                    axis.fill_between(steps, mean - sd, mean + sd, color=colour, alpha=0.18, lw=0)
                tested = max(tested, row["seeds"])
        column[0].set_title(f"{name} ({tested} seeds)", fontsize=10)
        column[1].set_yscale("log")
        column[1].set_xlabel("step")
    axes[0, 0].set_ylabel("validation accuracy, %")
    axes[1, 0].set_ylabel("validation hinge loss a fold")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(HERE / "figure1.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
