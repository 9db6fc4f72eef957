"""Tables from files: CSV, npz and svmlight to features, targets and column names."""

import array
import csv
import dataclasses
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from . import svmlight
from .files import arrays_of, bare, reading

__all__ = ["Table", "arrays", "columns", "read_table"]

DELIMITERS = ",;\t"
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-", "."})
NPZ = "npz file of plain arrays"
SAMPLE_LINES = 20
SVMLIGHT = frozenset({".svm", ".libsvm", ".svmlight"})


@dataclasses.dataclass(frozen=True)
class Table:
    """Features X (n, d), dense float64 or CSR, and the target y (n,): numbers, or words where classes have names.

    `features` are the columns' names, None where the file has none; `target` is that of y.  y is None where the file
    was read for prediction and holds no target.
    """

    X: Any
    y: np.ndarray | None
    features: tuple[str, ...] | None = None
    target: str | None = None


def read_table(
    path: Any, target: str | int | None = None, features: Sequence[str] | None = None, header: bool | None = None
) -> Table:
    """The table in a file: npz, svmlight (.svm, .libsvm, .svmlight, or by its look) or CSV; packed ones too.

    `target` is the column to predict, by name or by number from 0 (negative from the end); None takes the last.
    `features` names the columns to read, as a trained model knows them: others are ignored, and the target may be
    absent.  `header` says whether the first line of a CSV file holds names; None finds out.
    """
    path = Path(path)
    kind = _kind(path)
    if kind == "csv":
        return _csv(path, target, features, header)
    table = _npz(path) if kind == "npz" else Table(*svmlight.read(path))
    if target is not None:
        raise ValueError(f"target={target!r}: {path} has its targets apart from the columns; leave target out")
    if features is None:
        return table
    X = columns(table, features)
    return dataclasses.replace(table, X=X, features=table.features and tuple(features))


def columns(table: Table, names: Sequence[str]) -> Any:
    """The columns of X named `names`, in that order; by number where the table has no names.

    A sparse file ends at its last column with an entry, so a CSR matrix without names may have fewer.
    """
    X, names = table.X, list(names)
    if table.features is not None:
        missing = [name for name in names if name not in table.features]
        if missing:
            raise ValueError(f"the table lacks {_listed(missing)}; it has {_listed(table.features)}")
        place = {name: j for j, name in enumerate(table.features)}
        return X[:, [place[name] for name in names]]
    found = X.shape[1]
    if scipy.sparse.issparse(X) and found < len(names):
        X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], len(names)))
    elif found != len(names):
        raise ValueError(f"the table has {found} columns without names, and {len(names)} are expected")
    return X


def arrays(path: Any) -> dict[str, np.ndarray]:
    """The arrays of an npz file, without pickle; CSR parts (data, indices, indptr, shape) become X or X_test."""
    path = Path(path)
    found: dict[str, Any] = dict(arrays_of(path, NPZ))
    try:
        for prefix, name in (("", "X"), ("test_", "X_test")):
            if f"{prefix}indptr" in found:
                parts = tuple(found.pop(f"{prefix}{key}") for key in ("data", "indices", "indptr"))
                found[name] = scipy.sparse.csr_matrix(parts, shape=tuple(found.pop(f"{prefix}shape")))
                found[name].check_format()
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is damaged or no {NPZ}: {error}") from error
    return found


def _kind(path: Path) -> str:
    ending = bare(path).suffix.lower()
    if ending == ".npz":
        return "npz"
    if ending in SVMLIGHT:
        return "svmlight"
    if ending in (".csv", ".tsv"):
        return "csv"
    with reading(path) as file:
        return "svmlight" if _looks_sparse(file) else "csv"


def _looks_sparse(file: IO[bytes]) -> bool:
    """Whether the first line with pairs or words in it starts as one of svmlight does."""
    for line in itertools.islice(file, 1000):
        words = line.split(b"#", 1)[0].split()
        if len(words) > 1:
            return all(b":" in word and word[:1] in b"0123456789q-" for word in words[1:3])
        if words:
            try:
                float(words[0])
            except ValueError:
                return False
    return False


