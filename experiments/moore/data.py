"""The data of the experiment: five synthetic groups, and public molecules with noise of known size in known rows."""

from typing import NamedTuple

import numpy as np

from experiments import common

NOISE = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
"""Standard deviation of the noise in the synthetic groups."""
ADDED = np.array([0.0, 0.25, 0.5, 1.0, 2.0])
"""Noise added to the molecules' targets, group by group, in standard deviations of the target."""
FOLDS = 5


class Task(NamedTuple):
    """Modelling rows with their group, and test rows without noise of ours."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def folds(self) -> np.ndarray:
        """Training weights (5, n): fold floor(i / 5) mod 5, so that every fold has as many rows of every group."""
        own = (np.arange(len(self.y)) // 5) % FOLDS
        return (own[None, :] != np.arange(FOLDS)[:, None]).astype(float)

    def grouped(self, count: int) -> np.ndarray:
        """The five groups put together into `count`."""
        return self.group * count // 5


def synthetic(n: int, seed: int, columns: int = 20, tests: int = 1000) -> Task:
    """x ~ N(0, I), w ~ N(0, I / columns), noise by group, test noise 0.2."""
    draw = np.random.default_rng(seed)
    w = draw.normal(size=columns) / np.sqrt(columns)
    X, X_test = draw.normal(size=(n, columns)), draw.normal(size=(tests, columns))
    group = np.arange(n) % 5
    y = X @ w + NOISE[group] * draw.normal(size=n)
    return Task(X, y, group, X_test, X_test @ w + 0.2 * draw.normal(size=tests))


def molecules(name: str, n: int, seed: int, columns: int = 100, added: np.ndarray = ADDED) -> Task:
    """n modelling rows of a QSAR set, prepared as the paper says, the rest to test.

    Columns are centred by their median, scaled by their mean absolute deviation, clipped to [-5, 5] and reduced to
    principal components, scaled as one so that a row has length 1 on average; no step sees a target.  The target has
    mean 0 and variance 1 on the modelling rows before noise is added to them.
    """
    stored = common.arrays(name)
    X, y = np.asarray(stored["X"], np.float64), np.asarray(stored["y"], np.float64)
    X = X - np.median(X, axis=0)
    spread = np.abs(X).mean(axis=0)
    X = np.clip(X / np.where(spread > 0, spread, 1.0), -5.0, 5.0)
    X = X - X.mean(axis=0)
    _, _, axes = np.linalg.svd(X, full_matrices=False)
    X = X @ axes[:columns].T
    X = X / np.sqrt(np.mean(np.sum(X * X, axis=1)))
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(y))
    rows, tests = order[:n], order[n:]
    y = (y - y[rows].mean()) / y[rows].std()
    group = np.arange(n) % 5
    return Task(X[rows], y[rows] + added[group] * draw.normal(size=n), group, X[tests], y[tests])
