"""The linear estimators keep sparse rows sparse, and find what they find on dense ones."""

import pickle

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("sklearn")

from hyperjax.sklearn import TunedLinearSVC, TunedLinearSVR
from hyperjax.sparse import Matrix


def text(n=50, d=60):
    rng = np.random.default_rng(4)
    X = scipy.sparse.random(n, d, 0.15, random_state=4, format="csr")
    X.data[:] = rng.uniform(0.2, 1.0, X.nnz)
    return X, X @ rng.normal(size=d) + 0.2 * rng.normal(size=n)


def test_a_classifier_on_sparse_rows():
    X, o = text()
    y = np.where(o > 0, "yes", "no")
    weights = np.linspace(0.5, 1.5, len(y))
    own, dense = (TunedLinearSVC(cv=3).fit(rows, y, weights) for rows in (X, X.toarray()))
    assert isinstance(own.result_.solution.X, Matrix)
    assert own.best_params_["C"] == pytest.approx(dense.best_params_["C"], rel=1e-3)
    np.testing.assert_allclose(own.coef_, dense.coef_, atol=1e-3)
    new = scipy.sparse.coo_matrix(X[:9])
    known = new @ own.coef_[0] + own.intercept_[0]
    for model in (own, pickle.loads(pickle.dumps(own))):
        for rows in (new, new.toarray()):
            np.testing.assert_allclose(model.decision_function(rows), known, atol=1e-9)
            assert set(model.predict(rows)) <= {"yes", "no"}


def test_a_regressor_on_sparse_rows():
    X, o = text()
    own = TunedLinearSVR(cv=3, max_steps=3).fit(X, o)
    assert isinstance(own.result_.solution.X, Matrix)
    np.testing.assert_allclose(own.predict(X), X @ own.coef_ + own.intercept_, atol=1e-9)
    assert own.score(X, o) > 0.5
