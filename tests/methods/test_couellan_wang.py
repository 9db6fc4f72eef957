"""Bilevel stochastic gradient against a plain NumPy run of the same draws, and against what its derivation implies."""

import numpy as np
import pytest

import hyperjax as hj
from hyperjax.methods.couellan_wang import couellan_wang
from tests.gradients.r30 import G5, LABELS

pytestmark = pytest.mark.no_extras

PLAIN = hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), False)
BY_FIVE = hj.folds.predefined(np.arange(30) % 5)


def search(problem=PLAIN, X=G5, y=LABELS, folds=BY_FIVE, **options):
    return couellan_wang(problem, X, y, folds, **{"progress": False, "compilation": "quick", **options})


def test_steps_keep_their_promises():
    result = search()
    found = result.details
    C = np.r_[1e-4, found["C"]]
    k = np.arange(1, 151)
    moved = np.abs(np.diff(C)) * k * np.sqrt(5)
    assert np.logical_or.reduce([np.isclose(moved, 1.0), moved == 0.0, C[1:] == 1e-4]).all()
    away = found["gradient"] > 0
    assert (np.diff(C)[away] <= 0).all() and (np.diff(C)[found["gradient"] < 0] > 0).all()
    # the first step, of length 1, wipes out the random start: w is what its own coefficients say
    np.testing.assert_allclose(found["w"], (found["alpha"] * LABELS) @ G5, atol=1e-12)
    # w is the mean of the C_s y_s x_s drawn so far, and no step trains on a held-out row
    assert (found["alpha"] * np.asarray(BY_FIVE.test) == 0).all()
    assert (found["alpha"].sum(axis=1) <= C.max()).all() and (found["alpha"] >= 0).all()
    outputs = np.sum(np.asarray(BY_FIVE.test) * (found["w"] @ G5.T), axis=0)
    assert result.value == pytest.approx(np.mean(np.maximum(1 - LABELS * outputs, 0)))
    assert (len(result.history), result.reason) == (150, "finished")
    np.testing.assert_allclose(result.hp["loss"]["C"], found["C"][-1], rtol=1e-12)


def test_coefficients_are_the_running_mean_of_C_on_the_drawn_rows():
    """With every row a violator the sum of alpha after k steps is the mean of C before each of them."""
    found = search(X=1e-3 * G5, max_steps=40).details
    C = np.r_[1e-4, found["C"]][:-1]
    np.testing.assert_allclose(found["alpha"].sum(axis=1), np.mean(C), rtol=1e-9)


def test_the_effective_C_is_that_of_one_violator():
    """At fixed C, w tends to C times the mean of the violators' y x: a machine with C over their number."""
    C, X = 0.02, 0.3 * G5
    folds = hj.folds.predefined(np.where(np.arange(30) < 20, -1, 0))
    found = search(X=X, folds=folds, C_min=C, C_max=C, max_steps=2000).details
    mean = C * (LABELS[:20, None] * X[:20]).mean(axis=0)
    assert (LABELS[:20] * (X[:20] @ mean)).max() < 1.0
    np.testing.assert_allclose(found["w"][0], mean, atol=4.0 * C * X.std() / np.sqrt(2000))
    all_of_them = C * (LABELS[:20, None] * X[:20]).sum(axis=0)
    np.testing.assert_allclose(20.0 * found["w"][0], all_of_them, atol=0.2 * np.abs(all_of_them).max())


def test_no_violator_leaves_C_alone_and_shrinks_w():
    X = np.r_[np.c_[LABELS[:20], LABELS[:20]], 1e9 * np.c_[LABELS[20:], LABELS[20:]]]
    folds = hj.folds.predefined(np.where(np.arange(30) < 20, -1, 0))
    found = search(X=X, folds=folds, max_steps=10).details
    assert (found["C"] == 1e-4).all() and np.isfinite(found["w"]).all()


def test_seeds():
    first, again, other = search(max_steps=50), search(max_steps=50), search(max_steps=50, seed=3)
    np.testing.assert_array_equal(first.details["C"], again.details["C"])
    np.testing.assert_array_equal(first.details["w"], again.details["w"])
    assert not np.array_equal(first.details["C"], other.details["C"])


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(C_min=-1.0), "C_min=-1.0"),
        (dict(C_min=3.0, C_max=2.0), "exchange"),
        (dict(max_steps=1.5), "max_steps=1.5"),
        (dict(y=LABELS + 1.0), "labels"),
        (dict(problem=hj.Problem(hj.losses.SquaredHinge(), hj.kernels.Linear(), False)), "it takes Hinge"),
        (dict(problem=hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), True)), "bias=True: it takes False"),
        (dict(criterion=hj.criteria.SmoothError()), "SmoothError: it takes HingeLoss"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        search(**given)
