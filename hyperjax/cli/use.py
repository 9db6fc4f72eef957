"""`hyperjax predict`, `score`, `export`, `info`: what is done with a model file."""

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import data
from .failures import DATA, USAGE, Failure, blamed_on, no_model
from .process import settings

__all__ = ["export", "info", "predict", "score"]


def predict(options: argparse.Namespace) -> None:
    """One line a row: the label or value; with --probabilities or --decision the number."""
    with _opened(options) as model:
        if options.probabilities and model.classes is None:
            raise Failure(USAGE, "--probabilities: this model is a regression")
        outputs, _ = _outputs(model, options)
        if options.probabilities:
            values: Any = model.probabilities(outputs)
        else:
            values = outputs if options.decision else model.predict(outputs)
    lines = "".join(f"{_text(value)}\n" for value in values)
    if hasattr(options, "out"):
        from ..files import replacing

        with blamed_on(USAGE), replacing(options.out) as file:
            file.write(lines.encode())
    else:
        sys.stdout.write(lines)
        sys.stdout.flush()


def score(options: argparse.Namespace) -> None:
    """The errors of a model on labelled rows."""
    with _opened(options) as model:
        from .. import criteria
        from . import scores
        from .job import named

        outputs, rows = _outputs(model, options)
        if rows.y is None:
            raise Failure(DATA, f"{options.data} has no column of labels; name it with --target, or use predict")
        y = data.numbers(rows.y, options.data) if model.classes is None else data.signs(rows.y, model.classes)
        found = scores.of(outputs, y, model.task, model.threshold)
        name, fields = named(model.criterion)
        criterion = criteria.by_name(name, **fields)
        own = criterion.init(y)
        hp = {"criterion": {**own, "threshold": model.threshold} if "threshold" in own else own}
        hard = scores.judged(criterion, name, outputs, y, None, hp)["hard"]
    if not any(math.isclose(hard, value, rel_tol=1e-6) for value in found.values()):
        found[name] = hard
    found = {"rows": len(y), **found}
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name:<12}{value:>12.6g}" for name, value in found.items()))


def export(options: argparse.Namespace) -> None:
    """A text model that svm-predict reads, and the scaling as a range file of svm-scale."""
    with _opened(options) as model, blamed_on(USAGE):
        from .exchange import write_libsvm

        print(write_libsvm(model, options.out))


def info(options: argparse.Namespace) -> None:
    """What the file holds."""
    with _opened(options) as model:
        from ..coordinates import dotted, flatten
        from ..results import Code
        from .report import describe, plain, snake

        solution = model.solution
        found = plain(
            {
                "written by": f"hyperjax {model.library}",
                "task": model.task,
                "classes": model.classes,
                "target": model.columns.get("target"),
                "columns": len(model.scaling.centre),
                "features": model.features,
                "scaling": model.scaling.kind,
                "loss": snake(type(solution.problem.loss).__name__),
                "kernel": describe(solution.problem.kernel),
                "bias": solution.problem.bias,
                **{dotted(path): value for path, value in flatten(solution.hp)},
                "criterion": model.criterion,
                "threshold": model.threshold,
                "probabilities": model.sigmoid is not None,
                "support vectors": int(np.sum(np.asarray(solution.z) != 0)),
                "code": Code(int(solution.code)).name,
                "kkt": float(solution.kkt),
            }
        )
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if value is not None:
            print(f"{name:<18}{_short(value)}")


@contextlib.contextmanager
def _opened(options: argparse.Namespace) -> Iterator[Any]:
    """The model, in the float type it was trained in."""
    if not options.model.is_file():
        raise no_model(options.model)
    if hasattr(options, "data"):
        data.present(options.data)
    from .model import is_float64, load

    with settings(is_float64(options.model)):
        yield load(options.model)


def _outputs(model: Any, options: argparse.Namespace) -> tuple[np.ndarray, Any]:
    layout = data.Layout(len(model.scaling.centre), model.features, **model.columns)
    with blamed_on(DATA):
        rows = data.read_as(layout, options.data, getattr(options, "target", None))
        return model.decision(rows.X), rows


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(_short, value[:6]))
        return shown + (f", .. ({len(value)})" if len(value) > 6 else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)

