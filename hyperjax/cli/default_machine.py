"""A program of its own: scikit-learn's SVC or SVR with its defaults, on rows and folds that come in through a pipe.

Run by its path, so that its process imports scikit-learn, about a second, and nothing of JAX, while the search runs in
another.  It reads one npz from its standard input and writes one to its standard output:

    X, y, train, test (T, n), group (T,), and X_new       in
    held_out (R, n), new (rows of X_new,), seconds        out

`group` says which of the R repetitions a fold belongs to.
"""

import io
import sys
import time
from typing import Any

import numpy as np


def outputs(machine: Any, X: np.ndarray) -> np.ndarray:
    """Decision values of a classifier, predictions of a regressor."""
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)


def answer(make: Any, given: Any) -> dict[str, Any]:
    """Held-out outputs of every repetition, and those of one machine on all rows where there are new ones."""
    begun = time.perf_counter()
    X, y, new = given["X"], given["y"], given["X_new"]
    held_out = np.zeros((int(np.max(given["group"])) + 1, len(y)))
    for inside, outside, group in zip(given["train"], given["test"], given["group"], strict=True):
        held_out[group, outside] = outputs(make().fit(X[inside], y[inside]), X[outside])
    found = outputs(make().fit(X, y), new) if len(new) else np.zeros(0)
    return {"held_out": held_out, "new": found, "seconds": time.perf_counter() - begun}


def main(name: str) -> None:
    """The whole program, for SVC or SVR."""
    import sklearn.svm

    given = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    packed = io.BytesIO()
    np.savez(packed, **answer(getattr(sklearn.svm, name), given))  # a pipe has no positions to return to
    sys.stdout.buffer.write(packed.getvalue())


if __name__ == "__main__":
    main(sys.argv[1])
