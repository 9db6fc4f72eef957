"""Data, searches and test errors of the reproduction of Keerthi, Sindhwani & Chapelle."""

import time
from functools import cache
from typing import Any

import numpy as np

import hyperjax as hj
from experiments.common import arrays
from hyperjax.losses.wrapped import Wrapped

FOLDS = 5
LETTERS = "AGCT"
"""What the codes 1 to 4 of splice stand for."""


class CostRatio(Wrapped):
    """A weighted hinge with C_pos = C, C_neg = ratio C and margins 1: the second method of table 3."""

    ratio: float = 1.0

    def init(self, X, y):
        return {"C": 1.0}

    def expand(self, hp):
        return self.loss.expand({"C_pos": hp["C"], "C_neg": self.ratio * hp["C"], "m_pos": 1.0, "m_neg": 1.0})


@cache
def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, training and test part joined as in the paper.

    "splice-ACTG" is splice with the codes 1 to 4 given to the letters in this order.
    """
    name, _, order = name.partition("-")
    stored = arrays(name)
    X, y = stored["X"], stored["y"]
    if "X_test" in stored:
        X, y = np.concatenate([X, stored["X_test"]]), np.concatenate([y, stored["y_test"]])
    X = np.asarray(X, np.float64)
    if order:
        X = np.array([order.index(letter) + 1.0 for letter in LETTERS])[X.astype(int) - 1]
    return X, np.asarray(y, np.float64)


def split(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A stratified training subset of n rows and all other rows, by the training rows' mean and deviation."""
    X, y = rows(name)
    generator = np.random.default_rng(seed)
    positive = round(n * np.mean(y > 0))
    chosen = [
        generator.permutation(np.flatnonzero(side))[:count]
        for side, count in ((y > 0, positive), (y < 0, n - positive))
    ]
    train = generator.permutation(np.concatenate(chosen))
    test = np.setdiff1d(np.arange(len(y)), train)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    scaled = ((X - mean) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    return scaled[train], y[train], scaled[test], y[test]


def folds_of(y: np.ndarray, seed: int) -> Any:
    return hj.folds.stratified(y, FOLDS, seed=seed)


def outputs(problem: Any, hp: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Outputs on the test rows of the model that all training rows make at hp."""
    fitted = {name: hp[name] for name in ("loss", "kernel")}
    return np.asarray(hj.solve(problem, fitted, X, y).decision(X_test), float)


def error(o: np.ndarray, y: np.ndarray) -> float:
    """Percent on the wrong side of 0."""
    return 100.0 * float(np.mean(np.where(o >= 0, 1.0, -1.0) != y))


def adapted(X: np.ndarray, y: np.ndarray, seed: int, **settings: Any) -> dict[str, Any]:
    """Both stages of the method: one width, then one a feature; a row for each, and the result."""
    begun = time.perf_counter()
    result = hj.methods.keerthi(
        hj.Problem(kernel=hj.kernels.ARD()), X, y, folds_of(y, seed), seed=seed, progress=False, **settings
    )
    seconds = time.perf_counter() - begun
    single = [record for record in result.history if record["stage"] == "isotropic"]
    end = min(single, key=lambda record: record["value"])
    counts = [stage["evaluations"] for stage in result.details["stages"]]
    hp = {"loss": end["hp"]["loss"], "kernel": {"gamma": end["hp"]["kernel"]["gamma"][0]}}
    return {
        "result": result,
        "single": {"hp": hp, "value": end["value"], "evaluations": counts[0], "seconds": single[-1]["seconds"]},
        "full": {"value": result.value, "evaluations": counts[-1], "seconds": seconds - single[-1]["seconds"]},
    }


def described(hp: Any) -> dict[str, Any]:
    """Hyperparameters as plain numbers under dotted names, long vectors left out."""
    out = {}
    for part in ("loss", "kernel", "criterion"):
        for name, value in hp.get(part, {}).items():
            if np.size(value) == 1:
                out[f"{part}.{name}"] = float(np.ravel(value)[0])
    return out
