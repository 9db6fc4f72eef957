"""Criteria where the formulas end: outputs without spread, separable ones, one class, bad fields, bare callables."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.criteria._smoothing import calibrated, platt_targets
from hyperjax.criteria.base import apply, hard

pytestmark = pytest.mark.no_extras

C = hj.criteria
N = 12
Y = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
SCALED = [C.SmoothError(), C.WeightedError(kappa=0.3), C.FMeasure(), C.BalancedError(), C.AUC(), C.BreakEven(),
          C.PrecisionAtRecall(), C.PlattError(), C.PlattLoss(), C.PlattLoss(threshold="fixed")]  # fmt: skip


def name_of(criterion):
    return type(criterion).__name__ + getattr(criterion, "threshold", "")


@pytest.mark.parametrize("criterion", SCALED, ids=name_of)
def test_scale_of_outputs_does_not_matter(criterion):
    """V(2 o) = V(o), so that the gradient has no part along o."""
    o = np.sin(np.arange(N) * 1.7) + 0.4 * Y
    value, gradient = jax.jit(jax.value_and_grad(lambda o: criterion(o, Y)))(o)
    np.testing.assert_allclose(criterion(jnp.asarray(2.0 * o), Y), value, rtol=1e-10)
    np.testing.assert_allclose(np.dot(gradient, o), 0.0, atol=1e-12)
    assert np.abs(gradient).max() > 1e-3


NEGATIVE = 8 / 12  # the share of the negative class
CONSTANT = {  # value at outputs of 0.7, and of -0.7
    "SmoothError": (C.SmoothError(), NEGATIVE, 1 - NEGATIVE),
    "WeightedError": (C.WeightedError(kappa=0.5), 4 / 8, 4 / 8),
    "FMeasure": (C.FMeasure(), 1 - 8 / 16, 1.0),
    "BalancedError": (C.BalancedError(), 0.5, 0.5),
    "AUC": (C.AUC(), 0.5, 0.5),
    "BreakEven": (C.BreakEven(), NEGATIVE, NEGATIVE),
    "PrecisionAtRecall": (C.PrecisionAtRecall(), NEGATIVE, NEGATIVE),
    "PlattLoss": (C.PlattLoss(), 0.636514168294813, 0.636514168294813),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_outputs_without_spread(name):
    """The value of the constant classifier and a gradient of exactly 0, rounding in the outputs or not."""
    criterion, high, low = CONSTANT[name]
    run = jax.jit(jax.value_and_grad(lambda o: criterion(o, Y)))
    for level, expected in ((0.7, high), (-0.7, low)):
        for noise in (0.0, 1e-15):
            value, gradient = run(level + noise * np.cos(np.arange(N)))
            if name == "PlattLoss":  # the entropy of the classes, but for the two rows that Platt's targets add
                assert 0 <= float(value) - expected < 2e-3
            else:
                np.testing.assert_allclose(value, expected, rtol=1e-12)
            np.testing.assert_array_equal(np.asarray(gradient), 0.0)


@pytest.mark.parametrize("criterion", [C.PlattLoss(), C.PlattError()], ids=name_of)
def test_platt_fit_of_separable_and_of_reversed_outputs(criterion):
    run = jax.jit(jax.value_and_grad(lambda o: criterion(o, Y)))
    value, gradient = run(Y * (1.0 + 0.1 * np.arange(N)))
    assert 0.0 < value < 0.2 and np.all(np.isfinite(gradient)) and np.abs(gradient).max() > 1e-6
    # outputs that point the wrong way count as outputs that say nothing
    value, gradient = run(-Y + 0.1 * np.sin(np.arange(N)))
    np.testing.assert_allclose(value, run(np.zeros(N))[0], rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(gradient), 0.0)


def test_platt_fit_of_wild_outputs():
    """Outputs on which undamped Newton steps run away; at the minimum the residuals are blind to 1 and to o."""

    @jax.jit
    def residuals(o, y):
        t = platt_targets(y, jnp.ones_like(o))
        odds = calibrated(o, t, jnp.ones_like(o))
        r = jax.nn.sigmoid(odds) - t
        return jnp.mean(r), jnp.mean(r * o) / jnp.std(o), jnp.std(odds)

    for seed in (23, 54, 73, 162):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(30) < rng.choice([0.05, 0.2, 0.5]), 1.0, -1.0)
        y[:2] = 1.0, -1.0
        o = rng.standard_cauchy(30) * np.exp(rng.normal())
        o = o + rng.choice([0, 1, 5]) * y
        found = residuals(np.sign(o) * np.abs(o) ** rng.choice([1, 2, 3]), y)
        np.testing.assert_allclose(found[:2], 0.0, atol=1e-12)
        assert found[2] > 0.1


def test_platt_fit_is_continuous_where_it_gives_up():
    """From outputs that hardly help to outputs that hardly mislead the value does not jump."""
    noise = np.sin(np.arange(N) * 2.3)
    noise -= Y * np.dot(noise - noise.mean(), Y - Y.mean()) / np.sum((Y - Y.mean()) ** 2)
    run = jax.jit(lambda o: C.PlattLoss()(o, Y))
    values = [float(run(noise + e * Y)) for e in (0.1, 1e-6, -1e-6)]
    assert abs(values[1] - values[2]) < 1e-6 < values[2] - values[0]


def test_auc_in_blocks_is_auc_at_once(monkeypatch):
    o, w = np.sin(np.arange(N) * 1.7) + 0.4 * Y, np.linspace(0.5, 1.5, N)
    once = jax.value_and_grad(lambda o: C.AUC()(o, Y, weights=w))(jnp.asarray(o))
    monkeypatch.setattr("hyperjax.criteria.auc.BLOCK", 5 * N)  # blocks of five rows, the last one padded
    blocks = jax.value_and_grad(lambda o: C.AUC()(o, Y, weights=w))(jnp.asarray(o))
    for a, b in zip(once, blocks, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)


def test_auc_keeps_no_square_array():
    n = 3000
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    program = jax.jit(jax.grad(lambda o: C.AUC()(o, y))).lower(jnp.zeros(n)).compile()
    memory = program.memory_analysis()
    assert memory.temp_size_in_bytes < 4 * 8 * 2**20 < 8 * n * n  # a few blocks at most


@pytest.mark.parametrize("criterion", [C.AUC(), C.FMeasure(), C.BalancedError(), C.PrecisionAtRecall()], ids=name_of)
def test_without_a_positive_row_there_is_no_value(criterion):
    y = -np.ones(N)
    assert criterion.problem_with(y) is not None
    o = jnp.linspace(-1.0, 1.0, N)
    assert np.isnan(criterion(o, y)) and np.isnan(criterion.hard_value(o, y))


def test_break_even_shares_a_tie_at_the_cut():
    """Two positives: the row at 2 is one, and of the three at 1 a third is taken, a third of which is the other."""
    o, y = jnp.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    np.testing.assert_allclose(C.BreakEven().hard_value(o, y), 1.0 - (1.0 + 1.0 / 3.0) / 2.0, rtol=1e-14)


def test_precision_at_a_recall_that_is_reached_exactly():
    """k of 23 positives are enough for a recall of k / 23, whatever sums of weights round to."""
    o = jnp.asarray(-np.arange(46.0))
    y = np.where(np.arange(46) % 2, -1.0, 1.0)  # k positives bring k - 1 negatives
    run = jax.jit(jax.vmap(lambda recall, w: C.PrecisionAtRecall(recall=recall).hard_value(o, y, weights=w)))
    k, weight = map(np.ravel, np.meshgrid(np.arange(1, 23), [1.0, 0.1, 0.3, 0.7]))
    found = run(k / 23, np.tile(weight[:, None], (1, 46)))
    np.testing.assert_allclose(found, 1.0 - k / (2 * k - 1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (C.WeightedError(kappa=0.0), "kappa"),
        (C.WeightedError(kappa=-1.0), "kappa"),
        (C.SmoothError(steepness=0.0), "steepness"),
        (C.AUC(steepness=float("nan")), "steepness"),
        (C.BreakEven(steepness=-1.0), "steepness"),
        (C.ZeroOne(mu=-1.0), "mu"),
        (C.SmoothHingeLoss(mu=0.0), "mu"),
        (C.AbsoluteError(width=0.0), "width"),
        (C.PrecisionAtRecall(recall=1.0), "recall"),
        (C.PrecisionAtRecall(recall=0.0), "recall"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_fields_are_named(criterion, words):
    assert words in criterion.problem_with(Y)
    assert criterion.replace(**{words: 0.5}).problem_with(Y) is None


def test_constant_targets_have_no_r2():
    assert "variance" in C.R2().problem_with(np.ones(4))
    assert C.R2().problem_with(np.array([1.0, 2.0])) is None


def test_threshold_options():
    with pytest.raises(ValueError, match=r"threshold of FMeasure must be one of fixed, tuned, fitted, found 'free'"):
        C.FMeasure(threshold="free")
    with pytest.warns(UserWarning, match="WeightedError with a fitted threshold"):
        C.WeightedError(threshold="fitted")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        C.SmoothError(threshold="fitted")
    with pytest.raises(ValueError, match=r'needs hp\["criterion"\]\["threshold"\]'):
        C.SmoothError(threshold="tuned")(jnp.asarray(Y), Y)
    assert C.FMeasure().init(Y) == {} and C.FMeasure(threshold="tuned").init(Y) == {"threshold": 0.0}


def test_names():
    for module, known in (
        (hj.criteria, "f_measure auc r2"),
        (hj.losses, "squared_hinge"),
        (hj.kernels, "rbf ard exp_chi2"),
    ):
        assert set(known.split()) <= set(module.names())
        for name in module.names():
            assert type(module.by_name(name)) is type(module.by_name(name))
    assert isinstance(hj.kernels.by_name("exp_chi2"), hj.kernels.ExpChi2)
    assert isinstance(hj.losses.by_name("squared_hinge"), hj.losses.SquaredHinge)
    assert C.by_name("weighted_error", kappa=0.25).kappa == 0.25
    with pytest.raises(ValueError, match=r"there is no criterion 'f1'; choose one of absolute_error, auc, .*zero_one"):
        C.by_name("f1")
    with pytest.raises(ValueError, match="the kernel rbf has no field 'width'"):
        hj.kernels.by_name("rbf", width=2.0)


def test_bare_callables_get_what_they_name():
    folds, hp, w = hj.folds.kfold(N, 3), {"loss": {}}, np.ones(N)
    o = jnp.asarray(Y)
    assert apply(lambda o, y: 3.0, o, Y, folds, hp) == 3.0
    assert apply(lambda o, y, hp: hp is not None, o, Y, folds, hp, w)
    assert apply(lambda o, y, folds=None, weights=None: (folds, weights), o, Y, folds, hp, w) == (folds, w)
    assert apply(lambda o, y, **rest: sorted(rest), o, Y, folds, hp, w) == ["folds", "hp", "weights"]
    assert hard(lambda o, y: 3.0, o, Y, folds, hp) is None

    class Old(C.Criterion):
        def __call__(self, o, y, folds=None, hp=None):
            return 5.0

    assert apply(Old(), o, Y, folds, hp, w) == 5.0


def test_numbers_of_any_kind():
    """Integer outputs, labels, weights and fields, and fields that are tracers."""
    o, y = np.array([2, -1, -3, 1]), np.array([1, 1, -1, -1])
    given = np.array([1, 2, 1, 1])
    value = C.WeightedError(steepness=2, kappa=3)(o, y, weights=given)
    direct = C.WeightedError(steepness=2.0, kappa=3.0)(o.astype(float), y.astype(float), weights=given.astype(float))
    np.testing.assert_allclose(value, direct, rtol=1e-14)
    value = jax.jit(lambda criterion, o: criterion(o, y, weights=given))(C.WeightedError(steepness=2, kappa=3), o)
    np.testing.assert_allclose(value, direct, rtol=1e-14)

    def of_kappa(kappa):
        return C.WeightedError(steepness=1.0, kappa=kappa)(jnp.asarray(o, float), y)

    ends = [of_kappa(3.0 + h) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(jax.jit(jax.grad(of_kappa))(3.0), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
