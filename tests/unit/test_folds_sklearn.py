"""scikit-learn's splitters, read fold by fold."""

import numpy as np
import pytest
from sklearn import model_selection as ms

from hyperjax import folds

X = np.arange(24.0).reshape(12, 2)
Y = np.array([1, -1] * 6)
GROUPS = np.repeat(np.arange(4), 3)


@pytest.mark.parametrize(
    ("cv", "repeats"),
    [
        (ms.KFold(3), 1),
        (ms.StratifiedKFold(3, shuffle=True, random_state=0), 1),
        (ms.GroupKFold(4), 1),
        (ms.LeaveOneOut(), 1),
        (ms.TimeSeriesSplit(3), 1),
        (ms.ShuffleSplit(1, test_size=0.25, random_state=0), 1),
        (ms.PredefinedSplit([0, 0, 1, 1, -1, -1, 2, 2, 0, 1, 2, -1]), 1),
        (ms.RepeatedKFold(n_splits=3, n_repeats=4, random_state=0), 4),
        (ms.RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0), 3),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "split") else str(value),
)
def test_a_splitter_gives_its_own_folds(cv, repeats):
    named = GROUPS if isinstance(cv, ms.GroupKFold) else None
    split = folds.from_splitter(cv, X, Y, named)
    pairs = list(cv.split(X, Y, named))
    assert split.repeats == repeats and split.n_folds == len(pairs)
    for t, (train, test) in enumerate(pairs):
        assert np.array_equal(np.flatnonzero(np.asarray(split.train)[t]), np.sort(train))
        assert np.array_equal(np.flatnonzero(np.asarray(split.test)[t]), np.sort(test))


def test_predefined_is_scikit_learns():
    test_fold = [3, 0, 1, 1, -1, -1, 3, 0, 0, 1, 3, -1]
    ours, theirs = folds.predefined(test_fold), folds.from_splitter(ms.PredefinedSplit(test_fold), X)
    assert np.array_equal(ours.train, theirs.train) and np.array_equal(ours.test, theirs.test)


def test_overlapping_test_sets_are_refused_with_advice():
    with pytest.raises(ValueError, match="repeats=number of splits"):
        folds.from_splitter(ms.ShuffleSplit(6, test_size=0.5, random_state=0), X)


def test_a_splitter_handed_on_unread_is_refused():
    with pytest.raises(ValueError, match="folds.from_splitter"):
        folds.as_folds(ms.KFold(3), Y, 12)
