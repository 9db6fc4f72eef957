"""The tables of the README, from results.json: python -m experiments.klatzer_pock.report"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import common

HERE = Path(__file__).parent
METHODS = ("Lin01loss", "Linhinge", "Linmse", "Lingrid", "Ker01loss", "Kerhinge", "Kermse", "Kergrid")
PAPER = {
    "diabetes": ((24.13, 20.33, 10), (24.13, 20.66, 7), (25.87, 19.67, 8), (24.34, 20.66, 15), (22.17, 18.03, 8),
                 (21.30, 17.70, 26), (18.70, 20.98, 11), (25.00, 19.02, 50)),
    "ionosphere": ((12.86, 8.57, 7), (11.43, 7.86, 5), (16.19, 7.86, 8), (14.29, 8.57, 15), (0.95, 2.85, 17),
                   (2.86, 3.57, 32), (3.81, 2.86, 33), (13.81, 4.29, 50)),
    "heart": ((15.79, 15.0, 8), (14.21, 13.75, 6), (17.37, 15.0, 8), (18.95, 13.75, 15), (15.26, 15.0, 15),
              (14.74, 13.75, 16), (17.89, 13.75, 34), (18.95, 15.0, 50)),
    "seeds": ((6.0, 10.0, 5), (6.0, 10.0, 6), (7.33, 11.67, 11), (9.33, 9.33, 15), (2.0, 8.33, 14), (1.33, 8.33, 15),
              (7.33, 6.67, 23), (10.67, 10.0, 50)),
}  # fmt: skip
"""CV error, test error and trials of table 1: one split each."""
TABLE2 = {"widths mse": (0.67, 3.33, 62), "widths hinge": (0.0, 3.33, 119), "widths 01loss": (2.67, 3.33, 59)}
TABLE3 = {"mse": (0.0, 9.09, 53), "hinge": (8.75, 7.27, 80), "01loss": (2.04, 7.27, 30)}


def spread(values: list[float], digits: int = 1) -> str:
    """Mean, and standard deviation where there are several."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def _line(data: str, method: str, paper: Any, rows: list[dict[str, Any]]) -> list[Any]:
    printed = paper or ("-", "-", "-")
    own = [spread([row[name] for row in rows]) for name in ("cv", "test")] if rows else ["not run", "not run"]
    trials = f"{np.mean([row['trials'] for row in rows]):.0f}" if rows else "-"
    return [data, method, printed[0], own[0], printed[1], own[1], printed[2], trials, len(rows)]


HEADER = ("data", "machine", "paper's CV, %", "our CV, %", "paper's test, %", "our test, %", "paper's trials",
          "our trials", "splits")  # fmt: skip


def table1(table: dict[str, Any]) -> str:
    """CV and test error of the eight machines on four sets."""
    lines = []
    for data, printed in PAPER.items():
        for method, paper in zip(METHODS, printed, strict=True):
            lines.append(_line(data, method, paper, common.rows_of(table, "table1", data=data, method=method)))
    return common.markdown(HEADER, lines)


def others(table: dict[str, Any]) -> str:
    """One width a feature, and several kernels."""
    lines = []
    for part, data, printed in (
        ("table2", "seeds", TABLE2),
        ("table2", "parkinson", {}),
        ("table3", "parkinson", TABLE3),
    ):
        found = common.rows_of(table, part, data=data)
        for method in dict.fromkeys([*printed, *(row["method"] for row in found)]):
            rows = [row for row in found if row["method"] == method]
            lines.append(_line(data, method, printed.get(method), rows))
    return common.markdown(HEADER, lines)


def surrogates(table: dict[str, Any]) -> str:
    """How well the surrogates follow the hard CV error along c: rank correlation and excess at their minimum."""
    from scipy.stats import spearmanr

    rows, lines = common.rows_of(table, "figure3"), []
    paper = {"01loss": (0.84, 0.07), "hinge": (0.73, 0.33), "mse": (-0.43, 1.96)}
    for name, (correlation, excess) in paper.items():
        if rows:
            ranks = [float(spearmanr(row[name], row["cv"]).statistic) for row in rows]
            over = [row["cv"][int(np.argmin(row[name]))] - min(row["cv"]) for row in rows]
            lines.append([name, correlation, f"{np.mean(ranks):.2f}", excess, f"{np.mean(over):.2f}", len(rows)])
    header = ("outer loss", "expected correlation", "ours", "expected excess, points", "ours", "draws")
    return common.markdown(header, lines)


def images(table: dict[str, Any]) -> str:
    """Confusion matrices in percent, rows the true class."""
    out = []
    for row in common.rows_of(table, "images"):
        labels, accuracy = row["labels"], np.mean(np.diag(row["confusion"]))
        head = [f"{row['method']}, mean {accuracy:.2f}, {row['trials']:.0f} trials", *labels]
        body = [[label, *(f"{v:.1f}" for v in line)] for label, line in zip(labels, row["confusion"], strict=True)]
        out.append(common.markdown(head, body))
    return "\n\n".join(out) or "Not run."


def main() -> None:
    table = common.read(HERE / "results.json")
    for name, part in {"table1": table1, "others": others, "surrogates": surrogates, "images": images}.items():
        common.insert(HERE / "README.md", name, part(table))


if __name__ == "__main__":
    main()
