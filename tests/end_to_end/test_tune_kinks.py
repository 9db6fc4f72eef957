"""Tuning where the optimum lies on a kink: the element of least norm against the gradient of one side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras


def rows(seed=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=40) > 0.8, 1.0, -1.0)


X, Y = rows()
PROBLEM = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
SETTINGS = {"progress": False, "tol": 1e-6, "inner_tol": 1e-9}


@pytest.fixture(scope="module")
def searches():
    return {how: hj.tune(PROBLEM, X, Y, 3, at_kinks=how, **SETTINGS) for how in ("any", "min-norm")}


def test_a_search_settles_on_a_kink(searches):
    """Nothing is left of the gradient where that of one side never vanishes; on these rows the value is no worse."""
    plain, least = searches["any"], searches["min-norm"]
    assert least.value <= plain.value + 1e-6
    norms = {how: result.history[-1]["gradient_norm"] for how, result in searches.items()}
    assert norms["any"] > 3e-3 and norms["min-norm"] < 0.05 * norms["any"]
    assert least.converged
    assert least.n_evaluations <= plain.n_evaluations


def test_no_direction_leads_down_from_there(searches):
    """By the objective itself, in steps on the logarithms: it rises, or falls by next to nothing, to every side."""
    result = searches["min-norm"]
    theta = np.log([float(result.hp["loss"]["C"]), float(result.hp["kernel"]["gamma"])])

    @jax.jit
    def value(theta):
        hp = {"loss": {"C": jnp.exp(theta[0])}, "kernel": {"gamma": jnp.exp(theta[1])}}
        outputs = hj.cross_decision(PROBLEM, hp, X, Y, result.folds, tol=1e-10)
        return result.criterion(outputs, Y, result.folds)

    here, angles = float(value(jnp.asarray(theta))), np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    slopes = [(float(value(jnp.asarray(theta + 1e-3 * d))) - here) / 1e-3 for d in around]
    assert np.min(slopes) > -1e-3 and np.max(slopes) > 1e-2
    # a kink: the slopes to opposite sides do not cancel
    assert np.max(np.asarray(slopes[:8]) + np.asarray(slopes[8:])) > 1e-2


def test_a_smooth_loss_takes_the_same_steps():
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())
    plain, least = (hj.tune(problem, X, Y, 3, max_steps=4, at_kinks=how, **SETTINGS) for how in ("any", "min-norm"))
    assert plain.history.to_dict()["objective"] == least.history.to_dict()["objective"]
    assert plain.value == least.value


def test_choices_are_named():
    with pytest.raises(ValueError, match=r'at_kinks=.*choose "any" or "min-norm"'):
        hj.tune(PROBLEM, X, Y, at_kinks="clarke")
    with pytest.raises(ValueError, match="needs folds"):
        hj.tune(PROBLEM, X, Y, "loo", at_kinks="min-norm")
