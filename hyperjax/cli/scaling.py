"""Columns on comparable scales: an affine map fitted on training rows and kept in the model."""

import dataclasses

import numpy as np

from .failures import DATA, Failure

__all__ = ["Scaling", "fit"]


@dataclasses.dataclass(frozen=True)
class Scaling:
    """x -> (x - centre) / spread, column by column."""

    kind: str
    centre: np.ndarray
    spread: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return (X - self.centre) / self.spread


def fit(kind: str, X: np.ndarray) -> Scaling:
    """The map of this kind for the rows X.

    standard: mean 0 and variance 1; minmax: from 0 to 1; maxabs: largest magnitude 1, zeros stay zero; none: as it is.
    A constant column keeps its unit.
    """
    zero, one = np.zeros(X.shape[1]), np.ones(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = {
            "none": lambda: (zero, one),
            "standard": lambda: (X.mean(axis=0), X.std(axis=0)),
            "minmax": lambda: (X.min(axis=0), np.ptp(X, axis=0)),
            "maxabs": lambda: (zero, np.abs(X).max(axis=0)),
        }[kind]()
    bad = np.flatnonzero(~(np.isfinite(centre) & np.isfinite(spread)))
    if bad.size:
        largest = np.abs(X[:, bad[0]]).max()
        raise Failure(DATA, f"column {bad[0] + 1} reaches {largest:.3g}, too large to scale: divide it first")
    # the spread of a constant column is rounding alone
    constant = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    return Scaling(kind, centre, np.where(constant, 1.0, spread))
