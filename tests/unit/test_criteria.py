"""Criteria against scikit-learn's metrics, with and without weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from sklearn import metrics

import hyperjax as hj

N = 60
RNG = np.random.default_rng(3)
Y = np.where(RNG.random(N) < 0.3, 1.0, -1.0)
O = np.round(RNG.normal(size=N) + 0.7 * Y, 1)  # ties within and between the classes  # noqa: E741  outputs, as everywhere
O[:3] = 0.0
# every third row has no weight, the others whole ones, so that repeating rows is a second oracle
W = np.where(np.arange(N) % 3 == 0, 0.0, RNG.integers(1, 4, size=N).astype(float))
ONE = np.ones(N)
TARGET = RNG.normal(size=N) + 2.0


def precision_at(recall):
    def oracle(w):
        # without weight in the thresholds: scikit-learn keeps the cuts of rows that count nothing
        precision, reached, _ = metrics.precision_recall_curve(Y[w > 0], O[w > 0], sample_weight=w[w > 0], pos_label=1)
        return 1.0 - precision[np.flatnonzero(reached >= recall - 1e-12)[-1]]

    return oracle


def break_even(w):
    """Where recall meets precision on the polygon of (rows found, true positives)."""
    order = np.argsort(-O, kind="stable")
    cuts = np.flatnonzero(np.diff(O[order], append=-np.inf))
    found = np.append(0.0, np.cumsum(w[order])[cuts])
    tp = np.append(0.0, np.cumsum((w * (Y > 0))[order])[cuts])
    positives = w[Y > 0].sum()
    return 1.0 - np.interp(positives, found, tp) / positives


def counted(f):
    return lambda w: f(Y, np.where(O >= 0, 1.0, -1.0), w)


def weighted_error(y, predicted, w):
    fn, fp = w[(y > 0) & (predicted < 0)].sum(), w[(y < 0) & (predicted > 0)].sum()
    return (fn + 0.2 * fp) / (w[y > 0].sum() + 0.2 * w[y < 0].sum())


C = hj.criteria
error = counted(lambda y, p, w: 1.0 - metrics.accuracy_score(y, p, sample_weight=w))
HARD = {
    "ErrorRate": (C.ErrorRate(), error),
    "SmoothError": (C.SmoothError(), error),
    "LogLoss": (C.LogLoss(), error),
    "HingeLoss": (C.HingeLoss(), error),
    "SmoothHingeLoss": (C.SmoothHingeLoss(), error),
    "ZeroOne": (C.ZeroOne(), error),
    "PlattLoss": (C.PlattLoss(threshold="fixed"), error),
    "WeightedError": (C.WeightedError(kappa=0.2), counted(weighted_error)),
    "FMeasure": (C.FMeasure(), counted(lambda y, p, w: 1.0 - metrics.f1_score(y, p, sample_weight=w))),
    "BalancedError": (
        C.BalancedError(),
        counted(lambda y, p, w: 1.0 - metrics.balanced_accuracy_score(y, p, sample_weight=w)),
    ),
    "AUC": (C.AUC(), lambda w: 1.0 - metrics.roc_auc_score(Y, O, sample_weight=w)),
    "PrecisionAtRecall": (C.PrecisionAtRecall(recall=0.7), precision_at(0.7)),
    "PrecisionAtRecall low": (C.PrecisionAtRecall(recall=0.2), precision_at(0.2)),
    "BreakEven": (C.BreakEven(), break_even),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_values(name):
    criterion, oracle = HARD[name]
    hard = jax.jit(lambda w: criterion.hard_value(jnp.asarray(O), Y, weights=w))
    for w in (ONE, W):
        np.testing.assert_allclose(hard(w), oracle(w), rtol=1e-12)


EXACT = {
    "LogLoss": (
        C.LogLoss(),
        Y,
        lambda w: metrics.log_loss(Y, 1.0 / (1.0 + np.exp(-O)), sample_weight=w, labels=[-1, 1]),
    ),
    "HingeLoss": (C.HingeLoss(), Y, lambda w: metrics.hinge_loss(Y, O, sample_weight=w)),
    "SquaredError": (C.SquaredError(), TARGET, lambda w: metrics.mean_squared_error(TARGET, O, sample_weight=w)),
    "R2": (C.R2(), TARGET, lambda w: 1.0 - metrics.r2_score(TARGET, O, sample_weight=w)),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_values(name):
    criterion, y, oracle = EXACT[name]
    for w in (ONE, W):
        np.testing.assert_allclose(criterion(jnp.asarray(O), y, weights=w), oracle(w), rtol=1e-12)


def test_absolute_error_is_its_hard_value_but_for_the_width():
    sharp = C.AbsoluteError(width=1e-7)
    for w in (ONE, W):
        expected = metrics.mean_absolute_error(TARGET, O, sample_weight=w)
        np.testing.assert_allclose(sharp.hard_value(jnp.asarray(O), TARGET, weights=w), expected, rtol=1e-12)
        np.testing.assert_allclose(sharp(jnp.asarray(O), TARGET, weights=w), expected, rtol=1e-6)


# outputs without ties, 0 or rows at the threshold 0.3, which no steepness can decide
APART = RNG.permutation(np.linspace(-2.0, 2.0, N)) + 0.007
STEEP = {
    "SmoothError": C.SmoothError(steepness=1e7),
    "SmoothError tuned": C.SmoothError(steepness=1e7, threshold="tuned"),
    "WeightedError": C.WeightedError(steepness=1e7, kappa=0.2),
    "FMeasure": C.FMeasure(steepness=1e7, threshold="tuned"),
    "BalancedError": C.BalancedError(steepness=1e7),
    "AUC": C.AUC(steepness=1e7),
    "BreakEven": C.BreakEven(steepness=1e4),
}


@pytest.mark.parametrize("name", STEEP)
def test_steep_smoothing_is_the_hard_value(name):
    criterion = STEEP[name]
    hp = {"criterion": {"threshold": 0.3}} if criterion.init(Y) else {}
    o = jnp.asarray(APART)
    smooth, hard = criterion(o, Y, None, hp), criterion.hard_value(o, Y, None, hp)
    np.testing.assert_allclose(smooth, hard, atol=1e-9)
    mild = criterion.replace(steepness=5.0)(o, Y, None, hp)
    assert abs(float(mild) - float(hard)) > 1e-5


def test_steep_precision_interpolates_between_cuts():
    """tp is the recall asked for, a part of a row included; fp counts whole rows above the positive at the cut."""
    o, recall = APART, 0.73
    value = C.PrecisionAtRecall(recall=recall, steepness=1e5)(jnp.asarray(o), Y)
    tp = recall * (Y > 0).sum()
    cut = np.sort(o[Y > 0])[::-1][int(np.ceil(tp)) - 1]
    fp = ((Y < 0) & (o > cut)).sum()
    np.testing.assert_allclose(value, fp / (tp + fp), rtol=1e-9)


def test_tuned_threshold_moves_the_hard_value():
    o, criterion = jnp.asarray(O), C.FMeasure(threshold="tuned")
    for s0 in (0.0, -0.4, 0.5):
        expected = 1.0 - metrics.f1_score(Y, np.where(O >= s0, 1.0, -1.0))
        found = criterion.hard_value(o, Y, None, {"criterion": {"threshold": s0}})
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_platt_fit_is_the_one_scipy_finds():
    for w in (ONE, W):
        positives, negatives = w[Y > 0].sum(), w[Y < 0].sum()
        t = np.where(Y > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))

        def nll(x, t=t, w=w):
            odds = x[0] * O + x[1]
            return np.average(np.logaddexp(0.0, odds) - t * odds, weights=w)

        a, b = optimize.minimize(nll, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
        p = 1.0 / (1.0 + np.exp(-(a * O + b)))
        expected = metrics.log_loss(Y, p, sample_weight=w, labels=[-1, 1])
        np.testing.assert_allclose(C.PlattLoss()(jnp.asarray(O), Y, weights=w), expected, rtol=1e-7)
        expected = np.average(np.where(Y > 0, 1.0 - p, p), weights=w)
        for criterion in (C.PlattError(), C.SmoothError(threshold="fitted")):
            np.testing.assert_allclose(criterion(jnp.asarray(O), Y, weights=w), expected, rtol=1e-7)
            hard = metrics.zero_one_loss(Y > 0, p >= 0.5, sample_weight=w)
            np.testing.assert_allclose(criterion.hard_value(jnp.asarray(O), Y, weights=w), hard, rtol=1e-12)


@pytest.mark.parametrize("w", [ONE, W], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "make", [hj.criteria.FMeasure, hj.criteria.BalancedError, lambda **k: hj.criteria.WeightedError(kappa=0.05, **k)]
)
def test_the_best_cut_is_the_best_of_all_thresholds(make, w):
    criterion = make(threshold="tuned")
    found = criterion.best_cut(O, Y, w)

    def hard(threshold):
        hp = {"threshold": jnp.asarray(threshold)}
        return float(criterion.hard(jnp.asarray(O), jnp.asarray(Y), jnp.asarray(w), hp))

    between = np.unique(O)[:-1] + 0.05  # outputs are rounded to 0.1: every cut with rows on both sides
    assert hard(found) == pytest.approx(min(map(hard, between)), abs=1e-12)
    assert criterion.best_cut(np.ones(N), Y, w) is None
    counted = criterion.best_cut(O[w > 0], Y[w > 0], w[w > 0])
    assert found == counted, "rows without weight have no say"
