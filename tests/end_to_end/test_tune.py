"""Does tuning help a person?  The path from data to hyperparameters, and every argument of `tune`."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize

import hyperjax as hj

pytestmark = pytest.mark.no_extras

N, D = 60, 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.8 * RNG.normal(size=N) > 0.8, 1.0, -1.0)
PROBLEM = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())
FOLDS = hj.folds.stratified(Y, 3, seed=1)
LOSS = hj.criteria.LogLoss()


def tuned(**settings):
    given = {"folds": FOLDS, "criterion": LOSS, "progress": False, **settings}
    return hj.tune(PROBLEM, X, Y, **given)


def criterion_at(C, gamma):
    hp = {"loss": {"C": jnp.asarray(C)}, "kernel": {"gamma": jnp.asarray(gamma)}}
    return float(LOSS(hj.cross_decision(PROBLEM, hp, X, Y, FOLDS), jnp.asarray(Y), FOLDS))


def point(hp):
    return float(hp["loss"]["C"]), float(hp["kernel"]["gamma"])


def test_the_minimum_is_that_of_scipy():
    result = tuned(tol=1e-9)
    found = minimize(lambda t: criterion_at(*np.exp(t)), np.log(point(result.start)), method="Nelder-Mead", tol=1e-7)
    assert result.value == pytest.approx(found.fun, rel=1e-5)
    np.testing.assert_allclose(np.log(point(result.hp)), found.x, atol=0.02)


def test_the_value_is_no_worse_than_that_of_a_dense_grid():
    result = tuned()
    grid = itertools.product(2.0 ** np.arange(-5, 10, 2.0), 2.0 ** np.arange(-8, 3, 1.5))
    assert result.value <= min(criterion_at(C, gamma) for C, gamma in grid) * 1.002
    assert result.converged and result.reason == "tolerance"


def test_values_belong_to_their_hyperparameters():
    result = tuned()
    for record in (*result.history, {"hp": result.hp, "value": result.value}):
        assert record["value"] == pytest.approx(criterion_at(*point(record["hp"])), rel=1e-6)
    assert result.history.best["value"] == result.value
    np.testing.assert_array_equal(result.history.best["hp"]["loss"]["C"], result.hp["loss"]["C"])


def test_gradients_belong_to_their_points():
    result = tuned(max_steps=2)
    for record in result.history:
        C, gamma = point(record["hp"])
        slopes = [
            (criterion_at(C * np.exp(e), gamma) - criterion_at(C * np.exp(-e), gamma)) / (2 * e) for e in (1e-4,)
        ] + [(criterion_at(C, gamma * np.exp(e)) - criterion_at(C, gamma * np.exp(-e))) / (2 * e) for e in (1e-4,)]
        assert record["gradient_norm"] == pytest.approx(np.linalg.norm(slopes), rel=1e-4)


def test_the_history_falls_and_counts():
    result = tuned()
    columns = result.history.to_dict()
    assert np.all(np.diff(columns["objective"]) <= 0)
    for name in ("evaluations", "inner_iterations", "kernel_products", "seconds"):
        assert np.all(np.diff(columns[name]) >= 0) and columns[name][-1] > 0, name
    assert result.n_evaluations - columns["evaluations"][-1] in (0, 1)  # the last may be a look that found nothing
    assert set(columns) >= {"step", "stage", "loss.C", "kernel.gamma", "value", "hard", "gap", "kkt", "codes"}
    assert all(len(codes) == 3 for codes in columns["codes"])


def test_the_final_model_is_trained_on_all_rows():
    result = tuned()
    alone = hj.solve(PROBLEM, {name: result.hp[name] for name in ("loss", "kernel")}, X, Y)
    np.testing.assert_allclose(result.decision(X), alone.decision(X), atol=1e-7)
    assert np.mean(np.sign(result.decision(X)) == Y) > 0.75


def test_the_same_seed_gives_the_same_bits():
    first, second = tuned(folds=3, seed=4), tuned(folds=3, seed=4)
    other = tuned(folds=3, seed=5)
    assert point(first.hp) == point(second.hp) and first.value == second.value
    assert point(other.hp) != point(first.hp)


def test_hold_keeps_a_value_and_bounds_are_kept():
    held = tuned(hold="kernel.gamma", init={"kernel": {"gamma": 0.3}})
    assert point(held.hp)[1] == pytest.approx(0.3, rel=1e-14)
    free = tuned()
    C = point(free.hp)[0]
    with pytest.warns(RuntimeWarning, match="bounds of loss.C"):
        bounded = tuned(bounds={"loss.C": (None, C / 3)}, init={"loss": {"C": C / 10}})
    assert bounded.at_bounds == ("loss.C",)
    assert point(bounded.hp)[0] == pytest.approx(C / 3, rel=1e-12)
    assert all(float(record["hp"]["loss"]["C"]) <= C / 3 * (1 + 1e-12) for record in bounded.history)


def test_a_result_starts_the_next_search():
    first = tuned()
    again = tuned(init=first)
    assert point(again.start) == point(first.hp)
    assert again.history[0]["value"] == pytest.approx(first.value, rel=1e-6)
    assert again.value <= first.value * (1 + 1e-6)


@pytest.mark.parametrize("optimizer", ["lbfgs", optax.adam(0.2), optax.lbfgs()], ids=["lbfgs", "adam", "optax-lbfgs"])
def test_every_optimizer_reaches_the_minimum(optimizer):
    best = tuned(tol=1e-6).value
    assert tuned(optimizer=optimizer, tol=1e-5, max_steps=60).value <= best * 1.003


def test_limits_and_callbacks_end_a_search():
    assert tuned(max_steps=1).reason == "max_steps"
    assert len(tuned(max_steps=1).history) == 2
    assert tuned(max_seconds=1e-9).reason == "max_seconds"
    seen = []
    ended = tuned(callback=lambda record: seen.append(record["step"]) or len(seen) == 2)
    assert ended.reason == "callback" and seen == [0, 1]
    assert not ended.converged


def test_an_interrupt_keeps_the_best_point():
    def stop(record):
        if record["step"] == 1:
            raise KeyboardInterrupt

    result = tuned(callback=stop)
    assert result.reason == "interrupted" and len(result.history) == 2
    assert result.value == result.history[1]["value"] < result.history[0]["value"]


def test_several_starts_are_searched_and_the_best_end_is_returned():
    """A slow wave and a fast one: a wide kernel fits the first, a narrow one both, with a ridge between them."""
    x = np.sort(RNG.uniform(size=N))
    waves = np.sin(6.0 * x) + 0.6 * np.sin(60.0 * x) + 0.1 * RNG.normal(size=N)
    problem = hj.Problem(hj.losses.Squared(), hj.kernels.RBF())
    settings = {"init": {"kernel": {"gamma": 60.0}}, "progress": False}
    one, many = (hj.tune(problem, x[:, None], waves, 4, starts=starts, **settings) for starts in (1, 6))
    ends = {record["start"]: record for record in many.history}
    assert sorted(ends) == list(range(6))
    assert point(many.history[0]["hp"]) == pytest.approx(point(many.start), rel=1e-12)
    alone = [record["value"] for record in many.history if record["start"] == 0]
    assert alone == pytest.approx([record["value"] for record in one.history], rel=1e-5)
    assert point(one.hp)[1] < 60.0 < point(many.hp)[1]
    assert many.value == min(record["value"] for record in ends.values()) < 0.3 * one.value
    assert many.converged and many.history.best["value"] == many.value


def test_several_starts_have_one_prior():
    result = tuned(starts=3, prior=500.0, max_steps=3)
    start = np.log(point(result.start))
    away = [np.sum((np.log(point(r["hp"])) - start) ** 2) for r in result.history]
    added = [r["objective"] - r["value"] for r in result.history]
    strength = 500.0 * result.history[0]["value"] / (N * 2.0**2)
    np.testing.assert_allclose(added, 0.5 * strength * np.asarray(away), rtol=1e-6, atol=1e-12)
    assert result.value == result.history.best["value"]


def test_a_fixed_inner_tolerance_is_used():
    assert max(record["kkt"] for record in tuned(inner_tol=1e-10).history) <= 1e-10


def test_weights_count_in_training_and_judging():
    doubled = np.r_[np.arange(N), np.arange(10)]
    weights = np.where(np.arange(N) < 10, 2.0, 1.0)
    train = np.asarray(FOLDS.train)
    twice = hj.Folds(jnp.asarray(train[:, doubled]), FOLDS.test[:, doubled])
    settings = {"criterion": LOSS, "progress": False, "tol": 1e-8}
    by_weight = hj.tune(PROBLEM, X, Y, FOLDS, weights=weights, **settings)
    by_rows = hj.tune(PROBLEM, X[doubled], Y[doubled], twice, init=by_weight.start, **settings)
    assert by_weight.value == pytest.approx(by_rows.value, rel=1e-8)
    np.testing.assert_allclose(np.log(point(by_weight.hp)), np.log(point(by_rows.hp)), atol=1e-3)


def test_groups_are_never_divided():
    groups = np.arange(N) // 6
    test = np.asarray(tuned(folds=3, groups=groups).folds.test)
    for group in range(10):
        assert len({tuple(column) for column in test[:, groups == group].T}) == 1


def test_classes_of_one_against_the_rest_share_their_hyperparameters():
    labels = np.digitize(X[:, 0], [-0.5, 0.6])
    several = np.where(labels[None, :] == np.arange(3)[:, None], 1.0, -1.0)
    folds = hj.folds.stratified(labels, 3, seed=0)
    result = hj.tune(PROBLEM, X, several, folds, LOSS, progress=False, max_steps=3)
    hp = {name: result.hp[name] for name in ("loss", "kernel")}
    alone = [hj.cross_decision(PROBLEM, hp, X, row, folds) for row in several]
    values = [float(LOSS(o, jnp.asarray(row), folds)) for o, row in zip(alone, several, strict=True)]
    assert result.value == pytest.approx(np.mean(values), rel=1e-6)
    assert result.decision(X).shape == (3, N)
    np.testing.assert_allclose(result.decision(X)[1], hj.solve(PROBLEM, hp, X, several[1]).decision(X), atol=1e-7)
    assert np.mean(np.argmax(result.decision(X), axis=0) == labels) > 0.8


def test_a_callable_criterion_and_its_hyperparameters():
    def brier(o, y):
        return jnp.mean((jax.nn.sigmoid(o) - (y + 1) / 2) ** 2)

    result = tuned(criterion=brier)
    assert result.hard is None and result.history[0]["hard"] is None
    assert result.value < 0.25


def test_a_tuned_threshold_is_one_more_hyperparameter():
    criterion = hj.criteria.FMeasure(threshold="tuned")
    result = tuned(criterion=criterion, max_steps=4)
    assert float(result.start["criterion"]["threshold"]) == 0.0
    assert float(result.hp["criterion"]["threshold"]) != 0.0
    o = hj.cross_decision(PROBLEM, {name: result.hp[name] for name in ("loss", "kernel")}, X, Y, FOLDS)
    assert result.value == pytest.approx(float(criterion(o, jnp.asarray(Y), FOLDS, result.hp)), rel=1e-6)
    assert result.hard == pytest.approx(float(criterion.hard_value(o, jnp.asarray(Y), FOLDS, result.hp)), rel=1e-6)


def test_nothing_is_written_or_warned(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned(max_steps=1)
    assert capsys.readouterr().out == ""


def test_nested_score_never_shows_a_search_its_own_test_rows():
    score = hj.nested_score(PROBLEM, X, Y, outer=3, folds=3, criterion=LOSS, max_steps=2, progress=False)
    assert len(score.results) == 3 and score.values.shape == (3,)
    test = np.asarray(score.folds.test) > 0
    for t, result in enumerate(score.results):
        assert result.solution.z.shape == (int((~test[t]).sum()),)
        o = result.decision(X[test[t]])
        np.testing.assert_allclose(score.values[t], np.mean(np.logaddexp(0, -Y[test[t]] * np.asarray(o))), rtol=1e-9)
    assert score.value == pytest.approx(score.values.mean())


@pytest.mark.filterwarnings("ignore:held out, the tuned machine")
def test_a_tuned_threshold_begins_where_rows_lie_on_both_sides():
    """Few positives, and false negatives cost most: from 0 the first steps fall onto the plateau of "always yes"."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 1.6, 1.0, -1.0)
    criterion = hj.criteria.WeightedError(kappa=0.05, threshold="tuned")
    constant = criterion.kappa * np.sum(y < 0) / (np.sum(y > 0) + criterion.kappa * np.sum(y < 0))
    result = hj.tune(hj.Problem(), X, y, 4, criterion, progress=False)
    first, second = (record["hp"]["criterion"]["threshold"] for record in result.history[:2])
    assert first == 0.0 != second
    assert result.history[0]["value"] > result.history[1]["value"] > result.value
    assert result.hard < 0.9 * constant
    held = hj.tune(hj.Problem(), X, y, 4, criterion, hold="criterion.threshold", progress=False)
    given = {"criterion": {"threshold": -0.5}}
    elsewhere = hj.tune(hj.Problem(), X, y, 4, criterion, init=given, max_steps=0, progress=False)
    assert held.hp["criterion"]["threshold"] == 0.0
    assert [record["hp"]["criterion"]["threshold"] for record in elsewhere.history] == [-0.5]
