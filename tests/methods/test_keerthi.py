"""Keerthi, Sindhwani & Chapelle: reference values through the method, stages, stops, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax import implicit
from hyperjax.methods import keerthi
from hyperjax.methods._per_fold import PerFold
from hyperjax.methods.base import Search, Takes
from tests.gradients.r30 import LABELS, R30

pytestmark = pytest.mark.no_extras

HALF = hj.Folds(jnp.asarray(np.arange(30)[None, :] < 20, float), jnp.asarray(np.arange(30)[None, :] >= 20, float))
RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.7 * np.sin(3.0 * X[:, 1]) + 0.5 * RNG.normal(size=60) > 0.3, 1.0, -1.0)


def adapted(loss=None, kernel=None, X=R30, y=LABELS, folds=HALF, bias=True, **settings):
    problem = hj.Problem(loss or hj.losses.Hinge(), kernel or hj.kernels.RBF(), bias)
    return keerthi(problem, X, y, folds, progress=False, **settings)


@pytest.mark.filterwarnings("ignore:held out, the tuned machine")
def test_it_starts_where_the_paper_does():
    """Item 2: C = gamma = 1, value and slopes in the logarithms; the descent that follows from there."""
    result = adapted(inner_tol=1e-10)
    first = result.history[0]
    assert first["value"] == pytest.approx(0.5005673087, abs=1e-8)
    assert first["gradient_norm"] == pytest.approx(np.hypot(0.0047436476, 0.0003325191), abs=1e-8)
    assert (float(result.start["loss"]["C"]), float(result.start["kernel"]["gamma"])) == (1.0, 1.0)
    assert np.all(np.diff(result.history.to_dict()["objective"]) <= 0) and result.value < 0.45
    steps = np.diff(np.log([(r["hp"]["loss"]["C"], r["hp"]["kernel"]["gamma"]) for r in result.history]), axis=0)
    assert np.linalg.norm(steps[0]) == pytest.approx(1.0) and np.max(np.abs(steps)) <= 2.0 + 1e-9
    assert result.n_evaluations <= 25 and result.converged | (result.reason == "no_progress")


@pytest.mark.filterwarnings("ignore:held out, the tuned machine")
def test_a_weighted_hinge_with_a_threshold():
    """Item 1, weighted error with the threshold as a hyperparameter: nine coordinates and their slopes."""
    start = {
        "loss": {"C_pos": 1.3, "C_neg": 0.6, "m_pos": 1.2, "m_neg": 0.9},
        "kernel": {"gamma": [1.5, 0.6]},
        "criterion": {"threshold": 0.1},
    }
    criterion = hj.criteria.WeightedError(kappa=0.1, threshold="tuned")
    result = adapted(
        hj.losses.WeightedHinge(), hj.kernels.ARD(), criterion=criterion, init=start, hold=["kernel.gamma"],
        max_steps=2, inner_tol=1e-10,
    )  # fmt: skip
    first = result.history[0]
    slopes = (1.3 * 0.0008576647, -0.6 * 0.0013612300, 0.0140264998, -0.0157273759, -0.0297538756)
    assert first["value"] == pytest.approx(0.3488015121, abs=1e-8)
    assert first["gradient_norm"] == pytest.approx(np.linalg.norm(slopes), abs=1e-8)
    assert result.value < first["value"] and len(result.details["stages"]) == 1
    assert float(result.hp["criterion"]["threshold"]) != 0.1


def test_one_width_a_feature_starts_from_one_for_all():
    """Item 15: the second stage starts at the value of the first and ends no higher."""
    result = adapted(kernel=hj.kernels.ARD(), X=X, y=Y, folds=3)
    single, full = result.details["stages"]
    records = [r for r in result.history if r["stage"] == "full"]
    np.testing.assert_allclose(np.ptp(records[0]["hp"]["kernel"]["gamma"]), 0.0, atol=1e-12)
    assert records[0]["value"] == pytest.approx(single["value"], rel=1e-5)
    assert full["value"] == result.value < single["value"]
    assert single["evaluations"] + full["evaluations"] == result.n_evaluations
    assert single["evaluations"] <= 25 and np.ptp(result.hp["kernel"]["gamma"]) > 0.1


def test_a_plateau_at_the_start_is_left():
    """12 scaled features and gamma = 1: K is nearly the identity, V the share of the smaller class, its slope 0."""
    wide = np.concatenate([X[:, :2], RNG.normal(size=(60, 10))], axis=1)
    result = adapted(X=wide, y=Y, folds=3, max_steps=12)
    values = result.history.to_dict()["value"]
    assert values[0] == pytest.approx(np.mean(Y > 0)) and result.value < 0.8 * values[0]
    assert len(result.details["stages"]) == 1 and result.details["stages"][0]["evaluations"] == result.n_evaluations


def test_pooled_outputs_and_folds_of_their_own():
    """Item 10: one fold is the same both ways; several are the mean of what each gives alone, slopes included."""
    o = jnp.asarray(np.cos(5.0 * R30[:, 0]) + 0.3 * LABELS)
    one = [kind(o, jnp.asarray(LABELS), HALF) for kind in (hj.criteria.AUC(), PerFold(hj.criteria.AUC()))]
    assert float(one[0]) == pytest.approx(float(one[1]), rel=1e-12)
    folds = hj.folds.stratified(Y, 3, seed=0)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(gamma=0.7))
    inside = hj.criteria.FMeasure(threshold="tuned")
    search = Search("keerthi", Takes(), problem, X, Y, folds, PerFold(inside), inner_tol=1e-11)
    point = search.gradient(search.theta)
    outputs = hj.cross_decision(problem, problem.init(X, Y), X, Y, folds, tol=1e-11)
    hp = {"criterion": {"threshold": jnp.asarray(0.0)}}
    each = [float(inside(outputs[rows], Y[rows], None, hp)) for rows in np.asarray(folds.test) > 0]
    assert point.value == pytest.approx(np.mean(each), rel=1e-8)
    for k in range(3):
        ends = [search.gradient(search.theta + h * np.eye(3)[k]).value for h in (1e-5, -1e-5)]
        assert point.gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("d", [2, 52])
def test_one_linear_solve_for_all_hyperparameters(d, monkeypatch):
    """Item 9: all folds' adjoint systems are one call, for 2 widths and for 52."""
    import jax

    calls = []
    inside = implicit.bordered_solve
    counted = lambda *given, **options: calls.append(1) or inside(*given, **options)  # noqa: E731  # used once
    monkeypatch.setattr(implicit, "bordered_solve", counted)
    Z, y, folds = jnp.ones((17, d)), jnp.asarray(LABELS[:17]), hj.folds.stratified(LABELS[:17], 2)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.ARD())

    def value(hp):
        return hj.criteria.SmoothError()(hj.cross_decision(problem, hp, Z, y, folds), y, folds)

    jax.eval_shape(jax.grad(value), problem.init(Z, y))
    assert len(calls) == 1


