"""The tables of README.md from results.json: python -m experiments.moore.report"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments import common
from experiments.moore import paper
from experiments.moore.data import ADDED, NOISE
from experiments.moore.run import OUTPUT

README = Path(__file__).with_name("README.md")
METHODS = ("grid fine", "grid coarse", "impgrad", "pbp", "pbp published", "tune")
NEAREST = {100: 100, 200: 200, 800: 1000, 1000: 1000, 1600: 2000, 5000: 5000, 10000: 10000}
"""Our numbers of rows and the paper's."""


def errors(rows: Iterable[dict[str, Any]]) -> np.ndarray:
    """Test errors in the order of their seeds."""
    return np.asarray([row["test_mse"] for row in sorted(rows, key=lambda row: row["seed"])])


def seconds(rows: Iterable[dict[str, Any]]) -> float:
    """Median CPU seconds without compilation."""
    return float(np.median([row["cpu"] for row in rows if row["warm"]] or [row["cpu"] for row in rows]))


def cell(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """Mean and deviation of the error, and seconds."""
    if not rows:
        return "-", "-"
    found = errors(rows)
    spread = f" ± {found.std(ddof=1):.3f}" if len(found) > 1 else ""
    return f"{found.mean():.3f}{spread}", f"{seconds(rows):.3g}"


def table(results: Any, part: str, theirs: dict[tuple[int, str, int], tuple[float, float, float]]) -> str:
    """Ours beside the paper's, one row a size and method."""
    out = []
    for data in ("esol", "bbbp") if part == "table3" else ("synthetic",):
        for n in sorted({row["rows"] for row in common.rows_of(results, part, data=data)}):
            for method in METHODS:
                line = [data, n, method]
                for groups in (1, 5):
                    rows = common.rows_of(results, part, data=data, rows=n, groups=groups, method=method)
                    error, time = cell(rows)
                    known = theirs.get((NEAREST[n], method, groups))
                    line += [
                        error,
                        time,
                        f"{known[0]:.3f} ± {known[1]:.3f}" if known else "-",
                        known[2] if known else "-",
                    ]
                if set(line[3:]) != {"-"}:
                    out.append(line)
    head = ["data", "rows", "method"]
    for model in ("SVR", "multiSVR"):
        head += [f"{model}: ours", "CPU s", "paper", "s"]
    return common.markdown(head, out)


def compare(mine: np.ndarray, other: np.ndarray) -> str:
    """The mean difference over shared seeds with its standard error."""
    k = min(len(mine), len(other))
    gap = mine[:k] - other[:k]
    error = gap.std(ddof=1) / np.sqrt(k) if k > 1 else 0.0
    return f"{gap.mean():+.4f} ± {error:.4f}"


def orderings(results: Any) -> str:
    """The claims of the paper and of `tune`, cell by cell."""
    out = []
    for part in ("table3", "table4"):
        cells = {(row["data"], row["rows"], row["groups"]) for row in common.rows_of(results, part)}
        for data, n, groups in sorted(cells):
            found = {
                name: common.rows_of(results, part, data=data, rows=n, groups=groups, method=name)
                for name in ("impgrad", "pbp", "tune")
            }
            if not all(found.values()):
                continue
            error, time = ({name: f(rows) for name, rows in found.items()} for f in (errors, seconds))
            better = min(("impgrad", "pbp"), key=lambda name: error[name].mean())
            best = error[better]
            spread = best.std(ddof=1) / np.sqrt(len(best)) if len(best) > 1 else 0.0
            good = error["tune"].mean() <= best.mean() + spread
            out.append(
                [
                    data, n, "SVR" if groups == 1 else "multiSVR", compare(error["pbp"], error["impgrad"]),
                    f"{time['pbp'] / time['impgrad']:.1f}", better, compare(error["tune"], error[better]),
                    "yes" if good else "no", f"{time['tune'] / min(time['impgrad'], time['pbp']):.2f}",
                ]
            )  # fmt: skip
    head = [
        "data",
        "rows",
        "model",
        "PBP - ImpGrad",
        "time PBP / ImpGrad",
        "better",
        "tune - better",
        "within 1 s.e. of it",
    ]
    return common.markdown([*head, "time tune / faster"], out)


def recovered(results: Any) -> str:
    """C_g and eps_g (medians over seeds) beside the noise of each group, largest sizes."""
    out = []
    for part, data, n, noise in (("table4", "synthetic", 10000, NOISE), ("table3", "esol", 800, ADDED)):
        for method in ("impgrad", "pbp", "tune"):
            rows = common.rows_of(results, part, data=data, rows=n, groups=5, method=method)
            if rows:
                C, eps = (np.median([row[name] for row in rows], axis=0) for name in ("C", "eps"))
                pairs = [f"{c:.3g}, {e:.2g}" for c, e in zip(C, eps, strict=True)]
                out.append(
                    [f"{data} {n}", method, *pairs, sum(row["C"][0] > row["C"][3] > row["C"][4] for row in rows)]
                )
                out[-1][-1] = f"{out[-1][-1]} of {len(rows)}"
        out.append([f"{data}: noise", "", *(f"{level:g}" for level in noise), ""])
    return common.markdown(["data", "method", *(f"C_{g}, eps_{g}" for g in range(1, 6)), "C_1 > C_4 > C_5"], out)


def small(results: Any) -> str:
    """Figures 4 and 5 as numbers."""
    out = []
    for data in dict.fromkeys(row["data"] for row in common.rows_of(results, "figure4")):
        for method in METHODS:
            rows = common.rows_of(results, "figure4", data=data, method=method)
            out.append([data, rows[0]["rows"] if rows else "", method, *cell(rows)])
    return common.markdown(["data", "modelling rows", "method", "test error", "CPU s"], out)


def scaling(results: Any) -> str:
    """Milliseconds of an evaluation, and what doubling the rows or going from 2 to 10 hyperparameters costs."""
    out, before = [], {}
    for n in sorted({row["rows"] for row in common.rows_of(results, "scaling")}):
        one, five = (
            common.rows_of(results, "scaling", rows=n, groups=groups)[0]["cpu_evaluation"] for groups in (1, 5)
        )
        ratios = [f"{now / before[key]:.2f}" if key in before else "-" for key, now in (("1", one), ("5", five))]
        out.append([n, f"{1e3 * one:.2f}", ratios[0], f"{1e3 * five:.2f}", ratios[1], f"{five / one:.2f}"])
        before = {"1": one, "5": five}
    return common.markdown(["rows", "SVR, ms", "to half the rows", "multiSVR, ms", "to half", "10 to 2"], out)


def main() -> None:
    """Put every table into its place in README.md."""
    results = common.read(OUTPUT)
    common.insert(README, "table3", table(results, "table3", paper.TABLE3))
    common.insert(README, "table4", table(results, "table4", paper.TABLE4))
    for part in (orderings, recovered, small, scaling):
        common.insert(README, part.__name__, part(results))


if __name__ == "__main__":
    main()
