"""Tuning by leave-one-out: the same search as with one fold a row where the formulas are exact, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(0)
N = 24
X = RNG.normal(size=(N, 2))
TARGETS = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=N)
LABELS = np.where(TARGETS > 0, 1.0, -1.0)


def test_for_the_squared_loss_it_is_the_search_with_one_fold_a_row():
    problem = hj.Problem(hj.losses.Squared(), hj.kernels.RBF())
    settings = {"progress": False, "tol": 1e-6, "inner_tol": 1e-9}
    single = hj.tune(problem, X, TARGETS, "loo", **settings)
    folds = hj.tune(problem, X, TARGETS, 1.0 - np.eye(N), **settings)
    assert single.converged and len(single.history) == len(folds.history)
    for name in ("value", "gradient_norm"):
        np.testing.assert_allclose(single.history.to_dict()[name], folds.history.to_dict()[name], rtol=1e-5, atol=1e-9)
    for ours, theirs in zip(jax.tree.leaves(single.hp), jax.tree.leaves(folds.hp), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    assert single.n_evaluations == folds.n_evaluations and len(single.history[0]["codes"]) == 1


def test_weights_and_several_classes_are_judged_one_by_one():
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF(), bias="regularised")
    weights = RNG.uniform(0.5, 2.0, N)
    criterion = hj.criteria.LogLoss()
    rows = np.stack([LABELS, np.where(X[:, 1] > 0, 1.0, -1.0)])
    result = hj.tune(problem, X, rows, "loo", criterion, weights=weights, max_steps=0, progress=False, inner_tol=1e-9)
    expected = [
        float(criterion(hj.loo_decision(problem, result.start, X, y, weights), y, weights=weights)) for y in rows
    ]
    assert result.history[0]["value"] == pytest.approx(np.mean(expected), rel=1e-6)


def test_the_gradient_of_a_kinked_loss_is_that_of_differences():
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    criterion = hj.criteria.SmoothHingeLoss()
    result = hj.tune(problem, X, LABELS, "loo", criterion, max_steps=0, progress=False, inner_tol=1e-10)
    coords = result.task.coords
    theta, h = np.asarray(coords.read(result.start)), 1e-5

    def value(theta):
        out = hj.loo_decision(problem, coords.build(jnp.asarray(theta)), X, LABELS, tol=1e-11)
        return float(criterion(out, LABELS))

    slopes = [(value(theta + h * e) - value(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    assert result.history[0]["gradient_norm"] == pytest.approx(float(np.linalg.norm(slopes)), rel=1e-4)


def test_what_can_not_be_left_out_is_said():
    problem = hj.Problem(hj.losses.Squared(), hj.kernels.RBF())
    with pytest.raises(ValueError, match='"loo"'):
        hj.tune(problem, X, TARGETS, "leave-one-out", progress=False)
    with pytest.raises(ValueError, match="divide groups"):
        hj.tune(problem, X, TARGETS, "loo", groups=np.arange(N) // 2, progress=False)
    with pytest.raises(ValueError, match="too few"):
        hj.tune(problem, X[:2], TARGETS[:2], "loo", progress=False)
    with pytest.raises(ValueError, match=r"folds='loo'.*hyperjax\.tune"):
        hj.methods.grid(problem, X, TARGETS, "loo", progress=False)
    many = np.zeros((8193, 1))
    with pytest.raises(ValueError, match="folds=10"):
        hj.tune(problem, many + np.arange(8193)[:, None], np.arange(8193.0), "loo", progress=False)
