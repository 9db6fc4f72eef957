"""The loader of data sets: a set that should be there fails its test, and never skips it."""

import numpy as np
import pytest
import scipy.sparse

from tests.data import load, standardised


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HYPERJAX_DATA", str(tmp_path))
    return tmp_path


def test_a_dense_set_comes_as_stored(folder):
    np.savez(folder / "toy.npz", X=np.eye(3, dtype=np.float32), y=[1, -1, 1])
    stored = load("toy")
    assert np.array_equal(stored["X"], np.eye(3)) and np.array_equal(stored["y"], [1, -1, 1])


def test_a_sparse_set_comes_as_csr(folder):
    X = scipy.sparse.csr_matrix([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(folder / "toy.npz", **parts, **{f"test_{key}": value for key, value in parts.items()}, y=[1, 2])
    stored = load("toy")
    assert set(stored) == {"X", "X_test", "y"}
    assert np.array_equal(stored["X"].toarray(), X.toarray()) and np.array_equal(
        stored["X_test"].toarray(), X.toarray()
    )


def test_a_missing_file_fails(folder):
    with pytest.raises(pytest.fail.Exception, match="no absent.npz"):
        load("absent")


def test_without_the_variable_ci_fails_and_others_skip(monkeypatch):
    monkeypatch.delenv("HYPERJAX_DATA", raising=False)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="HYPERJAX_DATA is not set"):
        load("pima")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match=r"pima\.npz"):
        load("pima")


def test_standardised_columns():
    X = standardised(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    assert X.dtype == np.float64 and np.array_equal(X, [[-1.0, 0.0], [1.0, 0.0]])
