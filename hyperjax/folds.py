"""Splits of the rows into folds, as weights and masks.

A split is made once, on the host, by numpy alone, and depends on nothing but its arguments:
the same seed gives the same folds.  Fold t is trained with the weights `train[t]` and
validated on the rows `test[t]` marks; a weight 0 takes a row out of training.
"""

import operator
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .types import Array, ArrayLike, Float, Module, static

__all__ = [
    "Folds",
    "as_folds",
    "check",
    "from_splitter",
    "groups",
    "holdout",
    "kfold",
    "predefined",
    "repeated",
    "stratified",
]

FEW_CLASSES = 20
"""Whole-number targets with more distinct values than this are taken for regression."""


class Folds(Module):
    """T folds of n rows: training weights (T, n) and 0/1 test masks (T, n).

    Repeated splits are `repeats` consecutive blocks of T / repeats folds; within a block a row
    is tested at most once.
    """

    train: Float[Array, "T n"]
    test: Float[Array, "T n"]
    repeats: int = static(default=1)

    @property
    def n_folds(self) -> int:
        """T, the folds of all repeats together."""
        return self.train.shape[-2]

    @property
    def n_samples(self) -> int:
        """n, the rows."""
        return self.train.shape[-1]


def stratified(y: ArrayLike, k: int = 5, seed: int = 0, repeats: int = 1) -> Folds:
    """k shuffled folds with the classes of y spread evenly.

    Every class is divided within one sample of equally, and so are the fold sizes.
    """
    y = _vector("y", y)
    k, repeats = _whole("k", k, 2, "folds"), _whole("repeats", repeats, 1, "repeat")
    _no_more_folds_than_rows(k, y.size)
    labels, classes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if sizes.min() < k:
        raise ValueError(
            f"k = {k} folds, but class {labels[sizes.argmin()]} of y has only {sizes.min()} member(s): every fold "
            "needs one; lower k, or use kfold if y is a regression target"
        )
    generator = _generator(seed)
    return _assemble([_deal(classes, k, generator) for _ in range(repeats)], k)


def kfold(n: int, k: int = 5, seed: int = 0, repeats: int = 1) -> Folds:
    """k shuffled folds of n rows, sizes within one row of each other."""
    n, k, repeats = _whole("n", n, 1, "row"), _whole("k", k, 2, "folds"), _whole("repeats", repeats, 1, "repeat")
    _no_more_folds_than_rows(k, n)
    generator = _generator(seed)
    return _assemble([_deal(np.zeros(n, int), k, generator) for _ in range(repeats)], k)


def repeated(y: ArrayLike, k: int = 5, repeats: int = 10, seed: int = 0) -> Folds:
    """`repeats` independent splits into k folds: stratified where y holds class labels, else plain.

    Class labels are whole numbers with at most 20 distinct values.  The first block is the
    split that `stratified` (or `kfold`) makes of the same seed.
    """
    y = _vector("y", y)
    return stratified(y, k, seed, repeats) if _are_classes(y) else kfold(y.size, k, seed, repeats)


