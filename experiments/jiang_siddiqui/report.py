"""The tables of the README, from results.json: python -m experiments.jiang_siddiqui.report"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import common

HERE = Path(__file__).parent
PAPER = {
    "cancer": {"bilevel-SGD": (94.29, 1.24), "SGD+DCD": (95.02, 0.16)},
    "pima": {"bilevel-SGD": (65.58, 0.38), "SGD+DCD": (76.53, 0.21)},
    "svmguide1": {"bilevel-SGD": (72.81, 1.06), "SGD+DCD": (84.88, 0.29)},
    "connect4": {"bilevel-SGD": (72.77, 0.0001), "SGD+DCD": (83.68, 0.06)},
    "connect4_onehot": {"bilevel-SGD": (72.77, 0.0001), "SGD+DCD": (83.68, 0.06)},
    "magic04": {"bilevel-SGD": (66.97, 0.26), "SGD+DCD": (78.55, 0.54)},
}
"""Accuracy and C of the paper's table 1."""
METHODS = ("bilevel-SGD", "SGD+DCD", "SGD+DCD, exact", "tune")


def spread(values: list[float], digits: int = 2) -> str:
    """Mean and standard deviation."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def found(table: dict[str, Any], name: str, bias: str, method: str) -> list[dict[str, Any]]:
    """The rows of a method, one a seed."""
    part = "tune" if method == "tune" else "steps"
    return common.rows_of(table, part, data=name, bias=bias, method=method)


def accuracies(table: dict[str, Any]) -> str:
    """Accuracy and C of every method beside the paper's."""
    lines = []
    for name, printed in PAPER.items():
        for method in METHODS:
            plain, column = (found(table, name, bias, method) for bias in ("none", "column"))
            if not plain and not column:
                continue
            paper = printed.get(method)
            lines.append(
                [
                    name,
                    method,
                    f"{paper[0]:.2f}" if paper else "-",
                    spread([row["accuracy"] for row in plain]) if plain else "-",
                    spread([row["accuracy"] for row in column]) if column else "-",
                    f"{paper[1]:g}" if paper else "-",
                    costs(plain or column),
                    spread([row["V"] for row in plain], 1) if plain else "-",
                    f"{np.median([row['cpu_with_final_model'] for row in plain or column]):.1f}",
                    len(plain or column),
                ]
            )
    header = (
        "data", "method", "paper, %", "no bias, %", "bias column, %", "paper's C", "our C: mean [min, max]",
        "V a fold, no bias", "CPU s", "seeds",
    )  # fmt: skip
    return common.markdown(header, lines)


def costs(rows: list[dict[str, Any]]) -> str:
    """Mean, smallest and largest C."""
    values = [row["C"] for row in rows]
    return f"{np.mean(values):.2g} [{np.min(values):.2g}, {np.max(values):.2g}]"


def variants(table: dict[str, Any]) -> str:
    """Pima by the other options."""
    names = list(dict.fromkeys(row["method"] for row in common.rows_of(table, "variants")))
    lines = []
    for name in names:
        rows = common.rows_of(table, "variants", method=name)
        values = ([row[key] for row in rows] for key in ("accuracy", "V"))
        accuracy, V = values
        lines.append([name, spread(accuracy), costs(rows), spread(V, 1), len(rows)])
    return common.markdown(("SGD+DCD on pima", "accuracy, %", "C: mean [min, max]", "V a fold", "seeds"), lines)


def settled(table: dict[str, Any]) -> str:
    """What figure 1 is said to show: when the curves settle, and from when SGD+DCD's loss is the smaller one."""
    lines = []
    for name in PAPER:
        rows = {row["method"]: row for row in common.rows_of(table, "figure1", data=name, bias="none")}
        if "SGD+DCD" not in rows or "bilevel-SGD" not in rows:
            continue
        accuracy = np.array(rows["SGD+DCD"]["accuracy"])
        late = np.flatnonzero(np.abs(accuracy - accuracy[-1]) > 1.0)
        above = np.flatnonzero(np.array(rows["SGD+DCD"]["V"]) >= np.array(rows["bilevel-SGD"]["V"]))
        lines.append([name, 1 if late.size == 0 else late[-1] + 2, 1 if above.size == 0 else above[-1] + 2])
    return common.markdown(("data", "within 1 point of its end from step", "loss below bilevel-SGD's from step"), lines)


def main() -> None:
    table = common.read(HERE / "results.json")
    for name, make in (("accuracies", accuracies), ("variants", variants), ("settled", settled)):
        common.insert(HERE / "README.md", name, make(table))


if __name__ == "__main__":
    main()
