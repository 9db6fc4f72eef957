"""The five sets of the experiment, dense enough for a library without sparse rows."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

import hyperjax as hj
from experiments import common

NAMES = ("madelon", "ijcnn1", "pcmac", "reuters_moneyfx", "sector")
COLUMNS = {"reuters_moneyfx": 1000, "sector": 1500}
"""Words kept: those in the most documents (of equal ones the first)."""
FOLDS = 5


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    rows: Any
    """The rows as LIBLINEAR gets them, CSR."""
    X: np.ndarray
    """What hyperjax gets: the same rows dense, or X X' where there are fewer rows than columns."""
    y: np.ndarray
    kernel: Any
    folds: Any
    note: str

    def problem(self, loss: Any) -> hj.Problem:
        return hj.Problem(loss, self.kernel, False)


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
    if name in COLUMNS:
        documents = np.asarray((X != 0).sum(axis=0)).ravel()
        X = X[:, np.sort(np.argsort(-documents, kind="stable")[: COLUMNS[name]])]
        note += f", the {COLUMNS[name]} columns most rows have"
    if X.shape[1] > X.shape[0]:
        dense, kernel = np.asarray((X @ X.T).todense()), hj.kernels.Precomputed()
        note += ", as X X'"
    else:
        dense, kernel = X.toarray(), hj.kernels.Linear()
    return Task(name, X, dense, y, kernel, hj.folds.stratified(y, FOLDS, seed=seed), note)
