"""What scikit-learn calls cv, as folds."""

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from .. import folds as folds_of
from ..folds import Folds

__all__ = ["make_folds"]


def make_folds(cv: Any, X: np.ndarray, y: np.ndarray, groups: Any, classifier: bool) -> Folds:
    """The folds of an int, a splitter or an iterable of splits.

    An int gives scikit-learn's own folds, StratifiedKFold or KFold without shuffling; with `groups` the versions that
    never divide one.  Classes, rows or groups that are too few for that many folds get fewer, with a warning.
    """
    if cv is None or isinstance(cv, numbers.Integral):
        splitter: Any = _splitter(5 if cv is None else int(cv), y, groups, classifier)
    else:
        splitter = check_cv(cv, y, classifier=classifier)
    pairs = [tuple(pair) for pair in splitter.split(X, y, groups)]
    masks = [_mask(test, X.shape[0]) for _train, test in pairs]
    if masks and not _repeats_in_blocks(np.stack(masks)):
        # overlapping test sets, as ShuffleSplit has them: each split is a repeat of its own
        single = [folds_of.from_splitter([pair], X) for pair in pairs]
        train, test = (np.concatenate([np.asarray(getattr(f, side)) for f in single]) for side in ("train", "test"))
        return Folds(train, test, repeats=len(pairs))  # type: ignore[arg-type]  # host arrays, checked one by one
    return folds_of.from_splitter(pairs, X)


def _splitter(k: int, y: np.ndarray, groups: Any, classifier: bool) -> Any:
    if k < 2:
        raise ValueError(f"cv={k}: cross-validation needs at least 2 folds; pass a splitter for a single split")
    if classifier:
        labels, counts = np.unique(y, return_counts=True)
        k = _fewer(k, int(counts.min()), f"class {labels[counts.argmin()]} has only", "member")
    k = _fewer(k, len(y), "y has only", "row")
    if groups is None:
        return StratifiedKFold(k) if classifier else KFold(k)
    k = _fewer(k, len(np.unique(np.asarray(groups))), "groups names only", "group")
    return StratifiedGroupKFold(k) if classifier else GroupKFold(k)


def _fewer(k: int, most: int, what: str, unit: str) -> int:
    """k folds, or as many as there can be."""
    if most >= k:
        return k
    found = f"{what} {most} {unit}{'' if most == 1 else 's'}"
    if most < 2:
        raise ValueError(
            f"cv={k}, but {found}: cross-validation needs at least two; add rows, leave it out, or pass splits as cv"
        )
    warnings.warn(f"cv={k}, but {found}: using {most} folds", UserWarning, stacklevel=5)
    return most


def _mask(rows: Any, n: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return rows
    mask = np.zeros(n, bool)
    if rows.size:
        mask[rows[(rows >= 0) & (rows < n)].astype(int)] = True  # row numbers outside are refused by from_splitter
    return mask


def _repeats_in_blocks(test: np.ndarray) -> bool:
    """Whether the test sets are disjoint, or complete partitions one after the other."""
    often = test.sum(axis=0)
    blocks = int(often[0])
    if often.max() <= 1:
        return True
    if np.any(often != blocks) or len(test) % blocks:
        return False
    return bool(np.all(test.reshape(blocks, -1, test.shape[1]).sum(axis=1) == 1))
