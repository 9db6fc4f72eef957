"""The tables of experiments/README.md, from the results of the experiments: python -m experiments.report"""

from pathlib import Path
from typing import Any

from experiments import common
from experiments.chu import report as chu
from experiments.jiang_siddiqui import report as jiang_siddiqui
from experiments.keerthi import report as keerthi
from experiments.klatzer_pock import report as klatzer_pock
from experiments.moore import report as moore

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


def of_keerthi(table: dict[str, Any]) -> str:
    """Test error of one width and of one a feature, and the points for two hyperparameters."""
    lines = []
    for (data, n), printed in keerthi.PAPER.items():
        line: list[Any] = [data, f"{n:,}"]
        for method, part in (("grid", "grid"), ("grad", "table1"), ("ard", "table1")):
            rows = common.rows_of(table, part, data=data, rows=n, method=method)
            line += [f"{printed[method][0]:.2f}" if method in printed else "-"]
            line += [keerthi.spread([row["error"] for row in rows]) if rows else "-"]
            if method == "grad":
                line += [", ".join(str(row["evaluations"]) for row in rows) or "-"]
        for method in ("tune", "tune-ard"):
            rows = common.rows_of(table, "tune", data=data, rows=n, method=method)
            line += [keerthi.spread([row["error"] for row in rows]) if rows else "-"]
        if any(common.rows_of(table, part, data=data, rows=n) for part in ("grid", "table1", "tune")):
            lines.append(line)
    header = (
        "data", "rows", "grid: paper", "ours", "one width: paper", "ours", "our points", "one a feature: paper", "ours",
        "tune", "tune, one a feature",
    )  # fmt: skip
    return common.markdown(header, lines)


def of_klatzer_pock(table: dict[str, Any]) -> str:
    """Test error of the Gaussian machines."""
    lines = []
    for data, printed in klatzer_pock.PAPER.items():
        line: list[Any] = [data]
        for method, paper in list(zip(klatzer_pock.METHODS, printed, strict=True))[4:]:
            rows = common.rows_of(table, "table1", data=data, method=method)
            line += [f"{paper[1]:.1f}", klatzer_pock.spread([row["test"] for row in rows]) if rows else "-"]
        lines.append(line)
    header = (
        "data", "zero-one: paper", "ours", "hinge: paper", "ours", "squared: paper", "ours", "grid: paper", "ours",
    )  # fmt: skip
    return common.markdown(header, lines)


def of_moore(table: dict[str, Any]) -> str:
    """Test error and seconds of the searches by rows, without groups and with five."""
    lines = []
    for part, names in (("table3", ("esol", "bbbp")), ("table4", ("synthetic",))):
        for data in names:
            for n in sorted({row["rows"] for row in common.rows_of(table, part, data=data)}):
                for groups in (1, 5):
                    found = [
                        moore.cell(common.rows_of(table, part, data=data, rows=n, groups=groups, method=method))
                        for method in ("impgrad", "pbp", "tune")
                    ]
                    lines.append([data, n, groups, *(f"{error}, {time} s" for error, time in found)])
    return common.markdown(("data", "rows", "groups", "ImpGrad", "PBP", "tune"), lines)


PAPERS = {
    "jiang_siddiqui": of_jiang_siddiqui,
    "chu": of_chu,
    "keerthi": of_keerthi,
    "klatzer_pock": of_klatzer_pock,
    "moore": of_moore,
}


def main() -> None:
    for name, make in PAPERS.items():
        common.insert(HERE / "README.md", name, make(common.read(HERE / name / "results.json")))


if __name__ == "__main__":
    main()
