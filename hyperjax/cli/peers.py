"""scikit-learn's SVC or SVR with its own defaults on the same rows, folds and scaling."""

import importlib.util
import threading
import time
from typing import Any

import numpy as np

from . import scores
from .job import Job

__all__ = ["default_machine", "preload"]

MANY = 20_000
"""Training rows from which on the comparison would take longer than the search."""


def preload(job: Job) -> None:
    """Import scikit-learn, about a second, beside a search that compiles."""
    if _wanted(job):
        threading.Thread(target=importlib.import_module, args=("sklearn.svm",), daemon=True).start()


def _wanted(job: Job) -> bool:
    return len(job.y) < MANY and importlib.util.find_spec("sklearn") is not None


def default_machine(job: Job) -> dict[str, Any] | None:
    """Scores and seconds of the default estimator; None without scikit-learn, or where it would take too long."""
    if not _wanted(job):
        return None
    from sklearn.svm import SVC, SVR

    make = SVC if job.task == "classification" else SVR
    begun = time.perf_counter()
    outputs = _cross_validated(make, job)
    tested = np.asarray(job.folds.test).reshape(job.folds.repeats, -1, len(job.y)).sum(axis=1) > 0
    found: dict[str, Any] = {"name": make.__name__, "validation": scores.of(outputs, job.y, job.task, tested=tested)}
    found |= {"validation_outputs": outputs, "test_outputs": None, "test": None}
    if job.test is not None:
        X, y = job.test
        found["test_outputs"] = _outputs(make().fit(job.X, job.y), X)
        found["test"] = scores.of(found["test_outputs"], y, job.task)
    return found | {"seconds": time.perf_counter() - begun}


def _cross_validated(make: Any, job: Job) -> np.ndarray:
    """Held-out outputs, (n,) or (R, n)."""
    train, test = np.asarray(job.folds.train) > 0, np.asarray(job.folds.test) > 0
    out = np.zeros((job.folds.repeats, len(job.y)))
    block = len(train) // job.folds.repeats
    for t, (inside, outside) in enumerate(zip(train, test, strict=True)):
        out[t // block, outside] = _outputs(make().fit(job.X[inside], job.y[inside]), job.X[outside])
    return out if job.folds.repeats > 1 else out[0]


def _outputs(machine: Any, X: np.ndarray) -> np.ndarray:
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)