def holdout(y_or_n: ArrayLike | int, fraction: float = 0.25, seed: int = 0) -> Folds:
    """One fold: a random `fraction` of the rows is tested, the others train.

    Given class labels (whole numbers, at most 20 distinct values) every class is divided alike,
    with at least one row on either side; given a number of rows or a regression target, all
    rows are.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"fraction must lie strictly between 0 and 1, found {fraction}")
    if np.ndim(y_or_n) == 0:
        classes = np.zeros(_whole("y_or_n", y_or_n, 2, "rows"), int)
    else:
        y = _vector("y_or_n", y_or_n)
        classes = np.unique(y, return_inverse=True)[1] if _are_classes(y) else np.zeros(y.size, int)
    generator = _generator(seed)
    assignment = np.full(classes.size, -1)
    for c in range(classes.max() + 1):
        members = generator.permutation(np.flatnonzero(classes == c))
        if members.size < 2:
            raise ValueError(
                f"y_or_n: {members.size} row in a class (or in all) cannot be both trained and tested; "
                "give at least two of each class, or pass the number of rows to ignore the classes"
            )
        count = min(max(round(fraction * members.size), 1), members.size - 1)
        assignment[members[:count]] = 0
    return _assemble([assignment], 1)


def groups(groups: ArrayLike, k: int = 5, seed: int = 0) -> Folds:
    """k folds that never divide a group, as equal in size as handing out the largest groups first makes them.

    `groups` holds one name or number a row.  Which of several equally large groups goes first is random.
    """
    k = _whole("k", k, 2, "folds")
    _names, members, sizes = np.unique(_vector("groups", groups, "biufUS"), return_inverse=True, return_counts=True)
    if sizes.size < k:
        raise ValueError(f"k = {k} folds, but groups names only {sizes.size} group(s): every fold needs one; lower k")
    shuffled = _generator(seed).permutation(sizes.size)
    fold_of_group = np.zeros(sizes.size, int)
    filled = np.zeros(k, int)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of_group[group] = filled.argmin()
        filled[filled.argmin()] += sizes[group]
    return _assemble([fold_of_group[members]], k)


def predefined(test_fold: ArrayLike) -> Folds:
    """One fold a distinct value of `test_fold` (n,), in rising order; a row marked -1 always trains."""
    test_fold = _vector("test_fold", test_fold, "biu")
    values = np.unique(test_fold[test_fold != -1])
    if values.size == 0 or values[0] < 0:
        raise ValueError(
            f"test_fold must hold the number of the fold that tests each row, or -1 for never; found "
            f"{'only -1' if values.size == 0 else values[0]}"
        )
    return _assemble([np.where(test_fold == -1, -1, np.searchsorted(values, test_fold))], values.size)


def from_splitter(cv: Any, X: Any, y: Any = None, groups: Any = None) -> Folds:
    """The folds of a scikit-learn splitter, or of an iterable of (train, test) row numbers or masks.

    A row that a training set lists several times gets that weight (bootstrap).  If the test sets
    are consecutive complete partitions with equally many folds, each is a repeat.
    """
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    if hasattr(cv, "split"):
        pairs = cv.split(*(_host(array) for array in (X, y, groups)))
    elif isinstance(cv, Iterable):
        pairs = cv
    else:
        raise ValueError(
            f"cv must have a method split(X, y, groups) or be an iterable of (train, test) pairs, found {cv!r}; "
            "a number of folds goes to stratified or kfold"
        )
    counts = [tuple(_row_counts(rows, n) for rows in pair) for pair in pairs]
    if not counts or any(len(pair) != 2 for pair in counts):
        raise ValueError(f"cv must give (train, test) pairs, found {len(counts)} splits that are not all pairs")
    train, test = (np.stack([pair[side] for pair in counts]) for side in (0, 1))
    return _checked(train, test, _count_repeats(test), n)


def as_folds(folds: Any, y: Any, n: int) -> Folds:
    """What the library's functions accept for `folds`, as checked `Folds` of n rows.

    A number of folds splits y (stratified if its values are -1 and +1, else plain); a bare (T, n)
    array holds training weights, and rows of weight 0 are tested; `Folds` pass through.  Traced
    arrays cannot be looked at and are taken as they are.
    """
    if isinstance(folds, Folds):
        if _concrete(folds.train) and _concrete(folds.test):
            check(folds, n)
        return folds
    if not _concrete(folds):
        weights = folds.astype(jnp.result_type(float)) if not jnp.issubdtype(folds.dtype, jnp.floating) else folds
        return Folds(weights, (weights == 0).astype(weights.dtype))
    if hasattr(folds, "split") and not isinstance(folds, str):
        raise ValueError(f"folds is the splitter {folds!r}; convert it first with folds.from_splitter(cv, X, y)")
    if np.ndim(folds) == 0:
        k = _whole("folds", folds, 2, "folds")
        return kfold(n, k) if y is None or not _are_signs(_vector("y", y)) else stratified(y, k)
    weights = np.asarray(folds)
    if weights.ndim != 2 or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"folds must be Folds, a number of folds, or an array of training weights (folds, rows); "
            f"found shape {weights.shape} and type {weights.dtype}"
        )
    return _checked(weights, weights == 0, 1, n)


def check(folds: Folds, n: int) -> None:
    """Refuse concrete folds that do not fit n rows or could not be trained and tested honestly."""
    train, test = np.asarray(folds.train), np.asarray(folds.test)
    if train.ndim != 2 or train.shape != test.shape or train.shape[0] == 0:
        raise ValueError(
            f"folds: train and test must both have shape (folds, rows) with at least one fold, "
            f"found {train.shape} and {test.shape}"
        )
    if train.shape[1] != n:
        raise ValueError(f"folds are made for {train.shape[1]} rows, but the data have {n}: split these data instead")
    blocks = folds.repeats
    if not isinstance(blocks, int) or blocks < 1 or train.shape[0] % blocks:
        raise ValueError(f"folds: repeats must divide the {train.shape[0]} folds into equal blocks, found {blocks!r}")
    if not {train.dtype.kind, test.dtype.kind} <= set("biuf"):
        raise ValueError(f"folds: train and test must hold real numbers, found {train.dtype} and {test.dtype}")
    refusals = {
        "training weights that are negative, NaN or infinite; use 0 or more": ~((train >= 0) & (train < np.inf)),
        "test mask values other than 0 and 1; weights of the criterion go into `weights`": (test != 0) & (test != 1),
        "rows that are both trained and tested (a leak); give them weight 0": (train > 0) & (test != 0),
        "no training row, every weight is 0; leave the fold out": np.all(train == 0, axis=1)[:, None],
    }
    for what, wrong in refusals.items():
        if np.any(wrong):
            raise ValueError(f"folds: fold {np.argwhere(wrong)[0][0]} has {what}")
    per_block = test.reshape(blocks, -1, n).sum(axis=1)
    if np.any(per_block > 1):
        block, row = np.argwhere(per_block > 1)[0]
        raise ValueError(
            f"folds: row {row} is tested {int(per_block[block, row])} times within one repeat, so it has no single "
            "held-out output; make the test sets disjoint, or declare overlapping splits (such as ShuffleSplit's) "
            "as repeats of one fold each: Folds(train, test, repeats=number of splits)"
        )


def _deal(classes: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """Fold numbers (n,): the rows, shuffled within their class, are dealt one by one to the k folds.

    Each class goes on where the last one stopped: that balances the folds as well as the classes.
    """
    shuffled = generator.permutation(classes.size)
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    assignment = np.empty(classes.size, int)
    assignment[order] = np.arange(classes.size) % k
    return generator.permutation(k)[assignment]


def _assemble(assignments: list[np.ndarray], k: int) -> Folds:
    """Folds from the number of the fold that tests each row (-1: none), one array a repeat."""
    test = np.concatenate([assignment[None, :] == np.arange(k)[:, None] for assignment in assignments])
    return _checked(~test, test, len(assignments), test.shape[1])


def _checked(train: np.ndarray, test: np.ndarray, repeats: int, n: int) -> Folds:
    dtype = jnp.result_type(float)
    check(Folds(train, test.astype(dtype), repeats), n)  # type: ignore[arg-type]  # host arrays pass the same checks
    return Folds(jnp.asarray(train.astype(dtype)), jnp.asarray(test.astype(dtype)), repeats)


def _count_repeats(test: np.ndarray) -> int:
    """R if the test sets are R complete partitions one after the other, with equally many folds; else 1."""
    total = test.sum(axis=0)
    blocks = int(total[0])
    if blocks < 2 or np.any(total != blocks) or len(test) % blocks:
        return 1
    return blocks if np.all(test.reshape(blocks, -1, test.shape[1]).sum(axis=1) == 1) else 1


def _row_counts(rows: Any, n: int) -> np.ndarray:
    """How often each of the n rows is listed."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return rows.astype(int)
    if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n)):
        raise ValueError(f"cv must give row numbers from 0 to {n - 1} or masks of length {n}, found {rows!r}")
    return np.bincount(rows.astype(int), minlength=n)