def _npz(path: Path) -> Table:
    found = arrays(path)
    if "X" not in found or "y" not in found:
        raise ValueError(f"{path} holds {', '.join(sorted(found)) or 'nothing'}: expected the arrays X and y")
    names = found.get("feature_names", found.get("features"))
    X, y = matrix(path, found["X"]), vector(path, found["y"])
    if y.shape != (X.shape[0],):
        raise ValueError(f"{path}: y has shape {y.shape} and X {X.shape[0]} rows: y needs one value a row")
    features = None if names is None else tuple(map(str, names))
    if features is not None and len(features) != X.shape[1]:
        raise ValueError(f"{path} names {len(features)} features, and X has {X.shape[1]} columns")
    return Table(X, y, features)


def matrix(path: Any, X: Any, name: str = "X") -> Any:
    """X of a file as float64, dense or CSR, checked."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{path}: {name} has shape {X.shape} and type {X.dtype}: expected rows and columns of numbers")
    X = X.astype(np.float64)
    values = X.data if scipy.sparse.issparse(X) else X
    if not np.isfinite(values).all():
        where = "" if scipy.sparse.issparse(X) else f", the first in row {int(np.argwhere(~np.isfinite(X))[0, 0])}"
        raise ValueError(f"{path}: {name} holds NaN or infinite values{where}: remove or impute them first")
    return X


def vector(path: Any, y: np.ndarray, name: str = "y") -> np.ndarray:
    """y of a file: numbers as float64, words as they are."""
    if y.ndim != 1 or y.dtype.kind not in "biufUS":
        raise ValueError(f"{path}: {name} has shape {y.shape} and type {y.dtype}: expected one number or word a row")
    if y.dtype.kind in "US":
        return y.astype(str)
    if not np.isfinite(y).all():
        raise ValueError(f"{path}: {name} holds NaN or infinite values: remove those rows")
    return y.astype(np.float64)


def _csv(path: Path, target: Any, features: Sequence[str] | None, header: bool | None) -> Table:
    with reading(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        try:
            sample = list(itertools.islice(file, SAMPLE_LINES))
            delimiter = _delimiter(path, sample)
            rows = csv.reader(itertools.chain(sample, file), delimiter=delimiter, skipinitialspace=True)
            return _filled(path, rows, target, features, header)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is no text in UTF-8 (byte {error.object[error.start]:#04x}): save it as UTF-8"
            ) from None
        except csv.Error as error:
            raise ValueError(f"{path} is no CSV file: {error}") from None


def _delimiter(path: Path, sample: list[str]) -> str:
    """The separator that divides all lines alike; else the one found most often in the first."""
    lines = [line for line in sample if line.strip()]
    if not lines:
        raise ValueError(f"{path} holds no rows: expected lines of numbers separated by comma, semicolon or tab")
    widths = {mark: [len(row) for row in csv.reader(lines, delimiter=mark) if row] for mark in DELIMITERS}
    even = {mark: width[0] for mark, width in widths.items() if min(width) == max(width) > 1}
    best = max(even or widths, key=lambda mark: widths[mark][0])
    if widths[best][0] < 2:
        shown = lines[0].strip()[:60]
        raise ValueError(f"{path} has one column only ({shown!r}): separate columns by comma, semicolon or tab")
    return best


def _filled(path: Path, rows: Any, target: Any, features: Sequence[str] | None, header: bool | None) -> Table:
    """The table of the remaining rows of a csv.reader."""
    numbered = ((rows.line_num, row) for row in rows if any(cell.strip() for cell in row))
    first, second = next(numbered, None), next(numbered, None)
    if first is None:
        raise ValueError(f"{path} holds no rows")
    if header is None:
        header = _is_header(first[1], second[1] if second else None, target)
    body = itertools.chain([pair for pair in (second,) if pair], numbered)
    if not header:
        body, names = itertools.chain([first], body), None
    else:
        names = _names(path, first[0], first[1])
    width = len(first[1])
    goal = _goal(path, names, width, target, features)
    if features is None:
        chosen = [j for j in range(width) if j != goal]
    elif names is None:
        chosen = [j for j in range(width) if j != goal]
        if len(chosen) != len(features):
            raise ValueError(f"{path} has {len(chosen)} columns of features, and {len(features)} are expected")
    else:
        missing = [name for name in features if name not in names]
        if missing:
            raise ValueError(f"{path} lacks {_listed(missing)}; it has {_listed(names)}")
        chosen = [names.index(name) for name in features]
    X, y = _values(path, body, width, chosen, goal, names)
    shown = None if names is None else tuple(names[j] for j in chosen)
    return Table(X, y, shown, names[goal] if names is not None and goal is not None else None)


def _is_header(first: list[str], second: list[str] | None, target: Any) -> bool:
    """Whether the first line holds names: a name asked for, or words where the line below has a number."""
    if isinstance(target, str) and target in (cell.strip() for cell in first):
        return True
    if second is None:
        return not any(_is_number(cell) for cell in first)
    return any(_is_word(a) and _is_number(b) for a, b in zip(first, second, strict=False))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_word(cell: str) -> bool:
    return not _is_number(cell) and cell.strip().lower() not in MISSING


def _names(path: Path, line: int, row: list[str]) -> list[str]:
    names = [cell.strip() for cell in row]
    for j, name in enumerate(names):
        if not name:
            raise ValueError(
                f"{path}, line {line}: column {j + 1} of {len(names)} has no name; name it, or leave it out if it "
                "holds row numbers (pandas: index=False)"
            )
        if name in names[:j]:
            raise ValueError(f"{path}, line {line}: the name {name!r} appears twice: give every column its own")
    return names


def _goal(path: Path, names: list[str] | None, width: int, target: Any, features: Sequence[str] | None) -> int | None:
    """The number of the target's column; None where a file to predict has none."""
    if isinstance(target, str) and names is not None and target in names:
        return names.index(target)
    if names is None and features is not None and width == len(features):
        return None
    try:
        number = None if target is None else int(target)
    except ValueError:
        number = None
    if number is not None and -width <= number < width:
        return number % width
    if target is None and features is None:
        return width - 1
    if features is not None:
        return width - 1 if names is None and width == len(features) + 1 else None
    has = "no header" if names is None else _listed(names)
    raise ValueError(f"target={target!r} is no column of {path}: it has {width} columns, {has}")


