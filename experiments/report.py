"""The tables of experiments/README.md, from the results of the experiments: python -m experiments.report"""

from pathlib import Path
from typing import Any

from experiments import common
from experiments.chu import report as chu
from experiments.jiang_siddiqui import report as jiang_siddiqui

HERE = Path(__file__).parent


def of_jiang_siddiqui(table: dict[str, Any]) -> str:
    """Accuracy without a bias, the paper's beside it."""
    lines = []
    for name, printed in jiang_siddiqui.PAPER.items():
        line: list[Any] = [name]
        for method in jiang_siddiqui.METHODS:
            rows = jiang_siddiqui.found(table, name, "none", method)
            line += [f"{printed[method][0]:.2f}"] if method in printed else []
            line.append(jiang_siddiqui.spread([row["accuracy"] for row in rows]) if rows else "-")
        lines.append(line)
    header = ("data", "bilevel-SGD: paper", "ours", "SGD+DCD: paper", "ours", "exact Jacobian", "tune")
    return common.markdown(header, lines)


def of_chu(table: dict[str, Any]) -> str:
    """The best C of the procedure, LIBLINEAR's own, and what the warm start saves."""
    lines = []
    for warm, cold in chu.pairs(table):
        peer = chu.one(table, "liblinear", data=warm["data"], loss=warm["loss"])
        if warm["inner"] != "newton" or peer is None:
            continue
        accuracy, best, last = chu.before_the_end(warm)
        saved = "-"
        if cold is not None:
            upto = min(len(cold["log2C"]), (warm["stop"] or len(warm["log2C"])) + 1)
            saved = f"{sum(warm['iterations'][:upto])} / {sum(cold['iterations'][:upto])}"
        lines.append(
            [
                warm["data"],
                warm["loss"],
                f"{accuracy:.2f} at {best:.0f}",
                f"{peer['accuracy']:.2f} at {peer['log2C']:.0f}",
                f"{max(warm['accuracy']):.2f}",
                f"{last:.0f}",
                saved,
            ]  # fmt: skip
        )
    header = (
        "data", "loss", "chu, % at log2 C", "LIBLINEAR -C", "best of the whole range", "last log2 C",
        "Newton steps warm / cold",
    )  # fmt: skip
    return common.markdown(header, lines)


def main() -> None:
    for name, make in (("jiang_siddiqui", of_jiang_siddiqui), ("chu", of_chu)):
        common.insert(HERE / "README.md", name, make(common.read(HERE / name / "results.json")))


if __name__ == "__main__":
    main()
