"""SGD + DCD of Jiang & Siddiqui: its Jacobians against the reference values of G5, its steps against their promises."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.methods import _steps
from hyperjax.methods.jiang_siddiqui import _projected, jiang_siddiqui
from tests.gradients.r30 import G5, LABELS, R30

pytestmark = pytest.mark.no_extras

PLAIN = hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), False)
COLUMN = hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), "regularised")
HALF = hj.folds.predefined(np.where(np.arange(30) < 20, -1, 0))
BY_FIVE = hj.folds.predefined(np.arange(30) % 5)
Z = LABELS[:, None] * G5

# C: bounded, free, V, exact derivative, the paper's
TABLE = {
    0.01: (20, 0, 9.9530911638, -4.690883617, -4.690883617),
    0.05: (20, 0, 9.7654558191, -4.690883617, -4.690883617),
    0.1: (18, 2, 9.5485929034, 14.19735515, -1.373268667),
    0.2: (14, 4, 9.4445346392, -0.1062710806, 1.429966733),
    0.5: (10, 3, 9.7470868594, 0.135425861, -0.9216876491),
    1.0: (8, 4, 9.5948183556, 0.1352884421, 2.665480303),
    2.0: (7, 4, 9.8182787391, 0.7725106166, 3.32574204),
    5.0: (6, 5, 10.6519885691, 0.0, 4.178139066),
    10.0: (4, 5, 12.0446941453, 0.0, -1.757446437),
}


def search(problem=PLAIN, X=G5, y=LABELS, folds=BY_FIVE, **options):
    return jiang_siddiqui(problem, X, y, folds, **{"progress": False, "compilation": "quick", **options})


@functools.cache
def settled(C, jacobian, X="G5"):
    """C held where it is by its bounds, the fold solved to rounding."""
    rows = {"G5": G5, "R30": R30}[X]
    return search(
        X=rows, folds=HALF, jacobian=jacobian, samples="all", C_min=C, C_max=C, passes=200, max_steps=20
    ).details


@pytest.mark.parametrize("C", TABLE)
def test_derivatives_of_the_table(C):
    bounded, free, V, exact, paper = TABLE[C]
    for jacobian, derivative in (("exact", exact), ("paper", paper)):
        found = settled(C, jacobian)
        assert (found["bounded"][-1], found["free"][-1]) == (bounded, free)
        np.testing.assert_allclose(found["V"][-1], V, rtol=1e-10)
        np.testing.assert_allclose(found["gradient"][-1], derivative, atol=1e-7)


def test_the_solution_at_one_half():
    found = settled(0.5, "exact")
    w = (1.2803697986, 0.0581253296, 0.0917765825, -0.0950093207, 0.2367091467)
    np.testing.assert_allclose(found["w"][0], w, atol=1e-8)
    alpha = found["alpha"][0]
    np.testing.assert_allclose(alpha[[2, 3, 7]], (0.0333174233, 0.1389285141, 0.4678900864), atol=1e-8)
    assert np.flatnonzero(alpha == 0.5).tolist() == [1, 4, 6, 9, 11, 13, 14, 15, 16, 18]
    assert abs(found["gap"][-1, 0]) < 1e-9 and found["kkt"][-1, 0] < 1e-12


def test_the_exact_derivative_is_that_of_the_value():
    for C in (0.1, 0.2, 1.0, 2.0):
        step = 1e-6 * C
        V = [settled(at, "exact")["V"][-1] for at in (C - step, C + step)]
        np.testing.assert_allclose(settled(C, "exact")["gradient"][-1], (V[1] - V[0]) / (2 * step), rtol=1e-5)


def test_two_features_with_two_free_rows_move_nothing():
    for C in (0.2, 0.5, 2.0, 10.0):
        found = settled(C, "exact", "R30")
        assert found["gradient"][-1] == 0.0 and found["free"][-1] == 2
        if C >= 2.0:
            np.testing.assert_allclose(found["w"][0], (1.5484570332, 0.0747372141), atol=1e-9)


def test_weights_move_as_differences_say_even_where_alpha_is_not_unique(rng):
    X = rng.normal(size=(12, 4))
    X = np.concatenate([X, X, rng.normal(size=(6, 4))])  # duplicates: more free rows than features
    y = np.sign(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * np.sin(7.0 * X[:, 0]))
    folds = hj.folds.predefined(np.where(np.arange(30) < 24, -1, 0))

    def at(C):
        options = dict(C_min=C, C_max=C, passes=400, max_steps=20, samples="all", jacobian="exact")
        return search(X=X, y=y, folds=folds, **options).details

    C, step = 0.3, 3e-7
    here = at(C)
    slope = (at(C + step)["w"] - at(C - step)["w"]) / (2 * step)
    split = _split(X, y, folds)
    alpha = jnp.asarray(here["alpha"])
    bounded = jnp.where(alpha == C, split.s, 0.0)
    free = (split.s > 0) & (alpha > 0) & (alpha < C)
    np.testing.assert_allclose(_projected(split, split.weights(bounded), free), slope, atol=1e-6)


def _split(X, y, folds):
    signed, train, test = jnp.asarray(y[:, None] * X), folds.train, folds.test
    one = jnp.ones(())
    return _steps.Split(None, jnp.asarray(X), signed, jnp.sum(signed**2, axis=1), train, test, one, one, one)


def test_one_sample_estimates_average_to_the_derivative():
    found = settled(0.2, "exact")
    split = _split(G5, LABELS, HALF)
    w, alpha = jnp.asarray(found["w"]), jnp.asarray(found["alpha"])
    free = (split.s > 0) & (alpha > 0) & (alpha < 0.2)
    slope = np.asarray(_projected(split, split.weights(jnp.where(alpha == 0.2, split.s, 0.0)), free))
    violators = _steps.held_out_violators(split, w)
    keys = jax.random.split(jax.random.key(0), 100_000)
    drawn, found_any = jax.jit(jax.vmap(lambda key: _steps.draw(key, violators)))(keys)
    assert found_any.all() and set(np.unique(drawn)) == set(np.flatnonzero(np.asarray(violators[0])))
    g = -(Z[np.asarray(drawn)[:, 0]] @ slope[0])
    expected = found["gradient"][-1] / np.count_nonzero(violators)
    assert abs(g.mean() - expected) < 3.0 * g.std() / np.sqrt(len(g))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"jacobian": "exact", "samples": "all"},
        {"shrink": "rescale", "problem": COLUMN},
        {"passes": 0, "max_steps": 60},
        {"C_max": 0.5},
    ],
    ids=["paper", "exact", "rescale", "one row", "bounded"],
)
def test_promises_of_every_step(options):
    result = search(**options)
    found, K = result.details, options.get("max_steps", 150)
    C = np.r_[1e-4, found["C"]]
    reach = np.cumsum(1.0 / np.arange(1, K + 1)) / np.sqrt(5)
    low, high = 1e-4, options.get("C_max", 1e6)
    assert len(found["C"]) == K and (low <= C).all() and (C <= high).all()
    assert (np.abs(C[1:] - 1e-4) <= reach + 1e-12).all()
    moved = np.abs(np.diff(C)) * np.arange(1, K + 1) * np.sqrt(5)
    cut = (C[1:] == low) | (C[1:] == high)
    assert np.logical_or.reduce([np.isclose(moved, 1.0), moved == 0.0, cut]).all()
    down = (found["gradient"] > 1e-14) & ~cut
    assert (np.diff(C)[down] < 0).all() and down.any()
    alpha = found["alpha"]
    assert (alpha >= 0).all() and (alpha <= C[-1]).all() and (alpha * np.asarray(BY_FIVE.test) == 0).all()
    rows = np.c_[G5, np.ones(30)] if options.get("problem") is COLUMN else G5
    np.testing.assert_allclose(found["w"], (alpha * LABELS) @ rows, atol=1e-9)
    np.testing.assert_allclose(result.hp["loss"]["C"], C[-1], rtol=1e-12)
    outputs = np.sum(np.asarray(BY_FIVE.test) * (found["w"] @ rows.T), axis=0)
    assert result.value == pytest.approx(np.mean(np.maximum(1 - LABELS * outputs, 0)))
    assert result.hard == pytest.approx(np.mean((outputs >= 0) != (LABELS > 0)))
    assert found["V"][-1] == pytest.approx(result.value * 30 / 5)
    assert len(result.history) == K and result.reason == "finished"


def test_options_change_the_search_and_seeds_repeat_it():
    first, again, other = search(), search(), search(seed=1)
    np.testing.assert_array_equal(first.details["C"], again.details["C"])
    np.testing.assert_array_equal(first.details["alpha"], again.details["alpha"])
    assert not np.array_equal(first.details["C"], other.details["C"])
    assert not np.array_equal(first.details["C"], search(jacobian="exact").details["C"])
    logarithmic = search(logarithmic=True).details["C"]
    steps = np.abs(np.diff(np.log(np.r_[1e-4, logarithmic]))) * np.arange(1, 151) * np.sqrt(5)
    assert np.count_nonzero(np.isclose(steps, 1.0)) > 75


def test_weights_count_rows_as_copies_do():
    twice = np.where(np.arange(30) % 7 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(30), twice.astype(int))
    options = dict(C_min=0.3, C_max=0.3, passes=200, max_steps=20, samples="all", jacobian="exact")
    weighted = search(weights=twice, folds=HALF, **options).details
    folds = hj.folds.predefined(np.where(repeated < 20, -1, 0))
    by_hand = search(X=G5[repeated], y=LABELS[repeated], folds=folds, **options).details
    for name in ("w", "V", "gradient"):
        np.testing.assert_allclose(weighted[name][-1], by_hand[name][-1], rtol=1e-6)


def test_nothing_to_learn_from_leaves_C_alone():
    # all held-out margins are far beyond 1, and a row of zeros divides by nothing
    X = np.r_[np.c_[LABELS[:20], LABELS[:20]], 1e6 * np.c_[LABELS[20:], LABELS[20:]]]
    X[3] = 0.0
    found = search(X=X, folds=HALF, max_steps=10).details
    assert (found["C"] == 1e-4).all() and (found["gradient"] == 0).all() and (found["violators"] == 0).all()
    assert np.isfinite(found["w"]).all()


def test_a_callback_ends_the_search_with_the_models_of_its_step():
    result = search(callback=lambda record: record["step"] == 9)
    assert (result.reason, len(result.history), len(result.details["C"])) == ("callback", 10, 10)
    np.testing.assert_allclose(result.details["w"], (result.details["alpha"] * LABELS) @ G5, atol=1e-9)


BAD = {
    "labels": (dict(y=2.0 * LABELS), "labels"),
    "one class": (dict(y=np.ones(30)), "one class only"),
    "NaN": (dict(X=np.where(G5 == G5[4, 1], np.nan, G5)), "X holds 1 NaN"),
    "length": (dict(y=LABELS[:-1]), "30 rows"),
    "members": (dict(folds=15), "only"),
    "untested": (dict(folds=np.ones((2, 30))), "folds"),
    "C_min": (dict(C_min=0.0), "C_min=0.0"),
    "ends": (dict(C_min=2.0, C_max=1.0), "exchange"),
    "steps": (dict(max_steps=0), "max_steps=0"),
    "passes": (dict(passes=-1), "passes=-1"),
    "jacobian": (dict(jacobian="free"), "jacobian='free': choose 'paper' or 'exact'"),
    "samples": (dict(samples="two"), "samples='two'"),
    "shrink": (dict(shrink=None), "shrink=None"),
    "loss": (dict(problem=hj.Problem(hj.losses.Logistic(), hj.kernels.Linear(), False)), "Logistic: it takes Hinge"),
    "kernel": (dict(problem=hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), False)), "RBF: it takes Linear"),
    "bias": (dict(problem=hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), True)), "bias=True"),
    "criterion": (dict(criterion=hj.criteria.ErrorRate()), "criterion ErrorRate: it takes HingeLoss"),
    "classes": (dict(y=np.stack([LABELS, -LABELS])), "2 rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    given, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        search(**given)