def test_the_threshold_pays_for_an_unbalanced_f_measure():
    """Item 16 in the small: the tuned s0 beats 0 on the same outputs, and lies near their best cut."""
    y = np.where(X[:, 0] + 1.5 * np.random.default_rng(7).normal(size=60) > 1.6, 1.0, -1.0)
    criterion = hj.criteria.FMeasure(threshold="tuned")
    best = adapted(X=X, y=y, folds=4, criterion=criterion, max_steps=10)
    o = hj.cross_decision(best.problem, best.hp, X, y, best.folds)
    at_zero = criterion(o, jnp.asarray(y), best.folds, {"criterion": {"threshold": jnp.asarray(0.0)}})
    assert best.value < float(at_zero) - 0.05
    o = np.asarray(o)
    cuts = [2.0 * np.sum((o >= c) & (y > 0)) / (np.sum(o >= c) + np.sum(y > 0)) for c in o]
    assert 1.0 - best.hard >= np.max(cuts) - 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": hj.losses.Logistic()}, "loss Logistic: it takes Hinge, WeightedHinge"),
        ({"kernel": hj.kernels.Linear()}, "kernel Linear: it takes RBF, ARD"),
        ({"bias": False}, "bias=False: it takes True"),
        ({"criterion": hj.criteria.SquaredError()}, "criterion SquaredError: it takes SmoothError"),
        ({"init": {"loss": {"C": 0.0}}}, "must be positive"),
        ({"init": {"kernel": {"gamma": -1.0}}}, "must be positive"),
        ({"loss": hj.losses.WeightedHinge(m_pos=0.5, m_neg=-0.5)}, "m_pos . m_neg must be positive"),
        ({"criterion": hj.criteria.WeightedError(kappa=-1.0)}, "kappa"),
        ({"criterion": hj.criteria.SmoothError(steepness=0.0)}, "steepness"),
        ({"y": -np.ones(30)}, "one class"),
        ({"X": np.where(R30 == R30[3, 1], np.inf, R30)}, "infinite"),
        ({"folds": hj.Folds(HALF.train, HALF.test + HALF.train)}, "both trained and tested"),
        ({"pooled": False, "criterion": hj.criteria.ErrorRate()}, "criterion ErrorRate: it takes"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        adapted(**change)
