"""The tables of the README, from results.json: python -m experiments.keerthi.report"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import common
from experiments.keerthi.task import LETTERS

HERE = Path(__file__).parent
PAPER = {
    ("ijcnn1", 2000): {"grid": (2.95, 225, 10.03), "grad": (2.87, 11, 4.58), "ard": (2.65, 28, 5.63)},
    ("ijcnn1", 4000): {"grid": (2.42, 225, 38.77), "grad": (2.42, 12, 11.40), "ard": (2.14, 13, 8.40)},
    ("ijcnn1", 8000): {"grid": (1.76, 225, 218.92), "grad": (1.77, 14, 68.58), "ard": (1.50, 17, 38.58)},
    ("ijcnn1", 16000): {"grid": (1.24, 225, 1130.37), "grad": (1.26, 12, 127.03), "ard": (1.08, 20, 154.03)},
    ("ijcnn1", 32000): {"grid": (0.91, 225, 5331.15), "grad": (0.91, 9, 382.20), "ard": (0.82, 7, 269.16)},
    ("splice", 2000): {"grid": (9.19, 225, 11.42), "grad": (8.17, 13, 7.57), "ard": (3.49, 37, 35.04)},
    ("a9a", 2000): {"grid": (16.14, 225, 8.66), "grad": (16.21, 9, 3.62)},
    ("a9a", 4000): {"grid": (15.95, 225, 37.53), "grad": (15.64, 16, 15.98)},
    ("a9a", 8000): {"grid": (15.59, 225, 306.25), "grad": (15.69, 10, 52.17)},
    ("a9a", 16000): {"grid": (15.37, 225, 3667.90), "grad": (15.40, 6, 256.40)},
}
"""Test error in percent, trained points, minutes (tables 1 and 2; the minutes of ARD are those it adds)."""
F_PAPER = {"fixed": (0.6385, 0.6363), "tuned": (0.6635, 0.6641)}
TABLE3 = {
    "equal, tuned": (0.0571, 0.0638), "ratio, tuned": (0.0419, 0.0549), "costs, tuned": (0.0490, 0.0571),
    "full, tuned": (0.0357, 0.0461), "equal, fixed": (0.1953, 0.1861), "ratio, fixed": (0.1051, 0.0897),
    "costs, fixed": (0.1008, 0.0969), "full, fixed": (0.0364, 0.0469),
}  # fmt: skip
"""Validation and test weighted error."""


def spread(values: list[float], digits: int = 2) -> str:
    """Mean, and standard deviation where there are several."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def limit(paper: float, values: list[float]) -> float:
    """0.3 points and one standard error above the paper."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return paper + 0.3 + float(error)


def errors(table: dict[str, Any]) -> str:
    """Test error, trained points and seconds of every search beside the paper's."""
    lines = []
    for (data, n), printed in PAPER.items():
        for method in ("grid", "grad", "ard", "tune", "tune-ard"):
            part = {"grid": "grid", "tune": "tune", "tune-ard": "tune"}.get(method, "table1")
            rows = common.rows_of(table, part, data=data, rows=n, method=method)
            paper = printed.get(method)
            if not rows and paper is None:
                continue
            own = [row["error"] for row in rows]
            within = "-" if paper is None or not rows else "yes" if np.mean(own) <= limit(paper[0], own) else "no"
            lines.append([
                data, n, method, f"{paper[0]:.2f}" if paper else "-", spread(own) if rows else "not run", within,
                paper[1] if paper else "-", ", ".join(str(row["evaluations"]) for row in rows) or "-",
                f"{60 * paper[2]:.0f}" if paper else "-",
                f"{np.median([row['seconds'] for row in rows]):.0f}" if rows else "-",
            ])  # fmt: skip
    header = (
        "data", "rows", "search", "paper, %", "ours, %", "within 0.3 + s.e.", "paper's points", "our points by subset",
        "paper's s", "our s",
    )  # fmt: skip
    return common.markdown(header, lines)


