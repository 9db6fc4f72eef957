"""The tables of the README, from results.json: python -m experiments.chu.report"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import common
from experiments.chu.data import FOLDS

HERE = Path(__file__).parent
LOOSE, TIGHT = 1e-2, 1e-6
PAPER2 = {
    "madelon": {-4: (2.51e-03, -1.09e-01, 4.57e-02), 0: (2.62e-04, -1.45e00, 5.72e-02), 4: (0.0, -1.29e01, 5.82e-02),
                8: (0.0, -1.17e02, 5.83e-02)},
    "ijcnn1": {-4: (1.30e01, -4.55e01, 5.85e01), 0: (1.31e01, -1.90e02, 2.03e02), 4: (1.50e00, -2.64e02, 2.66e02),
               8: (9.86e-02, -2.71e02, 2.71e02)},
}  # fmt: skip
"""Table 2 as printed, for the two sets that are here as well: primal, dual, |w|^2 / 2."""
PAPER3 = {1: (92.60, 92.66), 3: (92.69, 92.80), 5: (92.59, 92.56), 7: (92.34, 94.27), 9: (92.21, 98.01)}
"""Table 3 as printed, for yahoo-japan."""


def one(table: dict[str, Any], part: str, **wanted: Any) -> dict[str, Any] | None:
    """The only row of that kind, or None."""
    rows = common.rows_of(table, part, **wanted)
    return rows[0] if rows else None


def before_the_end(row: dict[str, Any]) -> tuple[float, float, float]:
    """(best accuracy of the procedure, its log2 C, log2 of the last C)."""
    last = len(row["log2C"]) - 1 if row["stop"] is None else row["stop"]
    accuracy = row["accuracy"][: last + 1]
    best = int(np.argmax(accuracy))
    return accuracy[best], row["log2C"][best], row["log2C"][last]


def pairs(table: dict[str, Any]) -> list[tuple[dict, dict | None]]:
    """(warm, cold) of every set, loss and solver that was swept loosely."""
    out = []
    for part in ("newton", "dual"):
        for warm in common.rows_of(table, part, warm=True, tol=LOOSE):
            cold = one(table, part, data=warm["data"], loss=warm["loss"], warm=False, tol=LOOSE)
            out.append((warm, cold))
    return out


def sweeps(table: dict[str, Any]) -> str:
    """Ends, best accuracies and the cost with and without warm start, to the same C."""
    lines = []
    for warm, cold in pairs(table):
        accuracy, best, last = before_the_end(warm)
        steps = seconds = "-"
        if cold is not None:
            upto = min(len(cold["log2C"]), len(warm["log2C"]), (warm["stop"] or len(warm["log2C"])) + 1)
            used = [sum(row["products"][:upto]) for row in (warm, cold)]
            steps = f"{sum(warm['iterations'][:upto])} / {sum(cold['iterations'][:upto])}"
            steps += f" ({used[0]} / {used[1]})"
            seconds = f"{warm['seconds'][upto - 1]:.1f} / {cold['seconds'][upto - 1]:.1f}"
            seconds += "" if cold["log2C"][upto - 1] >= last else f" (to 2^{cold['log2C'][upto - 1]:.0f})"
        first, end = warm["log2C"][0], f"{last:.0f}" if warm["stop"] is not None else f"none by {last:.0f}"
        lines.append(
            [
                warm["data"],
                warm["loss"],
                warm["inner"],
                f"{first:.0f}, {end}",
                f"{accuracy:.2f} at {best:.0f}",
                f"{max(warm['accuracy']):.2f}",
                steps,
                seconds,
            ]  # fmt: skip
        )
    header = (
        "data", "loss", "solver", "first, last log2 C", "best accuracy, % at log2 C", "best of the whole range",
        "iterations warm / cold (products)", "seconds warm / cold",
    )  # fmt: skip
    return common.markdown(header, lines)


def peers(table: dict[str, Any]) -> str:
    """LIBLINEAR's -C, with its own folds, and its models on ours."""
    lines = []
    for row in common.rows_of(table, "liblinear"):
        warm = one(table, "newton", data=row["data"], loss=row["loss"], warm=True, tol=LOOSE)
        if warm is None:
            continue
        accuracy, best, _ = before_the_end(warm)
        known = dict(zip(row["our_folds_log2C"], row["our_folds_accuracy"], strict=True))
        near, close = abs(best - row["log2C"]) <= 1.0, abs(accuracy - row["accuracy"]) <= 0.2
        verdict = " and ".join([*(["same C"] if near else []), *(["accuracy"] if close else [])]) or "neither"
        there = warm["accuracy"][warm["log2C"].index(row["log2C"])] if row["log2C"] in warm["log2C"] else np.nan
        lines.append(
            [
                row["data"],
                row["loss"],
                f"{accuracy:.2f} at {best:.0f}",
                f"{row['accuracy']:.2f} at {row['log2C']:.0f}",
                verdict,
                f"{there:.2f}",
                f"{known.get(best, np.nan):.2f}",
                f"{row['seconds']:.1f}",
            ]  # fmt: skip
        )
    header = (
        "data", "loss", "chu, % at log2 C", "LIBLINEAR -C, % at log2 C", "agree in", "ours at its C",
        "LIBLINEAR on our folds at our C", "-C, s",
    )  # fmt: skip
    return common.markdown(header, lines)


