"""scikit-learn's SVC or SVR with its own defaults on the same rows, folds and scaling."""

import importlib.util
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import scores
from .job import Job

__all__ = ["Comparison"]

MANY = 20_000
"""Training rows from which on the comparison would take longer than the search."""
PROGRAM = Path(__file__).with_name("default_machine.py")


class Comparison:
    """The default estimator in a process of its own, which imports scikit-learn while the search runs.

    Where it is not wanted, scikit-learn is missing or the rows are many there is none.
    """

    def __init__(self, job: Job, wanted: bool = True) -> None:
        self.name = "SVC" if job.task == "classification" else "SVR"
        self._process: subprocess.Popen[bytes] | None = None
        if wanted and len(job.y) < MANY and importlib.util.find_spec("sklearn") is not None:
            # -P: its folder is not searched for modules; Ctrl-C is for the search alone
            command = [sys.executable, "-P", "-W", "ignore", str(PROGRAM), self.name]
            pipe = subprocess.PIPE
            try:
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
            except OSError as error:
                self._complain(str(error))

    def _complain(self, reason: str) -> None:
        print(f"no comparison with scikit-learn's {self.name}: {reason[:300]}", file=sys.stderr)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def result(self, job: Job) -> dict[str, Any] | None:
        """Scores and seconds of the default estimator; None where there is no comparison, or where it failed (a line
        on standard error then says why)."""
        if self._process is None:
            return None
        said, complaint = self._process.communicate(_packed(job))
        failed, self._process = self._process.returncode != 0, None
        if failed:
            lines = complaint.decode(errors="replace").strip().splitlines() or ["no message"]
            self._complain(lines[-1])
            return None
        found = np.load(io.BytesIO(said), allow_pickle=False)
        held_out = found["held_out"] if job.folds.repeats > 1 else found["held_out"][0]
        tested = np.asarray(job.folds.test).reshape(job.folds.repeats, -1, len(job.y)).sum(axis=1) > 0
        out: dict[str, Any] = {"name": self.name, "seconds": float(found["seconds"])}
        out |= {"validation": scores.of(held_out, job.y, job.task, tested=tested), "validation_outputs": held_out}
        out |= {"test": None, "test_outputs": None}
        if job.test is not None:
            out["test_outputs"] = found["new"]
            out["test"] = scores.of(found["new"], job.test[1], job.task)
        return out


def _packed(job: Job) -> bytes:
    """What default_machine.py reads."""
    train, test = np.asarray(job.folds.train) > 0, np.asarray(job.folds.test) > 0
    group = np.arange(len(train)) // (len(train) // job.folds.repeats)
    new = job.X[:0] if job.test is None else job.test[0]
    packed = io.BytesIO()
    np.savez(packed, X=job.X, y=job.y, train=train, test=test, group=group, X_new=new)
    return packed.getvalue()
