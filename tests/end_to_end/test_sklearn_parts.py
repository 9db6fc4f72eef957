"""What the estimators are made of, one by one: sigmoids, splits, names, frames."""

import jax
import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

import hyperjax as hj
from hyperjax.sklearn.frames import LARGEST, SMALLEST, decision, frame_of, shrink
from hyperjax.sklearn.names import full, merge, params
from hyperjax.sklearn.platt import fit_sigmoid, probabilities
from hyperjax.sklearn.splits import make_folds

HP = {"loss": {"C": 1.0}, "kernel": {"beta": np.ones(2), "kernels": [{"gamma": 2.0}, {"gamma": 3.0}]}}


def negative_log_likelihood(ab, o, positive, w):
    n_pos, n_neg = w[positive].sum(), w[~positive].sum()
    t = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    p = np.clip(expit(-(ab[0] * o + ab[1])), 1e-300, 1 - 1e-16)
    return -np.sum(w * (t * np.log(p) + (1 - t) * np.log(1 - p)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("overlap", [0.0, 1.0, 3.0])
def test_the_sigmoid_minimises_platts_likelihood(scale, overlap, rng):
    positive = rng.random(80) < 0.3
    o = (2.0 * positive - 1.0 + overlap * rng.normal(size=80)) * scale
    w = rng.uniform(0.0, 3.0, size=80)
    a, b = fit_sigmoid(o, positive, w)
    found = negative_log_likelihood((a, b), o, positive, w)
    peer = scipy.optimize.minimize(
        lambda x: negative_log_likelihood((x[0] / scale, x[1]), o, positive, w), (-1.0, 0.0), method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 10000},
    )  # fmt: skip
    assert found <= peer.fun + 1e-9
    assert [a * scale, b] == pytest.approx(peer.x, rel=1e-4, abs=1e-4)
    assert a < 0


def test_weights_of_the_sigmoid_are_repetitions(rng):
    o, positive, w = rng.normal(size=30), np.arange(30) % 3 == 0, rng.integers(0, 4, size=30)
    repeated = fit_sigmoid(np.repeat(o, w), np.repeat(positive, w), np.ones(w.sum()))
    assert fit_sigmoid(o, positive, w.astype(float)) == pytest.approx(repeated, rel=1e-8)


def test_outputs_without_information_give_the_share_of_the_class():
    positive = np.arange(40) < 10
    a, b = fit_sigmoid(np.zeros(40), positive, np.ones(40))
    p = probabilities(np.zeros(3), np.array([[a, b]]))
    t = (10 * 11 / 12 + 30 / 32) / 40
    assert p == pytest.approx(np.tile([1 - t, t], (3, 1)), rel=1e-8)


def test_probabilities_that_all_vanish_become_equal():
    p = probabilities(np.full((1, 3), -1e6), np.tile([-1.0, 0.0], (3, 1)))
    assert p == pytest.approx(np.full((1, 3), 1 / 3))


@pytest.mark.parametrize(
    ("cv", "classifier", "peer"),
    [
        (3, True, StratifiedKFold(3)),
        (3, False, KFold(3)),
        (None, True, StratifiedKFold(5)),
        (KFold(4, shuffle=True, random_state=1), True, KFold(4, shuffle=True, random_state=1)),
        (PredefinedSplit(np.r_[-np.ones(6, int), np.arange(24) % 2]), True, None),
        (GroupKFold(3), False, GroupKFold(3)),
    ],
)
def test_folds_are_scikit_learns(cv, classifier, peer, rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    groups = np.arange(30) // 3 if isinstance(cv, GroupKFold) else None
    folds = make_folds(cv, X, y, groups, classifier)
    splits = list((peer or cv).split(X, y, groups))
    assert folds.repeats == 1 and folds.n_folds == len(splits)
    for train, test, (rows, held_out) in zip(folds.train, folds.test, splits, strict=True):
        assert np.array_equal(np.flatnonzero(train), np.sort(rows))
        assert np.array_equal(np.flatnonzero(test), np.sort(held_out))


def test_repeated_and_overlapping_splits(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    folds = make_folds(RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), X, y, None, True)
    assert (folds.repeats, folds.n_folds) == (2, 6)
    folds = make_folds(ShuffleSplit(4, test_size=0.4, random_state=0), X, y, None, True)
    assert (folds.repeats, folds.n_folds) == (4, 4)
    for test, (_, rows) in zip(folds.test, ShuffleSplit(4, test_size=0.4, random_state=0).split(X), strict=True):
        assert np.array_equal(np.flatnonzero(test), np.sort(rows))
    masks = [(np.arange(30) >= 10, np.arange(30) < 10)]
    assert np.array_equal(make_folds(masks, X, y, None, True).test[0], np.arange(30) < 10)


def test_too_few_members_rows_or_groups_give_fewer_folds_and_a_warning(rng):
    X, y = rng.normal(size=(20, 2)), np.r_[np.zeros(17), np.ones(3)]
    with pytest.warns(UserWarning, match=r"cv=5, but class 1.0 has only 3 members: using 3 folds"):
        assert make_folds(5, X, y, None, True).n_folds == 3
    with pytest.warns(UserWarning, match=r"cv=30, but y has only 20 rows: using 20 folds"):
        assert make_folds(30, X, y, None, False).n_folds == 20
    with pytest.warns(UserWarning, match=r"cv=5, but groups names only 4 groups: using 4 folds"):
        assert make_folds(5, X, y, np.arange(20) % 4, False).n_folds == 4
    with pytest.raises(ValueError, match="groups names only 1 group: cross-validation needs at least two"):
        make_folds(5, X, y, np.zeros(20), False)


def test_row_numbers_outside_the_data_are_refused(rng):
    with pytest.raises(ValueError, match="row numbers from 0 to 9"):
        make_folds([(np.arange(5), np.arange(5, 12))], rng.normal(size=(10, 1)), np.arange(10) % 2, None, True)


def test_short_names_where_they_are_unique():
    found = params(HP)
    assert set(found) == {"C", "beta", "kernels.0.gamma", "kernels.1.gamma"}
    assert found["kernels.1.gamma"] == 3.0 and isinstance(found["C"], float)
    twice = {"loss": {"C": 1.0, "gamma": 2.0}, "kernel": {"gamma": 3.0}}
    assert params(twice) == {"C": 1.0, "loss.gamma": 2.0, "kernel.gamma": 3.0}
    assert full({"C": 1, "kernel.gamma": 2}, twice) == {"loss.C": 1, "kernel.gamma": 2}
    assert full(["C", "kernel"], twice) == ["loss.C", "kernel"] and full("C", twice) == "loss.C"


def test_start_values_by_name_or_as_a_tree():
    for init in (
        {"C": 5.0, "kernels.0.gamma": 7.0, "beta": 0.5},
        {"loss": {"C": 5.0}, "kernel": {"beta": [0.5, 0.5], "kernels": [{"gamma": 7.0}, {"gamma": 3.0}]}},
    ):
        assert params(merge(init, HP)) == {
            "C": 5.0, "beta": pytest.approx([0.5, 0.5]), "kernels.0.gamma": 7.0, "kernels.1.gamma": 3.0
        }  # fmt: skip
    assert HP["loss"]["C"] == 1.0


def test_frames_take_in_what_they_may():
    def frame(problem, n, d):
        rows = np.random.default_rng(0).normal(size=(n, d))
        return tuple(frame_of(problem, problem.init(rows, np.ones(n)), n, d))

    rbf, ard = hj.Problem(), hj.Problem(kernel=hj.kernels.ARD())
    mixture = hj.Problem(kernel=hj.kernels.Weighted([hj.kernels.Linear(), hj.kernels.RBF()]))
    assert frame(rbf, 40, 3) == frame(rbf, SMALLEST, 20) == frame(mixture, 7, 2) == (SMALLEST, 32)
    assert frame(rbf, 40, 50) == (SMALLEST, 50) and frame(ard, 40, 3) == (SMALLEST, 3)
    assert frame(hj.Problem(kernel=hj.kernels.RBF(columns=(0,))), 40, 3) == (SMALLEST, 3)
    assert frame(rbf, 1000, 3) == frame(rbf, 961, 3) == (1024, 3)
    assert frame(rbf, LARGEST + 1, 3) == (LARGEST + 1, 3)
    assert frame(hj.Problem(kernel=hj.kernels.Precomputed()), 40, 40) == (40, 40)
    assert frame(hj.Problem(hj.losses.PerSample(hj.losses.Hinge())), 40, 3) == (40, 3)
    assert all(n <= frame(rbf, n, 3)[0] <= 1.125 * n for n in range(SMALLEST, LARGEST, 37))


@pytest.mark.parametrize("kernel", ["Linear", "RBF", "Laplacian", "Polynomial"])
def test_a_frame_changes_no_solution(kernel, rng):
    X, y = rng.normal(size=(41, 3)), np.where(rng.random(41) < 0.5, 1.0, -1.0)
    problem = hj.Problem(hj.losses.SquaredHinge(), getattr(hj.kernels, kernel)())
    hp = problem.init(X, y)
    frame = frame_of(problem, hp, 41, 3)
    assert frame == (SMALLEST, 32)
    padded = hj.solve(problem, hp, frame.fill(X), frame.targets(y), frame.weights(np.ones(41)))
    assert not np.any(padded.z[41:])
    small, plain = shrink(padded, 41, 3), hj.solve(problem, hp, X, y)
    assert all(isinstance(leaf, (np.ndarray, float)) for leaf in jax.tree.leaves(small))
    np.testing.assert_allclose(small.z, plain.z, rtol=0, atol=1e-9)
    np.testing.assert_allclose(small.outputs, plain.outputs, rtol=0, atol=1e-9)
    Z = rng.normal(size=(7, 3))
    np.testing.assert_allclose(decision(small, Z), plain.decision(Z), rtol=0, atol=1e-9)