def table2(table: dict[str, Any]) -> str:
    """Initial minus optimal objective values, means over the folds."""
    lines = []
    for row in common.rows_of(table, "newton", loss="LR", warm=True, tol=TIGHT):
        for exponent in (-4, 0, 4, 8):
            if exponent not in row["log2C"]:
                continue
            k = row["log2C"].index(exponent)
            ours = [row[name][k] / FOLDS for name in ("primal_away", "dual_away", "half_norm")]
            printed = PAPER2.get(row["data"], {}).get(exponent)
            closer = "-" if ours[0] == ours[1] else "primal" if abs(ours[0]) < abs(ours[1]) else "dual"
            lines.append(
                [row["data"], exponent, *(f"{v:.2e}" for v in ours), closer, "yes" if row["solved"][k] else "no"]
                + [f"{v:.2e}" for v in printed or ()]
                + ["-"] * (0 if printed else 3)
            )
    header = (
        "data", "log2 C", "primal", "dual", "half of norm squared", "closer", "solved to 1e-6", "paper: primal", "dual",
        "half of norm squared",
    )  # fmt: skip
    return common.markdown(header, lines)


def table3(table: dict[str, Any]) -> str:
    """One vector a fold against one for all."""
    names = list(dict.fromkeys(row["data"] for row in common.rows_of(table, "shared")))
    lines = []
    for exponent, printed in PAPER3.items():
        line: list[Any] = [f"2^{exponent}", *(f"{v:.2f}" for v in printed)]
        for name in names:
            for shared in (False, True):
                row = one(table, "shared", data=name, shared=shared)
                known = {} if row is None else dict(zip(row["log2C"], row["accuracy"], strict=True))
                line.append(f"{known[exponent]:.2f}" if exponent in known else "-")
        lines.append(line)
    ours = [f"{name}: {kind}" for name in names for kind in ("5 models", "one model")]
    return common.markdown(["C", "yahoo-japan (paper): 5 models", "one model", *ours], lines)


def sets(table: dict[str, Any]) -> str:
    """What was swept."""
    rows = common.rows_of(table, "data")
    return common.markdown(
        ("data", "rows x columns", "rows of class +1"), [[r["data"], r["shape"], r["positive"]] for r in rows]
    )


def main() -> None:
    table = common.read(HERE / "results.json")
    for name, make in (("sets", sets), ("sweeps", sweeps), ("peers", peers), ("table2", table2), ("table3", table3)):
        common.insert(HERE / "README.md", name, make(table))


if __name__ == "__main__":
    main()