def _are_signs(y: np.ndarray) -> bool:
    return bool(np.all(np.abs(y) == 1))


def _are_classes(y: np.ndarray) -> bool:
    return bool(np.all(y == np.round(y))) and np.unique(y).size <= FEW_CLASSES


def _vector(name: str, values: Any, kinds: str = "biuf") -> np.ndarray:
    """A host array (n,) of one of the accepted kinds, without NaN."""
    if not _concrete(values):
        raise ValueError(f"{name} is traced: folds are made outside jit and grad, from concrete values, and passed in")
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} must hold one {'whole number' if 'f' not in kinds else 'value'} a row (n,), "
            f"found shape {array.shape} and type {array.dtype}"
        )
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        row = np.argmin(np.isfinite(array))
        raise ValueError(f"{name} holds {array[row]} in row {row}; remove such rows")
    return array.astype(int) if array.dtype.kind == "b" else array


def _whole(name: str, value: Any, least: int, unit: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be a whole number, at least {least} {unit}; found {value!r}")
    return number


def _no_more_folds_than_rows(k: int, n: int) -> None:
    if k > n:
        raise ValueError(f"k = {k} folds, but there are only {n} rows: every fold needs one; lower k")


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(_whole("seed", seed, 0, "(that is, not negative)"))


def _concrete(array: Any) -> bool:
    return not isinstance(array, Tracer) and getattr(array, "is_fully_addressable", True)


def _host(array: Any) -> Any:
    return np.asarray(array) if isinstance(array, jax.Array) else array
