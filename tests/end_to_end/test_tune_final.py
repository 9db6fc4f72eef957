"""The model a search ends with is the one of all rows, whichever program has trained it."""

import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(3)
X = RNG.normal(size=(36, 2))
WEIGHTS = RNG.uniform(0.5, 2.0, 36)
SIGNAL = np.stack([X[:, 0] + X[:, 1] ** 2 - 0.6, X[:, 1] - 0.2])
SIDES = np.where(SIGNAL + 0.4 * RNG.normal(size=(2, 36)) > 0, 1.0, -1.0)
PROBLEM = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())


@pytest.mark.parametrize("y", [SIDES[0], SIDES], ids=["two classes", "one against the rest"])
def test_the_final_model_is_that_of_all_rows_with_their_weights(y):
    result = hj.tune(PROBLEM, X, y, 3, hj.criteria.LogLoss(), weights=WEIGHTS, max_steps=1, progress=False)
    found = np.atleast_2d(result.solution.z), np.atleast_1d(result.solution.b), np.atleast_1d(result.solution.kkt)
    assert result.solution.z.shape == y.shape
    for row, z, b, kkt in zip(np.atleast_2d(y), *found, strict=True):
        alone = hj.solve(PROBLEM, result.hp, X, row, WEIGHTS)
        assert kkt < 1e-7
        np.testing.assert_allclose(z, alone.z, atol=1e-6)
        np.testing.assert_allclose(b, alone.b, atol=1e-6)
