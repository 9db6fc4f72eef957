"""What all cells share: data, folds, the clock, who goes first and how often, memory."""

import dataclasses
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import hyperjax as hj
from experiments import common

SEED = 0
WARM = 999
"""The permutation that is compiled on: no timed repeat sees it."""
POSITIVE = {"connect4": 2}
AWAKE, SHORT = 0.1, 1.0
"""Seconds of untimed calls before a timed one, where that takes less than SHORT."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How much a cell does."""

    small: bool = False
    """Few rows and two repeats: does it run?"""
    repeats: int = 5
    patience: float = 10.0
    """Seconds after which a peer that has run three times is not repeated (two times after twice as many, once after
    four times)."""


def options(small: bool) -> Options:
    return Options(True, 2, 5.0) if small else Options()


def load(name: str) -> tuple[Any, np.ndarray]:
    """X in float64 (CSR where it is stored so) and y in {-1, +1}; the largest class of sector against the rest."""
    found = common.arrays(name)
    X, y = found["X"].astype(np.float64), np.asarray(found["y"])
    if len(np.unique(y)) == 2:
        return X, y.astype(np.float64)
    labels, counts = np.unique(y, return_counts=True)
    return X, common.signs(y, POSITIVE.get(name, labels[np.argmax(counts)]))


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; constant columns become 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def unit_rows(X: Any) -> Any:
    """Sparse rows of length 1."""
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return scipy.sparse.diags(1.0 / np.where(length > 0, length, 1.0)).dot(X).tocsr()


def draw(X: np.ndarray, y: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A stratified sample of `rows` rows, the same for every repeat; a repeat permutes it afresh."""
    generator = np.random.default_rng(seed)
    positive = round(rows * float(np.mean(y > 0)))
    chosen = np.concatenate(
        [
            generator.permutation(np.flatnonzero(keep))[:count]
            for keep, count in ((y > 0, positive), (y < 0, rows - positive))
        ]
    )
    return X[chosen], y[chosen]


def sample(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows of a set."""
    X, y = draw(*load(name), rows, SEED)
    return standardised(X), y


def permuted(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray, Any]:
    """The rows in another order, and five folds of them."""
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    signs = set(np.unique(y)) == {-1.0, 1.0}
    return X, y, hj.folds.stratified(y, 5, seed=seed) if signs else hj.folds.kfold(len(y), 5, seed=seed)


def splits(folds: Any) -> list[np.ndarray]:
    """The training rows of every fold."""
    return [np.flatnonzero(weights > 0) for weights in np.asarray(folds.train)]


def low(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows and labels in float32, as hyperjax gets them."""
    return X.astype(np.float32), y.astype(np.float32)


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, result) of a call that returns only when all is computed."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def peak(who: int = resource.RUSAGE_SELF) -> int:
    """Peak resident bytes of this process so far, or with RUSAGE_CHILDREN of the largest one it waited for."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(who).ru_maxrss * unit


class Race:
    """Seconds of hyperjax ("ours") and of peers on the same work, round after round."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.seconds: dict[str, list[float]] = {}

    def round(
        self, repeat: int, calls: dict[str, Callable[[], Any]], others: dict[str, Callable[[], Any]] | None = None
    ) -> dict[str, Any]:
        """Everybody once, in an order that turns around; what each returned.  Impatient with slow peers.

        `others` are the same calls on other rows: those of whose turns are short work on them first, untimed.  While
        one side works on one core the others fall asleep, and a call of some milliseconds is over before they are
        awake.
        """
        names = [name for name in calls if name == "ours" or self.wanted(name)]
        found = {}
        for name in names if repeat % 2 == 0 else names[::-1]:
            if others and name in others and self.seconds.get(name, [np.inf])[-1] < SHORT:
                begun = time.perf_counter()
                while time.perf_counter() - begun < AWAKE:
                    others[name]()
            seconds, found[name] = clock(calls[name])
            self.seconds.setdefault(name, []).append(seconds)
        return found

    def wanted(self, name: str) -> bool:
        """Whether a peer's turn is worth its seconds."""
        spent, patience = self.seconds.get(name, []), self.options.patience
        limit = {0: np.inf, 1: 4.0 * patience, 2: 2.0 * patience}.get(len(spent), patience)
        return sum(spent) <= limit

    def row(self, peer: str | None = None, **facts: Any) -> dict[str, Any]:
        """The seconds against one peer as the start of a row."""
        theirs = {} if peer is None else {"theirs": self.seconds.get(peer, [])}
        return {"ours": self.seconds["ours"], **theirs, **facts}


def worst(row: dict[str, Any], **values: float) -> None:
    """Keep the largest of each value."""
    for name, value in values.items():
        row[name] = max(float(value), row.get(name, -np.inf))


def slope(x: Any, y: Any) -> float:
    """The exponent of y ~ x^p by least squares."""
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])
