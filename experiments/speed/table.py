"""Facts into lines: the value of a row, whether it is what was asked for, and the table as text and Markdown."""

from typing import Any

import numpy as np

from experiments import common
from experiments.speed.cells import Cell, Row, everything

AT_LEAST = ("x",)
EXCESS = 1e-5
"""Relative difference of objectives that counts as none."""
MARKS = {True: "green", False: "RED", None: "-"}


def finished(cell: Cell, row: Row, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a row with its description, value and mark."""
    out = {
        "cell": cell.name, "key": row.key, "work": row.work, "peer": row.peer, "unit": row.unit,
        "reach": row.reach, "earlier": row.earlier, "status": "measured", **facts,
    }  # fmt: skip
    mine, theirs = _median(facts.get("ours")), _median(facts.get("theirs"))
    if "value" not in out:
        out["value"] = None if mine is None else mine if row.unit == "s" else theirs and theirs / mine
    if facts.get("first") is not None and mine is not None:
        out["compile"] = max(facts["first"] - mine, 0.0)
    out["short"] = shortcomings(out)
    aimless = row.reach is None and row.earlier is None
    out["green"] = None if aimless or out["value"] is None else not out["short"]
    return out


def missing(cell: Cell, status: str) -> list[dict[str, Any]]:
    """The rows of a cell that was not measured."""
    return [
        {"cell": cell.name, "key": row.key, "work": row.work, "peer": row.peer, "unit": row.unit, "reach": row.reach,
         "earlier": row.earlier, "status": status, "green": None, "value": None}
        for row in cell.rows
    ]  # fmt: skip


def shortcomings(row: dict[str, Any]) -> list[str]:
    """Why a row is not green: too slow, or an answer that is worse than the peer's."""
    out = []
    target = row["earlier"] if row["reach"] is None else row["reach"]
    if target is not None and row["value"] is not None and not meets(row, target):
        out.append("value")
    if row.get("gap") is not None and row["gap"] > row["peer_gap"]:
        out.append("gap")
    if row.get("objective_excess") is not None and row["objective_excess"] > EXCESS:
        out.append("objective")
    mine, theirs = row.get("score"), row.get("peer_score")
    if mine and theirs and np.mean(mine[: len(theirs)]) > np.mean(theirs) + row["margin"]:
        out.append("score")
    return out


def meets(row: dict[str, Any], target: float) -> bool:
    """Whether the value reaches a target."""
    return row["value"] >= target if row["unit"] in AT_LEAST else row["value"] <= target


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the order of the cells as they are written down; those that no cell makes any more are left out."""
    found = {(row["cell"], row["key"]): row for row in rows}
    cells = everything(sort=False)
    return [found[cell.name, row.key] for cell in cells for row in cell.rows if (cell.name, row.key) in found]


def line(row: dict[str, Any]) -> list[str]:
    """The columns of a row."""
    ours, theirs = row.get("ours"), row.get("theirs")
    spread = f"{min(ours):.3g}..{max(ours):.3g}" if ours else ""
    reason = ", ".join(item for item in row.get("short", []) if item != "value")
    mark = row["status"].partition("\n")[0][:60]
    if row["status"] == "measured":
        mark = MARKS[row["green"]] + (f" ({reason})" if reason else "") + (", cut short" if "cut" in row else "")
    return [
        row["work"],
        row["peer"] or "-",
        _seconds(ours),
        spread,
        _seconds(theirs) + (f" ({len(theirs)})" if theirs and len(theirs) < 5 else ""),
        "-" if row.get("value") is None else _value(row["value"], row["unit"]),
        "-" if row["reach"] is None else _target(row["reach"], row["unit"]),
        "-" if row["earlier"] is None else _target(row["earlier"], row["unit"]),
        mark,
        _or_dash(row.get("compile"), ".1f"),
        _quality(row),
        _or_dash(row.get("memory") and row["memory"] / 1e9, ".2f"),
    ]


HEAD = (
    "work", "peer", "ours, s", "spread", "peer, s", "ratio", "target", "earlier", "mark", "compile, s",
    "gap or score: ours / peer", "GB",
)  # fmt: skip


def text(rows: list[dict[str, Any]]) -> str:
    """The table in aligned columns, and how much of it is green."""
    lines = [list(HEAD), *map(line, rows)]
    widths = [max(len(each[i]) for each in lines) for i in range(len(HEAD))]
    body = "\n".join("  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)) for each in lines)
    return f"{body}\n\n{summary(rows)}"


def summary(rows: list[dict[str, Any]]) -> str:
    """Counts of marks."""
    counts = {mark: sum(row["green"] is mark for row in rows) for mark in (True, False)}
    rest = len([row for row in rows if row["status"] != "measured"])
    return f"{counts[True]} green, {counts[False]} red, {rest} not measured, {len(rows)} rows"


def markdown(rows: list[dict[str, Any]]) -> str:
    return common.markdown(HEAD, [line(row) for row in rows]) + f"\n\n{summary(rows)}"


def _median(seconds: Any) -> float | None:
    return float(np.median(seconds)) if seconds else None


def _seconds(seconds: Any) -> str:
    return f"{np.median(seconds):.3g}" if seconds else "-"


def _or_dash(value: Any, form: str) -> str:
    return format(value, form) if value else "-"


def _value(value: float, unit: str) -> str:
    return {"x": f"{value:.2f} x", "s": f"{value:.2f} s", "GB": f"{value:.2f} GB"}.get(unit, f"{value:.3f}")


def _target(value: float, unit: str) -> str:
    sign = ">=" if unit in AT_LEAST else "<="
    return f"{sign} {value:.3g}"


def _quality(row: dict[str, Any]) -> str:
    if row.get("gap") is not None:
        return f"{row['gap']:.1e} / {row['peer_gap']:.1e}"
    if row.get("peer_score"):
        return f"{np.mean(row['score']):.2f} / {np.mean(row['peer_score']):.2f}"
    if row.get("difference"):
        return f"results differ by {max(row['difference']):.1e}"
    return "-"