def _values(
    path: Path, body: Iterator[tuple[int, list[str]]], width: int, chosen: list[int], goal: int | None, names: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    numbers, words, lines = array.array("d"), [], []
    for line, row in body:
        if len(row) != width:
            raise ValueError(f"{path}, line {line}: found {len(row)} cells where the first line has {width}")
        try:
            values = [float(row[j]) for j in chosen]
        except ValueError:
            values = [math.nan]
        # the sum is finite only if every value is, short of an overflow, which the cells then tell
        if not math.isfinite(sum(values)) or any("_" in row[j] for j in chosen):
            values = [_number(path, line, row[j], _titled(names, j)) for j in chosen]
        numbers.extend(values)
        lines.append(line)
        if goal is not None:
            words.append(row[goal].strip())
    if not lines:
        raise ValueError(f"{path} holds no rows of numbers below its header")
    X = np.frombuffer(numbers, np.float64).reshape(len(lines), len(chosen)) if chosen else np.empty((len(lines), 0))
    return X, None if goal is None else _targets(path, words, lines, _titled(names, goal))


def _titled(names: list[str] | None, j: int) -> str:
    return f"column {j + 1}" if names is None else f"column {names[j]!r}"


def _number(path: Path, line: int, cell: str, column: str) -> float:
    if cell.strip().lower() in MISSING:
        raise ValueError(f"{path}, line {line}: {column} has a missing value ({cell!r}): remove the row or fill it in")
    try:
        value = float(cell)
    except ValueError:
        value = None
    if value is None or "_" in cell:
        raise ValueError(
            f"{path}, line {line}: {column} holds {cell[:40]!r}, which is not a number: encode it as one, or name it "
            "as the target if it is what to predict"
        )
    if not math.isfinite(value):
        raise ValueError(f"{path}, line {line}: {column} holds {cell!r}: remove the row or fill in a number")
    return value


def _targets(path: Path, words: list[str], lines: list[int], column: str) -> np.ndarray:
    """Numbers if every target is one, else words."""
    for line, word in zip(lines, words, strict=True):
        if word.lower() in MISSING - {"-", ".", "none"}:
            raise ValueError(
                f"{path}, line {line}: the target, {column}, has a missing value ({word!r}): remove the row"
            )
    try:
        y = np.asarray([float(word) for word in words])
    except ValueError:
        return np.asarray(words)
    if not np.isfinite(y).all():
        at = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(f"{path}, line {lines[at]}: the target, {column}, is {words[at]!r}: remove the row")
    return y


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"the column{'s' if len(names) > 1 else ''} {shown}" if names else ""
