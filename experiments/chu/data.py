"""The five sets of the experiment, all columns of each."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

import hyperjax as hj
from experiments import common

NAMES = ("madelon", "ijcnn1", "pcmac", "reuters_moneyfx", "sector")
FOLDS = 5
SPARSE = 0.1
"""Sets with a smaller share of numbers other than zero stay CSR."""
LARGEST = 1e8
"""Numbers of a dense matrix beyond which coordinate descent, which reads rows one by one, is left out."""


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    rows: Any
    """The rows as LIBLINEAR gets them, CSR."""
    X: Any
    """What hyperjax gets: the same, or a dense array of it."""
    y: np.ndarray
    folds: Any
    note: str

    def problem(self, loss: Any) -> hj.Problem:
        return hj.Problem(loss, hj.kernels.Linear(), False)

    def dense(self) -> np.ndarray | None:
        """The rows as an array, or None where that is too large."""
        if not scipy.sparse.issparse(self.X):
            return self.X
        return self.rows.toarray() if np.prod(self.rows.shape) <= LARGEST else None


def task(name: str, rows: int | None = None, seed: int = 0) -> Task:
    """A set in random order with its folds; `rows` keeps that many."""
    found = common.arrays(name)
    X, y = scipy.sparse.csr_matrix(found["X"]).astype(np.float64), np.asarray(found["y"])
    note = f"{X.shape[0]} x {X.shape[1]}"
    if name == "sector":
        labels, counts = np.unique(y, return_counts=True)
        chosen = labels[np.argmax(counts)]
        y = common.signs(y, chosen)
        note += f", class {chosen} ({counts.max()} rows) against the rest"
    keep = np.random.default_rng(seed).permutation(len(y))[:rows]
    X, y = X[keep], y[keep].astype(np.float64)
    sparse = X.nnz < SPARSE * X.shape[0] * X.shape[1]
    return Task(name, X, X if sparse else X.toarray(), y, hj.folds.stratified(y, FOLDS, seed=seed), note)
