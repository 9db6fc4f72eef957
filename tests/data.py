"""The real data sets of the tests: `load(name)` reads NAME.npz from the folder HYPERJAX_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

VARIABLE = "HYPERJAX_DATA"


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a data set, at least X and y; X is a CSR matrix where the set is sparse.

    With the variable set, a missing file fails the test; so does an unset variable under CI.
    Elsewhere an unset variable skips the test; scikit-learn ships none of these sets in this form
    (its breast_cancer is another one), so there is nothing to fall back on.
    """
    folder = os.environ.get(VARIABLE, "")
    if folder:
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            pytest.fail(f"{VARIABLE} is set to {folder!r}, which holds no {name}.npz", pytrace=False)
        return _read(path)
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{VARIABLE} is not set, and under CI the data must be there ({name})", pytrace=False)
    pytest.skip(f"set {VARIABLE} to the folder that holds {name}.npz to run this test")


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1 in float64; constant columns become 0."""
    X = np.asarray(X, dtype=np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    for prefix, target in (("", "X"), ("test_", "X_test")):
        if f"{prefix}indptr" in arrays:
            parts = tuple(arrays.pop(f"{prefix}{key}") for key in ("data", "indices", "indptr"))
            arrays[target] = scipy.sparse.csr_matrix(parts, shape=tuple(arrays.pop(f"{prefix}shape")))
    return arrays
