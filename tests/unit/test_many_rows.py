"""Linear models on so many rows that the search begins on a sample of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import hyperjax as hj
from hyperjax.solvers.newton import EVERY, SAMPLED

pytestmark = [
    pytest.mark.no_extras,
    pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances"),
]

N = SAMPLED + 3


class Uneven(hj.losses.Loss):
    """A logistic loss with a cost a row that is no hyperparameter but lies in the loss itself."""

    smooth = True
    labels = True
    cost: jax.Array

    def phi(self, o, y, hp):
        return hp["C"] * self.cost * jnp.logaddexp(0.0, -y * o)

    def init(self, X, y):
        return {"C": 0.7}


def minimum(X, y, cost, C):
    """The primal value that SciPy reaches, with an unregularised bias."""
    A = np.c_[X, np.ones(len(y))]

    def primal(x):
        margins = y * (A @ x)
        slope = -C * cost * y / (1.0 + np.exp(margins))
        gradient = A.T @ slope
        gradient[:-1] += x[:-1]
        return 0.5 * x[:-1] @ x[:-1] + C * np.sum(cost * np.logaddexp(0.0, -margins)), gradient

    start = np.zeros(A.shape[1])
    return minimize(primal, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).fun


@pytest.mark.parametrize("labels", ["even", "all of one class in the sample"])
def test_the_sample_never_decides_where_the_search_ends(labels):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    y = np.where(X[:, 0] + rng.normal(size=N) > 0, 1.0, -1.0)
    if labels != "even":
        y[::EVERY] = 1.0
    cost = rng.uniform(0.5, 2.0, size=N)
    problem = hj.Problem(Uneven(jnp.asarray(cost)), hj.kernels.Linear(), bias=True)
    solution = hj.solve(problem, problem.init(X, y), X, y)
    z, b = np.asarray(solution.z), float(solution.b)
    w = X.T @ z
    primal = 0.5 * w @ w + 0.7 * np.sum(cost * np.logaddexp(0.0, -y * (X @ w + b)))
    assert int(solution.code) == hj.Code.OK
    np.testing.assert_allclose(primal, minimum(X, y, cost, 0.7), rtol=1e-9)
    assert int(solution.iterations) <= 12