def codings(table: dict[str, Any]) -> str:
    """Splice with the four letters coded in other orders, on the subsets that all orders have."""
    names = dict.fromkeys(row["data"] for row in table["table1"]["rows"] if row["data"].startswith("splice"))
    cells = {}
    for name in names:
        for row in common.rows_of(table, "table1", data=name, rows=2000):
            cells[name.partition("-")[2] or LETTERS, row["seed"], row["method"]] = row
    orders = list(dict.fromkeys(order for order, _, _ in cells))
    seeds = sorted(set.intersection(*({seed for o, seed, _ in cells if o == order} for order in orders)))
    lines = []
    for order in orders:
        for seed in seeds:
            grad, ard = cells[order, seed, "grad"], cells[order, seed, "ard"]
            lines.append([order, seed, *(f"{row['error']:.2f}" for row in (grad, ard)),
                          *(f"{row['value']:.3f}" for row in (grad, ard)), ard["evaluations"]])  # fmt: skip
    header = (
        "codes 1 to 4", "subset", "one width, %", "one a feature, %", "V, one width", "V, one a feature", "its points",
    )  # fmt: skip
    return common.markdown(header, lines)


def small(table: dict[str, Any]) -> str:
    """The gradient search against the grid where both are cheap."""
    lines = []
    for row in common.rows_of(table, "small"):
        lines.append([row["data"], row["rows"], row["method"], f"{row['value']:.4f}", f"{row['error']:.1f}",
                      row["evaluations"], f"{row['seconds']:.0f}"])  # fmt: skip
    return common.markdown(("data", "rows", "search", "V", "test, %", "points", "s"), lines)


def f_measure(table: dict[str, Any]) -> str:
    """F with the threshold at 0 and tuned."""
    lines = []
    for method, (cv, test) in F_PAPER.items():
        rows = common.rows_of(table, "f_measure", method=method)
        if rows:
            own = [[1.0 - row[name] for row in rows] for name in ("validation", "test", "test_best_cut")]
            lines.append([method, f"{cv:.4f}", spread(own[0], 4), f"{test:.4f}", spread(own[1], 4), spread(own[2], 4),
                          len(rows)])  # fmt: skip
    header = ("s0", "paper's CV F", "our CV F", "paper's test F", "our test F", "best cut of our outputs", "splits")
    return common.markdown(header, lines)


def table3(table: dict[str, Any]) -> str:
    """Weighted error of the four hinges."""
    lines = []
    methods = list(dict.fromkeys(row["method"] for row in common.rows_of(table, "table3")))
    for method in methods:
        rows = common.rows_of(table, "table3", method=method)
        cv, test = TABLE3.get(method, (None, None))
        lines.append([
            method, f"{cv:.4f}" if cv else "-", spread([row["validation"] for row in rows], 4),
            spread([row["value"] for row in rows], 4), f"{test:.4f}" if test else "-",
            spread([row["test"] for row in rows], 4), f"{np.mean([row['evaluations'] for row in rows]):.0f}", len(rows),
        ])  # fmt: skip
    header = (
        "hinge, s0", "paper's CV", "our CV", "our smoothed V", "paper's test", "our test", "our points", "splits",
    )  # fmt: skip
    return common.markdown(header, lines)


def cost(table: dict[str, Any]) -> str:
    """The seconds of one evaluation."""
    names = ("kernel", "cold", "cold_gradient", "warm", "warm_gradient")
    rows = common.rows_of(table, "cost")
    lines = [
        [row["data"], row["rows"], *(f"{1000 * row[name]:.1f}" for name in names),
         f"{100 * max(row['gradient_share_cold'], 0.0):.0f} %"]
        for row in rows
    ]  # fmt: skip
    header = (
        "data", "rows", "kernel, ms", "V cold, ms", "V and gradient cold, ms", "V warm, ms", "V and gradient warm, ms",
        "share of the gradient, cold",
    )  # fmt: skip
    return common.markdown(header, lines)


def main() -> None:
    table = common.read(HERE / "results.json")
    for part in (errors, codings, small, f_measure, table3, cost):
        common.insert(HERE / "README.md", part.__name__, part(table))


if __name__ == "__main__":
    main()
