"""What a run found, as a dict for report.json and as a table for the terminal."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..coordinates import dotted, flatten
from ..files import replacing
from ..plugins import snake
from ..results import Code
from .job import Job
from .process import version

__all__ = ["hyperparameters", "plain", "table", "of", "write"]

FORMAT = "hyperjax.report"
VERSION = 1
SHOWN = 8
"""Entries of a vector of hyperparameters that the table prints; the report holds all."""


def of(job: Job, options: dict[str, Any], result: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The report: everything in plain JSON values."""
    solution = result.solution
    return plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "versions": _versions(),
            "options": options,
            "data": {
                "source": job.source,
                "rows": len(job.y),
                "columns": job.X.shape[1],
                "test_rows": 0 if job.test is None else len(job.test[1]),
                "task": job.task,
                "classes": job.classes,
                "features": job.raw.features,
                "target": job.raw.target,
            },
            "model": {
                "loss": snake(type(job.problem.loss).__name__),
                "kernel": describe(job.problem.kernel),
                "bias": job.problem.bias,
                "scaling": job.scaling.kind,
                "dtype": str(solution.z.dtype),
            },
            "hyperparameters": hyperparameters(result),
            "folds": {"count": job.folds.n_folds, "repeats": job.folds.repeats, "grouped": job.raw.groups is not None},
            "criterion": criterion_name(job),
            **found,
            "search": {
                "method": options.get("method", "tune"),
                "reason": result.reason,
                "converged": bool(result.converged),
                "steps": len(result.history),
                "evaluations": int(result.n_evaluations),
            },
            "certificate": {
                "kkt": solution.kkt,
                "gap": solution.gap,
                "code": Code(int(solution.code)).name,
                "support_vectors": int(np.sum(np.asarray(solution.z) != 0)),
            },
            "history": result.history.to_dict(),
        }
    )


def hyperparameters(result: Any) -> list[dict[str, Any]]:
    """One entry a leaf: its dotted path, start and tuned value, and whether it ended on a bound."""
    start = dict(flatten(result.start))
    rows = []
    parts = {part: result.hp[part] for part in ("loss", "kernel", "criterion") if part in result.hp}
    for path, value in flatten(parts):
        name = dotted(path)
        edge = any(bound == name or bound.startswith(name + "[") for bound in result.at_bounds)
        rows.append({"name": name, "start": start.get(path), "tuned": value, "at_bound": edge})
    return rows


def describe(kernel: Any) -> Any:
    """The name of a kernel, or the names of its parts."""
    parts = getattr(kernel, "kernels", None)
    name = snake(type(kernel).__name__)
    return name if parts is None else {name: [describe(part) for part in parts]}


def criterion_name(job: Job) -> str:
    """The criterion as it is typed."""
    return snake(type(job.criterion).__name__)


def plain(value: Any) -> Any:
    """A tree of plain JSON values; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(name): plain(inside) for name, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inside) for inside in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def write(report: dict[str, Any], path: Path) -> None:
    """The report as a file; an older one is replaced whole."""
    with replacing(path) as file:
        file.write((json.dumps(report, indent=1, allow_nan=False) + "\n").encode())


def table(report: dict[str, Any]) -> str:
    """The final table."""
    data, model, seconds = report["data"], report["model"], report["seconds"]
    kernel = model["kernel"]
    kernel = kernel if isinstance(kernel, str) else " + ".join(map(str, next(iter(kernel.values()))))
    test = f", {data['test_rows']} test rows" if data["test_rows"] else ""
    lines = [
        f"{data['source']}: {data['rows']} rows, {data['columns']} columns{test}",
        f"{model['loss']}, {kernel} kernel, columns scaled: {model['scaling']}",
        "",
        *_hyperparameter_lines(report["hyperparameters"], data["features"]),
        "",
        *_score_lines(report),
        "",
        f"{_outcome(report)} {seconds['search']:.2f} s of {seconds['total']:.2f} s in all",
    ]
    return "\n".join(lines)


def _hyperparameter_lines(rows: list[dict[str, Any]], features: list[str] | None) -> list[str]:
    lines = [("hyperparameter", "start", "tuned", "")]
    for row in rows:
        note = "at its bound" if row["at_bound"] else ""
        if not isinstance(row["tuned"], list):
            lines.append((row["name"], _number(row["start"]), _number(row["tuned"]), note))
            continue
        tuned, start = np.asarray(row["tuned"], float), np.asarray(row["start"], float)
        order = np.argsort(-tuned, kind="stable") if tuned.size > SHOWN else np.arange(tuned.size)
        named = features if features is not None and len(features) == tuned.size else None
        for j in order[:SHOWN]:
            lines.append((f"{row['name']}[{j}]", _number(start[j]), _number(tuned[j]), named[j] if named else ""))
        rest = tuned[order[SHOWN:]]
        if rest.size:
            low, high = _number(rest.min()), _number(rest.max())
            lines.append((f"  {rest.size} smaller ones", "", f"{low} .. {high}", note))
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    return [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in lines]


def _score_lines(report: dict[str, Any]) -> list[str]:
    peer, criterion = report["peer"], report["criterion"]
    lines = [["", "start", "tuned", f"scikit-learn {peer['name']}" if peer else ""]]
    for part in ("validation", "test"):
        if not report[part]:
            continue
        columns = [report[part].get("start", {}), report[part]["tuned"], peer[part] if peer else {}]
        shown: list[float] = []
        for name in (criterion, "error", "mse", "r2", "hard"):
            values = [column.get(name) for column in columns]
            # the hard counterpart is often one of the usual errors
            if values[1] is not None and not any(math.isclose(values[1], other, rel_tol=1e-6) for other in shown):
                shown.append(values[1])
                label = f"{criterion}, hard" if name == "hard" else name
                lines.append([f"{part} {label}", *map(_number, values[:2]), _number(values[2]) if peer else ""])
    if report.get("nested"):
        nested = report["nested"]
        known = nested["value"] if nested["hard"] is None else nested["hard"]
        spread = _number(nested["standard_error"])
        lines.append([f"nested estimate (standard error {spread})", "", _number(known), ""])
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    return [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in lines]


def _outcome(report: dict[str, Any]) -> str:
    ends = {
        "tolerance": "no more to gain",
        "gradient": "the gradient vanished",
        "max_steps": "stopped at --max-steps",
        "max_seconds": "stopped at --max-seconds",
        "interrupted": "interrupted, the best so far",
        "no_progress": "no step led further down",
    }
    search = report["search"]
    reason = ends.get(search["reason"], search["reason"])
    return f"{search['steps']} steps, {search['evaluations']} solves of all folds, {reason};"


def _number(value: Any) -> str:
    return "-" if value is None else f"{float(value):.4g}"


def _versions() -> dict[str, str]:
    loaded = {name: sys.modules[name].__version__ for name in ("jax", "numpy", "sklearn") if name in sys.modules}
    return {"hyperjax": version(), "python": sys.version.split()[0], **loaded}
