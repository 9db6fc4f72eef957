"""Splits: what each fold holds, that they repeat bit for bit, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperjax import folds
from hyperjax.folds import Folds

pytestmark = [pytest.mark.float32, pytest.mark.no_extras]


def signs(positive: int, negative: int) -> np.ndarray:
    return np.random.default_rng(3).permutation(np.r_[np.ones(positive), -np.ones(negative)])


def is_partition(split: Folds) -> bool:
    """Every row tested once a repeat, and trained with weight 1 exactly where it is not tested."""
    test = np.asarray(split.test).reshape(split.repeats, -1, split.n_samples)
    return bool(np.all(test.sum(axis=1) == 1) and np.array_equal(split.train, 1 - np.asarray(split.test)))


def equal(a: Folds, b: Folds) -> bool:
    return np.array_equal(a.train, b.train) and np.array_equal(a.test, b.test) and a.repeats == b.repeats


@pytest.mark.parametrize(("positive", "negative", "k"), [(37, 66, 5), (5, 96, 5), (8, 8, 8), (31, 30, 2), (7, 13, 3)])
def test_stratified_balances_classes_and_sizes(positive, negative, k):
    y = signs(positive, negative)
    split = folds.stratified(y, k, seed=1)
    test = np.asarray(split.test)
    assert (split.n_folds, split.n_samples, split.repeats) == (k, y.size, 1)
    assert is_partition(split)
    for label, members in ((1, positive), (-1, negative)):
        held = test[:, y == label].sum(axis=1)
        assert set(held) <= {members // k, -(-members // k)}
    assert np.ptp(test.sum(axis=1)) <= 1


def test_stratified_takes_many_classes(rng):
    y = rng.permutation(np.repeat(np.arange(7), [5, 6, 11, 13, 21, 8, 9]))
    test = np.asarray(folds.stratified(y, 5).test)
    for label, members in zip(*np.unique(y, return_counts=True), strict=True):
        assert set(test[:, y == label].sum(axis=1)) <= {members // 5, -(-members // 5)}
    assert np.ptp(test.sum(axis=1)) <= 1


@pytest.mark.parametrize(("n", "k"), [(23, 5), (10, 10), (9, 2)])
def test_kfold_partitions_evenly(n, k):
    split = folds.kfold(n, k, seed=0)
    assert is_partition(split) and split.train.shape == (k, n)
    assert np.ptp(np.asarray(split.test).sum(axis=1)) <= 1


@pytest.mark.parametrize(
    "make", [lambda s: folds.kfold(40, 4, seed=s), lambda s: folds.stratified(signs(20, 20), 4, s)]
)
def test_the_seed_decides(make):
    assert equal(make(0), make(0))
    assert not np.array_equal(make(0).test, make(1).test)


def test_rows_are_shuffled_within_their_class():
    y = np.repeat([1, -1], [24, 16])
    for split, members in ((folds.kfold(40, 4), slice(None)), (folds.stratified(y, 4), slice(0, 24))):
        for mask in np.asarray(split.test)[:, members]:
            assert np.unique(np.diff(np.flatnonzero(mask))).size > 1  # neither a block nor every fourth row


def test_leftover_rows_do_not_always_land_in_the_first_folds():
    larger = {int(np.asarray(folds.kfold(11, 5, seed).test).sum(axis=1).argmax()) for seed in range(20)}
    assert len(larger) > 2


def test_repeats_are_independent_blocks_and_extend_the_single_split():
    y = signs(20, 25)
    split = folds.repeated(y, 5, repeats=3, seed=4)
    assert split.n_folds == 15 and split.repeats == 3 and is_partition(split)
    blocks = np.asarray(split.test).reshape(3, 5, -1)
    assert np.array_equal(blocks[0], folds.stratified(y, 5, seed=4).test)
    assert not np.array_equal(blocks[0], blocks[1])
    assert equal(split, folds.stratified(y, 5, seed=4, repeats=3))
    target = np.linspace(0.0, 1.0, 45)
    assert equal(folds.repeated(target, 5, 3, 4), folds.kfold(45, 5, seed=4, repeats=3))


def test_holdout_divides_every_class_alike():
    y = signs(40, 80)
    split = folds.holdout(y, 0.25, seed=2)
    test = np.asarray(split.test)
    assert split.n_folds == 1 and np.array_equal(split.train, 1 - test)
    assert test[0, y == 1].sum() == 10 and test[0, y == -1].sum() == 20
    assert np.asarray(folds.holdout(signs(2, 50), 0.1).test)[0, signs(2, 50) == 1].sum() == 1
    assert not np.array_equal(test, folds.holdout(y, 0.25, seed=3).test)


@pytest.mark.parametrize("given", [40, np.linspace(-1.0, 1.0, 40), np.arange(40)])
def test_holdout_of_a_number_or_a_regression_target(given):
    assert np.asarray(folds.holdout(given, 0.3).test).sum() == 12


def test_groups_stay_whole_and_sizes_are_balanced(rng):
    sizes = np.array([9, 7, 6, 5, 4, 3, 3, 2, 1])
    names = rng.permutation(np.repeat([f"patient {i}" for i in range(9)], sizes))
    split = folds.groups(names, 4, seed=0)
    test = np.asarray(split.test)
    assert is_partition(split)
    for name in np.unique(names):
        assert (test[:, names == name].sum(axis=1) > 0).sum() == 1
    assert test.sum(axis=1).max() <= 11 and test.sum(axis=1).min() >= 9
    assert equal(split, folds.groups(names, 4, seed=0))
    alike = np.repeat(np.arange(8), 3)
    assert not np.array_equal(folds.groups(alike, 4, seed=0).test, folds.groups(alike, 4, seed=1).test)


def test_predefined_numbers_the_folds_and_never_tests_minus_one():
    split = folds.predefined([0, -1, 7, 3, 0, 7])
    expected = [[1, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1]]
    assert np.array_equal(split.test, expected) and np.array_equal(split.train, 1 - np.array(expected))


def test_from_splitter_reads_index_pairs_masks_and_repeated_rows():
    split = folds.from_splitter([([0, 0, 2], [1]), (np.array([True, True, False, False]), [3, 2])], np.ones((4, 1)))
    assert np.array_equal(split.train, [[2, 0, 1, 0], [1, 1, 0, 0]])
    assert np.array_equal(split.test, [[0, 1, 0, 0], [0, 0, 1, 1]])
    assert split.repeats == 1


def test_from_splitter_finds_repeats():
    halves = [([0, 1], [2, 3]), ([2, 3], [0, 1]), ([0, 2], [1, 3]), ([1, 3], [0, 2])]
    assert folds.from_splitter(halves, np.ones((4, 1))).repeats == 2
    assert folds.from_splitter(halves[:2], np.ones((4, 1))).repeats == 1
    with pytest.raises(ValueError, match="repeats of one fold each"):
        folds.from_splitter([halves[0], halves[2], halves[1], halves[3]], np.ones((4, 1)))
    with pytest.raises(ValueError, match="repeats of one fold each"):
        folds.from_splitter(halves[:3], np.ones((4, 1)))


def test_overlapping_splits_are_repeats_of_one_fold_each():
    test = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    folds.check(Folds(1 - test, test, repeats=2), 4)
    with pytest.raises(ValueError, match="row 1 is tested 2 times"):
        folds.check(Folds(1 - test, test), 4)


def test_as_folds_takes_every_form():
    y = signs(15, 12)
    split = folds.stratified(y, 3)
    assert folds.as_folds(split, y, 27) is split
    assert equal(folds.as_folds(3, y, 27), split)
    assert equal(folds.as_folds(3, np.linspace(0, 1, 27), 27), folds.kfold(27, 3))
    assert equal(folds.as_folds(3, None, 27), folds.kfold(27, 3))
    assert equal(folds.as_folds(np.asarray(split.train), y, 27), split)
    halved = folds.as_folds(0.5 * split.train, y, 27)
    assert np.array_equal(halved.test, split.test) and np.array_equal(halved.train, 0.5 * np.asarray(split.train))


def test_as_folds_of_traced_arrays():
    split = folds.kfold(6, 2)

    @jax.jit
    def both(weights, given):
        bare = folds.as_folds(weights, None, 6)
        return bare.test, folds.as_folds(given, None, 6).test

    for test in both(split.train, split):
        assert np.array_equal(test, split.test)
    with pytest.raises(ValueError, match="y is traced"):
        jax.jit(lambda y: folds.as_folds(2, y, 6).train)(jnp.ones(6))


def test_folds_are_a_pytree_with_static_repeats_and_working_floats():
    split = folds.kfold(6, 2, repeats=2)
    leaves, structure = jax.tree.flatten(split)
    assert [leaf.shape for leaf in leaves] == [(4, 6), (4, 6)]
    assert all(leaf.dtype == jnp.result_type(float) and isinstance(leaf, jax.Array) for leaf in leaves)
    assert jax.tree.unflatten(structure, leaves).repeats == 2
    assert structure != jax.tree.structure(folds.kfold(6, 4))


Y = signs(10, 4)
BAD_CALLS = [
    (lambda: folds.stratified(Y, 1), "k must be a whole number, at least 2 folds; found 1"),
    (lambda: folds.stratified(Y, 2.5), "k must be a whole number"),
    (lambda: folds.stratified(Y, 5), "class -1.0 of y has only 4 member"),
    (lambda: folds.stratified(Y[:3], 5), "only 3 rows"),
    (lambda: folds.stratified(Y[:, None], 2), "y must hold one value a row"),
    (lambda: folds.stratified(["a", "b"] * 9, 2), "y must hold one value a row"),
    (lambda: folds.stratified(np.r_[Y, np.nan], 2), "y holds nan in row 14"),
    (lambda: folds.stratified([], 2), "y must hold one value a row"),
    (lambda: folds.stratified(Y, 2, repeats=0), "repeats must be a whole number"),
    (lambda: folds.stratified(Y, 2, seed=None), "seed must be a whole number"),
    (lambda: folds.kfold(4, 5), "only 4 rows"),
    (lambda: folds.kfold(4, 1), "k must be"),
    (lambda: folds.kfold(-4, 2), "n must be"),
    (lambda: folds.repeated(Y, 5, 2), "class -1.0"),
    (lambda: folds.holdout(Y, 1.0), "fraction must lie strictly between 0 and 1, found 1.0"),
    (lambda: folds.holdout(1, 0.5), "y_or_n must be a whole number, at least 2"),
    (lambda: folds.holdout(signs(1, 9), 0.5), "cannot be both trained and tested"),
    (lambda: folds.groups([1, 1, 2, 2], 3), "groups names only 2 group"),
    (lambda: folds.predefined([-1, -1]), "found only -1"),
    (lambda: folds.predefined([0, -2]), "found -2"),
    (lambda: folds.predefined([0.0, 1.0]), "test_fold must hold one whole number a row"),
    (lambda: folds.predefined([0, 0]), "fold 0 has no training row"),
    (lambda: folds.from_splitter(3, np.ones((4, 1))), "a number of folds goes to"),
    (lambda: folds.from_splitter([], np.ones((4, 1))), "found 0 splits"),
    (lambda: folds.from_splitter([([0, 4], [1])], np.ones((4, 1))), "row numbers from 0 to 3"),
    (lambda: folds.from_splitter([([0, -1], [1])], np.ones((4, 1))), "row numbers from 0 to 3"),
    (lambda: folds.from_splitter([([0, 1], [1, 1])], np.ones((4, 1))), "other than 0 and 1"),
    (lambda: folds.as_folds(1, Y, 14), "folds must be a whole number, at least 2"),
    (lambda: folds.as_folds(np.ones(14), Y, 14), r"found shape \(14,\)"),
    (lambda: folds.as_folds("five", Y, 14), "folds must be a whole number.* found 'five'"),
    (lambda: folds.as_folds(np.zeros((2, 14), complex), Y, 14), "type complex128"),
    (lambda: folds.as_folds(folds.kfold(13, 2), Y, 14), "made for 13 rows, but the data have 14"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS, ids=[message for _call, message in BAD_CALLS])
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


TRAIN = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
TEST = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def changed(array: np.ndarray, fold: int, values: object) -> np.ndarray:
    array = array.copy()
    array[fold] = values
    return array


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Folds(changed(TRAIN, 1, 0.0), TEST), "fold 1 has no training row"),
        (Folds(changed(TRAIN, 1, [0.0, np.nan, 1.0]), TEST), "fold 1 has training weights that are negative, NaN"),
        (Folds(changed(TRAIN, 0, [1.0, -1.0, 0.0]), TEST), "fold 0 has training weights that are negative, NaN"),
        (Folds(changed(TRAIN, 0, [np.inf, 1.0, 0.0]), TEST), "fold 0 has training weights that are negative, NaN"),
        (Folds(TRAIN, 0.5 * TEST), "fold 0 has test mask values other than 0 and 1"),
        (Folds(TRAIN, changed(TEST, 1, [1.0, 1.0, 0.0])), "fold 1 has rows that are both trained and tested"),
        (Folds(TRAIN, TEST[:, :2]), "must both have shape"),
        (Folds(TRAIN[0], TEST[0]), "must both have shape"),
        (Folds(TRAIN[:0], TEST[:0]), "at least one fold"),
        (Folds(TRAIN, TEST, repeats=3), "repeats must divide the 2 folds"),
        (Folds(TRAIN.astype(complex), TEST), "real numbers"),
    ],
)
def test_check_refuses(split, message):
    folds.check(Folds(TRAIN, TEST), 3)
    with pytest.raises(ValueError, match=message):
        folds.check(split, 3)
