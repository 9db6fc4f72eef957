"""What `hyperjax tune` was asked for, as the objects of the library: data, problem, folds, criterion."""

import argparse
import dataclasses
from typing import Any

import numpy as np

from .. import criteria, kernels, losses
from .. import folds as splits
from ..kernels.base import Kernel
from ..problem import Problem
from . import data, scaling
from .failures import DATA, USAGE, Failure, blamed_on
from .search import takes

__all__ = ["Job", "prepare", "rows_of"]

BIAS = {"yes": True, "no": False, "regularised": "regularised"}


@dataclasses.dataclass(frozen=True)
class Job:
    """One run: scaled training rows with their folds, the problem, and the test rows, scaled alike."""

    problem: Problem
    criterion: Any
    """None where the method chooses."""
    folds: splits.Folds
    scaling: scaling.Scaling
    raw: data.Rows
    """The training rows as they were read."""
    X: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None
    task: str
    classes: list[Any] | None
    source: str


def prepare(options: argparse.Namespace) -> Job:
    """Read the data and build everything; a Failure names the option that does not fit."""
    with blamed_on(USAGE):
        usual = takes(options.method)
        kernel = _kernel(options.kernel) if hasattr(options, "kernel") else usual.problem().kernel
        loss = _one(losses, options.loss) if hasattr(options, "loss") else None
        criterion = _one(criteria, options.criterion) if hasattr(options, "criterion") else None
        bias = BIAS[options.bias] if hasattr(options, "bias") else usual.problem().bias
    rows = rows_of(options.data, getattr(options, "target", None), getattr(options, "groups", None))
    if rows.y is None:
        raise Failure(DATA, f"{options.data} has no target to learn")
    task = data.task_of(rows.y) if options.task == "auto" else options.task
    y, classes = _targets(rows.y, task, getattr(options, "positive", None))
    if loss is None:
        loss = _suitable(usual, task)
    if loss.labels and task == "regression":
        raise Failure(USAGE, f"the loss {type(loss).__name__} is one of two classes, and the target is a number")
    if criterion is None and options.method == "tune":
        criterion = criteria.by_name("smooth_error" if task == "classification" else "squared_error")
    training, test = _divide(options, rows, y, task, classes)
    raw, y = rows.take(training), y[training]
    if classes is not None and len(np.unique(y)) < 2:
        raise Failure(DATA, "the training rows are of one class only: a classifier needs two")
    with blamed_on(USAGE):
        folds = divide(y, raw.groups, task, options)
    fitted = scaling.fit(options.scale, raw.X)
    problem = Problem(loss=loss, kernel=kernel, bias=bias)
    scaled = None if test is None else (fitted(test[0]), test[1])
    X = fitted(raw.X)
    return Job(problem, criterion, folds, fitted, raw, X, y, scaled, task, classes, str(options.data))


def rows_of(source: Any, target: str | None, groups: str | None = None) -> data.Rows:
    """The rows of a file or data set; what is wrong with it is the data's fault."""
    with blamed_on(DATA):
        return data.read(source, target, groups)


def divide(y: np.ndarray, groups: np.ndarray | None, task: str, options: argparse.Namespace) -> splits.Folds:
    """The folds the options ask for: whole groups, else the classes spread evenly, else at random."""
    k, repeats, seed = options.folds, options.repeats, options.seed
    if groups is None:
        if task == "classification":
            rarest = min(np.sum(y > 0), np.sum(y < 0))
            if rarest < k:
                raise ValueError(f"--folds {k}: the rarer class has {rarest} training rows, every fold needs one")
            return splits.stratified(y, k, seed=seed, repeats=repeats)
        return splits.kfold(len(y), k, seed=seed, repeats=repeats)
    if repeats > 1:
        raise ValueError("--repeats does not go with --groups: leave one of them out")
    return splits.groups(groups, k, seed=seed)


def _kernel(names: str) -> Kernel:
    found = [_one(kernels, name) for name in names.split(",")]
    if any(kernel.needs_all_rows() for kernel in found):
        raise ValueError("--kernel precomputed: the command line reads features; use hyperjax.tune in Python")
    return found[0] if len(found) == 1 else kernels.Weighted(found)


def _suitable(usual: Any, task: str) -> Any:
    """The first loss of the method that suits the task, else the usual one."""
    fitting = [kind for kind in usual.losses if kind.labels == (task == "classification")]
    return fitting[0]() if fitting else losses.by_name("hinge" if task == "classification" else "epsilon_insensitive")


def _one(room: Any, text: str) -> Any:
    name, fields = named(text)
    return room.by_name(name, **fields)


def _targets(y: np.ndarray, task: str, positive: str | None) -> tuple[np.ndarray, list[Any] | None]:
    if task == "classification":
        return data.encode(y, positive)
    if positive is not None:
        raise Failure(USAGE, "--positive names a class, and the target is a number: add --task classification")
    return data.numbers(y, "the data"), None


def _divide(
    options: argparse.Namespace, rows: data.Rows, y: np.ndarray, task: str, classes: list[Any] | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Training rows by number; raw test rows with their targets."""
    everything = np.arange(len(y))
    if hasattr(options, "test_fraction"):
        training, test = data.split(rows, y, options.test_fraction, task, options.seed)
        return training, (rows.X[test], y[test])
    source = getattr(options, "test", options.data)
    if hasattr(options, "test"):
        with blamed_on(DATA):
            kept = data.read_as(rows.layout, options.test, getattr(options, "target", None))
    else:
        kept = rows.test
    if kept is None:
        return everything, None
    if kept.y is None:
        raise Failure(DATA, f"{source} has no target to compare with")
    return everything, (kept.X, data.numbers(kept.y, source) if classes is None else data.signs(kept.y, classes))


def named(text: str) -> tuple[str, dict[str, Any]]:
    """`f_measure:threshold=tuned` as a name and the fields of its class."""
    name, *settings = text.strip().split(":")
    pairs = [setting.partition("=") for setting in settings]
    if any(not field or not equals for field, equals, _ in pairs):
        raise ValueError(f"{text!r}: write NAME or NAME:FIELD=VALUE")
    return name, {field.strip(): _value(value.strip()) for field, _, value in pairs}


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
