"""The programs of a search: the end of the kinked solver is compiled where a fold asks for it, and there alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import hyperjax as hj
from hyperjax import objective, plan
from hyperjax.solvers import Decomposition, ProxGrad

pytestmark = [
    pytest.mark.no_extras,
    pytest.mark.skipif(not jax.config.jax_enable_x64, reason="float32 beside the float64 of the other tests"),
]
TOL = [1e-3, np.inf]


def prepared(C, rows):
    """A task and its point: overlapping classes with heavy tails, stiff at a large C."""
    rng = np.random.default_rng(11)
    X = np.exp(0.7 * rng.normal(size=(rows, 6))).astype(np.float32)
    X = (X - X.mean(0)) / X.std(0)
    f = X[:, 0] - np.abs(X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    y = np.where(f + 0.8 * rng.normal(size=rows) > np.median(f), 1.0, -1.0).astype(np.float32)
    hp, none = {"loss": {"C": C}, "kernel": {"gamma": 0.1}}, [None] * 7
    made = plan.prepare(hj.Problem(), X, y, hj.folds.stratified(y, 3, seed=0), None, hp, *none, 0, "full")
    coords = made.coords("full", made.hp)
    return made.task(coords, made.hp), coords.read(made.hp)


def differentiated(task, theta, tol=TOL):
    return objective.differentiate(task, theta, task.start(), jnp.asarray(tol, task.X.dtype), "quick")


def forbidden(*_):
    raise AssertionError("ProxGrad is traced")


def test_a_point_that_smo_solves_compiles_nothing_more(monkeypatch):
    task, theta = prepared(1.0, 101)
    whole = differentiated(task.replace(solver=Decomposition()), theta)
    monkeypatch.setattr(ProxGrad, "solve", forbidden)
    value, gradient, facts = differentiated(task, theta)
    assert np.all(facts["kkt"] <= 1e-3) and np.all(np.asarray(gradient) != 0)
    np.testing.assert_allclose(value, whole[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, whole[1], rtol=1e-3)


@pytest.mark.parametrize("kind", ["sparse", "factored"])
def test_linear_machines_take_the_solver_that_is_made_for_them(kind):
    """Where SMO does not begin there is nothing to leave out."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 10)) < 0.3, rng.normal(size=(120, 10)), 0.0).astype(np.float32)
    y = np.where(X.sum(axis=1) + 0.1 * rng.normal(size=120) > 0, 1.0, -1.0).astype(np.float32)
    problem = hj.Problem(kernel=hj.kernels.Linear())
    rows = scipy.sparse.csr_matrix(X) if kind == "sparse" else X
    result = hj.tune(problem, rows, y, 3, progress=False, max_steps=2)
    assert result.value < result.history[0]["value"] and result.hard < 0.5
    exact = hj.tune(problem, X.astype(float), y.astype(float), 3, progress=False, max_steps=2)
    assert result.history[0]["value"] == pytest.approx(exact.history[0]["value"], rel=1e-3)


def test_a_tolerance_below_what_smo_is_good_for_takes_the_whole_solver(monkeypatch):
    task, theta = prepared(1.0, 102)
    monkeypatch.setattr(ProxGrad, "solve", forbidden)
    with pytest.raises(AssertionError, match="is traced"):
        differentiated(task, theta, [1e-4, 1e-4])


def test_folds_that_smo_leaves_are_ended_by_the_whole_solver():
    task, theta = prepared(30000.0, 400)
    found = differentiated(task, theta)[2]
    whole = differentiated(task.replace(solver=Decomposition()), theta)[2]
    begun = differentiated(task.replace(solver=Decomposition(finish=False)), theta)[2]
    assert np.all(np.asarray(begun["code"]) == hj.Code.MAX_STEPS)
    failed = [np.asarray(facts["code"]) == hj.Code.MAX_STEPS for facts in (found, whole)]
    np.testing.assert_array_equal(*failed)
    assert not np.all(failed[0]), "the end of the solver solves a fold that SMO leaves"
    assert np.all(np.asarray(found["iterations"]) > np.asarray(begun["iterations"]))
