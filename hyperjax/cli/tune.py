"""`hyperjax tune`: read, search, compare, write."""

import argparse
import contextlib
import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import data
from .failures import INTERRUPTED, OK, UNSOLVED, USAGE, Failure, blamed_on
from .process import settings

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """The command; its exit code."""
    begun = time.perf_counter()
    out = getattr(options, "out", None)
    if options.plots and out is None:
        raise Failure(USAGE, "--plots needs --out DIR to put the pictures in")
    if options.plots:
        _need_matplotlib()
    data.present(options.data, *([options.test] if hasattr(options, "test") else []))
    with settings(options.float64):
        return _run(options, out, begun)


def _run(options: argparse.Namespace, out: Path | None, begun: float) -> int:
    from . import report
    from .job import prepare
    from .peers import Comparison
    from .progress import Line
    from .search import arguments, function, search

    arguments(options, function(options.method))  # complains before any data is read
    job = prepare(options)
    if out is not None:
        with blamed_on(USAGE):
            out.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(Comparison(job, wanted=not options.no_peers)) as comparison:
        line = Line(options.quiet)
        reading = time.perf_counter() - begun
        try:
            result = search(job, options, line)
        finally:
            line.close()
        searching = time.perf_counter() - begun - reading
        job = dataclasses.replace(job, criterion=result.criterion)
        with blamed_on(UNSOLVED):
            result.solution.raise_if_failed()
        interrupted = result.reason == "interrupted"
        found = _scores(job, result, None if interrupted else comparison.result(job))
    if hasattr(options, "nested") and not interrupted:
        from .nested import estimate

        found["nested"] = estimate(job, options)
    total = time.perf_counter() - begun
    found["seconds"] = {"reading": reading, "search": searching, "total": total}
    told = {name: value for name, value in vars(options).items() if name != "run"}
    summary = report.of(job, told, result, found)
    if out is not None:
        _write(job, result, summary, out, options)
    if not options.quiet:
        print(report.table(summary))
        if out is not None:
            print(f"written: {out / 'model.npz'}, {out / 'report.json'}")
    return INTERRUPTED if interrupted else OK


def _scores(job: Any, result: Any, peer: dict[str, Any] | None) -> dict[str, Any]:
    """Validation scores at the start and after tuning, test scores, and those of scikit-learn's default machine."""
    from . import scores
    from .model import threshold_of
    from .report import criterion_name
    from .scores import judged

    name, first = criterion_name(job), result.history[0]
    found: dict[str, Any] = {
        "validation": {
            "start": {name: first["value"], "hard": first["hard"]},
            "tuned": {name: result.value, "hard": result.hard},
        },
        "test": None,
        "nested": None,
        "peer": peer,
    }
    X, y = (None, None) if job.test is None else job.test
    if peer is not None:
        for part, target, folds in (("validation", job.y, job.folds), ("test", y, None)):
            outputs = peer.pop(f"{part}_outputs")
            if outputs is not None:
                peer[part] |= judged(job.criterion, name, outputs, target, folds, result.start)
    if X is not None and y is not None:
        o = np.asarray(result.decision(X.astype(result.solution.X.dtype)), float)
        usual = scores.of(o, y, job.task, threshold_of(result.hp))
        found["test"] = {"tuned": usual | judged(job.criterion, name, o, y, None, result.hp)}
    return found


def _write(job: Any, result: Any, summary: dict[str, Any], out: Path, options: argparse.Namespace) -> None:
    from . import model, report
    from .sigmoid import fitted

    trained = model.Model(
        solution=result.solution,
        scaling=job.scaling,
        task=job.task,
        classes=job.classes,
        features=job.raw.features,
        columns={"target": job.raw.target, "groups": job.raw.groups_column},
        criterion=getattr(options, "criterion", report.criterion_name(job)),
        threshold=model.threshold_of(result.hp),
        sigmoid=fitted(job, result) if options.probabilities else None,
    )
    with blamed_on(USAGE):
        model.save(trained, out / "model.npz")
        report.write(summary, out / "report.json")
    if options.plots:
        from .pictures import draw

        draw(job, result, out)


def _need_matplotlib() -> None:
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise Failure(USAGE, "--plots needs matplotlib: install hyperjax[plots]")

