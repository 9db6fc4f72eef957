"""Leave-one-out outputs against training n times, and their derivatives against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.data import load, standardised

RNG = np.random.default_rng(0)
N = 24
X = RNG.normal(size=(N, 2))
LABELS = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
TARGETS = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=N)


def trained_without_each(problem, hp, X, y, tol=1e-10):
    """Held-out outputs with one fold a row."""
    n = len(y)
    return np.asarray(hj.cross_decision(problem, hp, X, y, 1.0 - np.eye(n), tol=tol))


@pytest.mark.no_extras
@pytest.mark.parametrize("bias", [True, False, "regularised"])
@pytest.mark.parametrize("kernel", [hj.kernels.RBF(), hj.kernels.Linear()], ids=["rbf", "linear"])
def test_exact_for_squared_losses(bias, kernel):
    problem = hj.Problem(hj.losses.Squared(), kernel, bias)
    hp = problem.init(X, TARGETS)
    np.testing.assert_allclose(
        hj.loo_decision(problem, hp, X, TARGETS, tol=1e-11), trained_without_each(problem, hp, X, TARGETS), atol=1e-7
    )


@pytest.mark.no_extras
def test_weights_of_a_squared_loss():
    problem, w = hj.Problem(hj.losses.Squared(), hj.kernels.RBF()), RNG.uniform(0.5, 2.0, N)
    hp = problem.init(X, TARGETS)
    left_out = [hj.solve(problem, hp, X, TARGETS, w * (np.arange(N) != i)).decision(X[i : i + 1])[0] for i in range(3)]
    np.testing.assert_allclose(hj.loo_decision(problem, hp, X, TARGETS, w, tol=1e-11)[:3], left_out, atol=1e-7)
    absent = np.where(np.arange(N) == 4, 0.0, 1.0)
    out = hj.loo_decision(problem, hp, X, TARGETS, absent)
    np.testing.assert_allclose(out[4], hj.solve(problem, hp, X, TARGETS, absent).decision(X[4:5])[0], atol=1e-7)


@pytest.mark.no_extras
@pytest.mark.parametrize("loss", [hj.losses.Logistic(), hj.losses.SquaredHinge()], ids=repr)
def test_closer_to_the_truth_than_training_outputs(loss):
    problem = hj.Problem(loss, hj.kernels.RBF())
    hp = problem.init(X, LABELS)
    truth = trained_without_each(problem, hp, X, LABELS)
    approximate = np.asarray(hj.loo_decision(problem, hp, X, LABELS))
    naive = np.asarray(hj.solve(problem, hp, X, LABELS).outputs)
    assert np.mean(np.abs(approximate - truth)) < 0.2 * np.mean(np.abs(naive - truth))


@pytest.mark.no_extras
@pytest.mark.parametrize(
    ("loss", "y"), [(hj.losses.Squared(), TARGETS), (hj.losses.Logistic(), LABELS), (hj.losses.Hinge(), LABELS)]
)
def test_gradients_are_those_of_differences(loss, y):
    problem = hj.Problem(loss, hj.kernels.RBF())
    hp = problem.init(X, y)

    def value(hp):
        return jnp.mean((hj.loo_decision(problem, hp, X, y, tol=1e-12) - y) ** 2)

    report = hj.check_hypergradient(value, hp)
    assert report.trusted and np.all(report.digits > 4), str(report)


@pytest.mark.parametrize("name", ["pima", "heart", "ionosphere"])
def test_error_rates_of_real_data(name):
    data = load(name)
    X = data["X"].toarray() if hasattr(data["X"], "toarray") else data["X"]
    rows = np.random.default_rng(0).permutation(len(X))[:150]
    X, y = standardised(X[rows]), np.asarray(data["y"][rows], float)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    hp = problem.init(X, y)
    folds = jnp.asarray(1.0 - np.eye(len(y)))
    truth = np.asarray(hj.cross_decision(problem, hp, X, y, folds, tol=1e-5))
    approximate = np.asarray(hj.loo_decision(problem, hp, X, y))
    training = np.asarray(hj.solve(problem, hp, X, y).outputs)
    error = [float(np.mean(o * y <= 0)) for o in (truth, approximate, training)]
    # a row that moves others to another piece of the hinge is only roughly right: 4 of 150 rows may change sides
    assert abs(error[1] - error[0]) <= 4.5 / 150
    assert np.corrcoef(approximate, truth)[0, 1] > np.corrcoef(training, truth)[0, 1]
    assert abs(error[1] - error[0]) <= abs(error[2] - error[0])


def test_failed_fits_are_nan():
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())
    hp = {"loss": {"C": jnp.asarray(-1.0)}, "kernel": {"gamma": jnp.asarray(1.0)}}
    assert np.all(np.isnan(jax.jit(lambda hp: hj.loo_decision(problem, hp, X, LABELS))(hp)))
