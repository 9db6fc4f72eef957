"""Many hyperparameters: stages, the prior, one C a row, a thousand coordinates."""

import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 12))
Y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 3] ** 2 + 0.3 * RNG.normal(size=100) > 0.8, 1.0, -1.0)
PROBLEM = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.ARD())
FOLDS = hj.folds.stratified(Y, 3, seed=0)


def tuned(problem=PROBLEM, **settings):
    given = {"folds": FOLDS, "criterion": hj.criteria.LogLoss(), "progress": False, **settings}
    return hj.tune(problem, X, Y, **given)


def widths(hp):
    return np.asarray(hp["kernel"]["gamma"])


def test_one_width_first_and_then_one_a_feature():
    result = tuned(max_steps=8)
    stages = [record["stage"] for record in result.history]
    assert stages == sorted(stages, key=["isotropic", "full"].index) and set(stages) == {"isotropic", "full"}
    for record in result.history:
        ratio = widths(record["hp"]) / widths(record["hp"])[0]
        assert (np.ptp(ratio) < 1e-12) == (record["stage"] == "isotropic" or record["step"] == stages.index("full"))
    last, first = [r for r in result.history if r["stage"] == "isotropic"][-1], result.history[stages.index("full")]
    assert first["value"] == pytest.approx(last["value"], rel=1e-6)
    assert result.value < last["value"]


def test_relevant_features_get_the_large_widths():
    gamma = widths(tuned(max_steps=25).hp)
    assert set(np.argsort(gamma)[-2:]) == {0, 3}


def test_the_prior_pulls_towards_the_isotropic_widths():
    spread = [np.std(np.log(widths(tuned(prior=prior, max_steps=15).hp))) for prior in (0.2, "auto", 100.0)]
    assert spread[0] > spread[1] > spread[2]


def test_the_prior_is_on_for_many_coordinates_only():
    with_prior = tuned(max_steps=4).history[-1]
    assert with_prior["objective"] > with_prior["value"]
    few = tuned(hj.Problem(hj.losses.SquaredHinge(), hj.kernels.RBF()), max_steps=2).history[-1]
    assert few["objective"] == few["value"]
    without = tuned(prior=None, max_steps=2).history[-1]
    assert without["objective"] == without["value"]


def test_a_stage_of_names_moves_those_alone():
    result = tuned(stages=[["loss.C"], "isotropic"], max_steps=2)
    only = [record for record in result.history if record["stage"] == "loss.C"]
    assert len({float(widths(record["hp"])[0]) for record in only}) == 1
    assert len({float(record["hp"]["loss"]["C"]) for record in only}) > 1


def test_one_cost_a_row_finds_flipped_labels_with_a_clean_validation_set():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(160, 2))
    y = np.where(rows[:, 0] > 0, 1.0, -1.0)
    flipped = rng.permutation(100)[:20]
    y[flipped] *= -1
    trusted = np.where(np.arange(160) < 100, 1.0, 0.0)[None, :]
    problem = hj.Problem(hj.losses.PerSample(hj.losses.Logistic()), hj.kernels.RBF())
    result = hj.tune(problem, rows, y, trusted, hj.criteria.LogLoss(), max_steps=15, progress=False, tol=1e-4)
    C = np.asarray(result.hp["loss"]["C"])
    assert C.shape == (160,)
    others = np.setdiff1d(np.arange(100), flipped)
    assert np.mean(C[flipped] < np.median(C[others])) >= 0.9


def test_flipped_labels_are_found_by_rows_whose_labels_are_as_bad():
    """Nobody has checked any row; all costs move from the start, each by itself."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 4))
    y = np.where(rows[:, 0] * rows[:, 1] + 0.5 * rows[:, 2] > 0, 1.0, -1.0)
    flipped = rng.permutation(300)[:60]
    y[flipped] *= -1
    problem = hj.Problem(hj.losses.PerSample(hj.losses.Hinge()), hj.kernels.RBF())
    result = hj.tune(problem, rows, y, 5, hj.criteria.ZeroOne(mu=1.0), progress=False)
    C, others = np.asarray(result.hp["loss"]["C"]), np.setdiff1d(np.arange(300), flipped)
    assert np.mean(C[flipped] < np.median(C[others])) >= 0.8
    assert {record["stage"] for record in result.history} == {"full"}


def test_the_kernel_on_the_informative_columns_gets_the_weight():
    kernel = hj.kernels.Weighted((hj.kernels.RBF(columns=(0, 3)), hj.kernels.RBF(columns=(1, 2))))
    result = tuned(hj.Problem(hj.losses.SquaredHinge(), kernel), max_steps=8)
    beta = np.asarray(result.hp["kernel"]["beta"])
    assert np.all(beta >= 0) and beta[0] > 2 * beta[1]


def test_limited_memory_takes_over_for_many_coordinates():
    rows = jnp.asarray(RNG.normal(size=(40, 220)))
    y = np.where(np.asarray(rows)[:, 0] > 0, 1.0, -1.0)
    result = hj.tune(
        PROBLEM, rows, y, 2, hj.criteria.LogLoss(), max_steps=4, progress=False, stages=["full"], prior=None
    )
    assert widths(result.hp).shape == (220,)
    assert np.all(np.diff(result.history.to_dict()["objective"]) < 0)
