"""From a file or the name of a data set to dense rows, labels of -1 and +1, and rows kept apart for the test."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .. import datasets, tables
from ..files import bare
from .failures import DATA, USAGE, Failure, blamed_on

__all__ = [
    "LARGEST", "Layout", "Rows", "encode", "numbers", "present", "read", "read_as", "signs", "split", "task_of",
]  # fmt: skip

LARGEST = 1 << 31
"""Bytes of a dense matrix beyond which a sparse one is refused instead of filled up."""
FEW_CLASSES = 20
"""Whole-number targets with more distinct values than this are a regression's."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns a model was trained with; all but the number of features may be unknown."""

    count: int
    features: list[str] | None = None
    target: str | None = None
    groups: str | None = None

    def all_columns(self) -> list[str]:
        """What a file must have: the names, or as many numbers, those of the groups included."""
        if self.features is not None:
            return self.features
        return [str(j) for j in range(self.count + (self.groups is not None))]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Dense features (n, d), raw targets (n,) and what the file said about its columns."""

    X: np.ndarray
    y: np.ndarray | None
    features: list[str] | None = None
    target: str | None = None
    groups: np.ndarray | None = None
    groups_column: str | None = None
    test: "Rows | None" = None

    @property
    def layout(self) -> Layout:
        """How further files must look."""
        return Layout(self.X.shape[1], self.features, self.target, self.groups_column)

    def without(self, column: str | None, source: Any) -> "Rows":
        """The rows with this column (a name, or a number from 0 on) taken out of the features as their groups."""
        if column is None:
            return self
        names = self.features or [str(j) for j in range(self.X.shape[1])]
        if column not in names:
            known = _few(names) if self.features else f"the columns 0 to {self.X.shape[1] - 1}"
            raise Failure(USAGE, f"--groups {column}: {source} has {known}")
        at = names.index(column)
        kept = None if self.features is None else [name for name in names if name != column]
        X = np.delete(self.X, at, axis=1)
        test = None if self.test is None else dataclasses.replace(self.test, X=np.delete(self.test.X, at, axis=1))
        return dataclasses.replace(self, X=X, features=kept, groups=self.X[:, at], groups_column=column, test=test)

    def take(self, rows: np.ndarray) -> "Rows":
        """Some of the rows."""
        part = {name: None if v is None else v[rows] for name, v in (("y", self.y), ("groups", self.groups))}
        return dataclasses.replace(self, X=self.X[rows], **part)


def present(*sources: str | Path) -> None:
    """A Failure where a source is neither a file nor a data set: said before JAX is imported, which takes its time."""
    for source in sources:
        if not Path(source).exists() and not (_is_name(source) and str(source) in datasets.names()):
            with blamed_on(DATA):
                read(source)


def read(source: str | Path, target: str | None = None, groups: str | None = None) -> Rows:
    """The rows of a file, or of a data set if no such file exists and `source` looks like a name."""
    rows = _named(str(source)) if _is_name(source) else _rows(tables.read_table(source, target), source)
    if not rows.X.size:
        raise Failure(DATA, f"{source} has {rows.X.shape[0]} rows and {rows.X.shape[1]} columns of features: no data")
    return rows.without(groups, source) if groups is not None else rows


def read_as(layout: Layout, source: str | Path, target: str | None = None) -> Rows:
    """Rows in the columns of a model: by name where both have names, else by number; labels may be absent."""
    names = layout.all_columns()
    if _is_name(source):
        found = _named(str(source))
        if len(names) != found.X.shape[1]:
            raise Failure(DATA, f"{source} has {found.X.shape[1]} columns, and the model was trained with {len(names)}")
        rows = found
    else:
        apart = bare(source).suffix.lower() in {".npz", *tables.SVMLIGHT}
        wanted = target if target is not None or apart else layout.target
        rows = _rows(tables.read_table(source, wanted, names), source)
    return rows if layout.features is not None else rows.without(layout.groups, source)


def task_of(y: np.ndarray) -> str:
    """classification for words and for few different whole numbers, else regression."""
    if y.dtype.kind not in "biuf":
        return "classification"
    values = np.unique(y)
    few = len(values) <= FEW_CLASSES and np.all(np.equal(np.mod(values, 1), 0))
    return "classification" if few else "regression"


def encode(y: np.ndarray, positive: str | None = None) -> tuple[np.ndarray, list[Any]]:
    """Labels as -1 and +1, and the names [of -1, of +1]."""
    labels = [_plain(label) for label in np.unique(y)]
    if len(labels) < 2:
        raise Failure(DATA, f"the target has one class only, {labels[0]!r}: a classifier needs two")
    if positive is None:
        if len(labels) > 2:
            raise Failure(
                DATA,
                f"the target has {len(labels)} classes: --positive LABEL sets one against the rest, "
                "hyperjax.sklearn.TunedSVC takes them all, --task regression reads them as numbers",
            )
        chosen = labels[-1]
    else:
        named = {_text(label): label for label in labels}
        if _text(positive) not in named:
            raise Failure(USAGE, f"--positive {positive}: the target has the classes {', '.join(named)}")
        chosen = named[_text(positive)]
    others = [label for label in labels if label != chosen]
    return np.where(y == chosen, 1.0, -1.0), [others[0] if len(others) == 1 else "rest", chosen]


def signs(y: np.ndarray, classes: list[Any]) -> np.ndarray:
    """Labels of further rows as -1 and +1, by the names a model was trained with."""
    negative, positive = (_text(label) for label in classes)
    found = [_text(_plain(label)) for label in y]
    strange = sorted(set(found) - {negative, positive})
    if strange and negative != "rest":
        raise Failure(DATA, f"the class {strange[0]} is unknown to the model, which has {negative} and {positive}")
    return np.where(np.asarray(found) == positive, 1.0, -1.0)


def numbers(y: np.ndarray, source: Any) -> np.ndarray:
    """Targets of a regression."""
    if y.dtype.kind not in "biuf":
        raise Failure(DATA, f"the target of {source} holds words such as {str(y[0])!r}: a regression needs numbers")
    return y.astype(float)


def split(rows: Rows, y: np.ndarray, share: float, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows: a share of the rows (of each class), whole groups where there are some."""
    generator = np.random.default_rng(seed)
    units = np.arange(len(y)) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
    strata = y if task == "classification" and rows.groups is None else np.zeros(len(y))
    chosen: list[np.ndarray] = []
    for stratum in np.unique(strata):
        own = generator.permutation(np.unique(units[strata == stratum]))
        chosen.append(own[: max(1, round(share * len(own)))])
    test = np.isin(units, np.concatenate(chosen))
    if test.all():
        raise Failure(USAGE, f"--test-fraction {share:g} leaves no training row of {len(y)}")
    return np.flatnonzero(~test), np.flatnonzero(test)


def _is_name(source: str | Path) -> bool:
    path = Path(source)
    return not path.exists() and os.sep not in str(source) and not path.suffix


def _named(name: str) -> Rows:
    """A data set of the library, with its test rows where it has some."""
    found = datasets.load(name)
    rows = _rows(found, name)
    if found.X_test is None or found.y_test is None:
        return rows
    return dataclasses.replace(rows, test=Rows(_dense(found.X_test, name), found.y_test, rows.features))


def _rows(table: Any, source: Any) -> Rows:
    features = None if table.features is None else list(table.features)
    return Rows(_dense(table.X, source), table.y, features, getattr(table, "target", None))


def _dense(X: Any, source: Any) -> np.ndarray:
    if not scipy.sparse.issparse(X):
        return np.asarray(X, float)
    size = 8 * X.shape[0] * X.shape[1]
    if size > LARGEST:
        raise Failure(
            DATA,
            f"{source} is sparse and would take {size / 2**30:.0f} GB when filled up: keep fewer columns or rows",
        )
    return X.toarray()


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}"


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; a whole number without its fraction."""
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(label: Any) -> str:
    try:
        return f"{float(label):g}"
    except ValueError:
        return str(label)
