"""The svmlight (LIBSVM) text format: `label index:value index:value .. # comment`, one row a line.

A block of lines is read by a few passes over its bytes; only a block in which something is wrong is read again line
by line, to say where.
"""

import dataclasses
import re
import warnings
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import scipy.sparse

from .files import reading, replacing

__all__ = ["Rows", "parse", "read", "write"]

BLOCK = 1 << 23
"""Bytes read at a time: what bounds the memory beside the result."""
SPACE = np.zeros(256, bool)
SPACE[list(b" \t\n\r\v\f")] = True
DIGIT = np.zeros(256, bool)
DIGIT[list(b"0123456789")] = True
QUERY = re.compile(rb"(?<=\S[ \t])qid:\S*")
COMMENT = re.compile(rb"#[^\n]*")
LARGEST = 1 << 31
"""Indices stay below this: SciPy counts columns of a small matrix in 32 bits."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """What the lines hold, row after row; `lines` are the line numbers the rows came from."""

    y: np.ndarray
    counts: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    lines: np.ndarray


def read(
    path: Any, n_features: int | None = None, zero_based: bool | str = "auto"
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """X (CSR, float64) and y (float64) of a file, also one packed as .gz, .bz2 or .xz.

    Columns count from 1 unless an index 0 appears; `zero_based` True or False settles it (read a test file as its
    training file was).  `n_features` fixes the number of columns.  Query numbers (qid) and comments are ignored.
    """
    if not (zero_based == "auto" or isinstance(zero_based, bool)):
        raise ValueError(f'zero_based={zero_based!r}: choose True, False or "auto"')
    with reading(path) as file:
        rows = parse(file, path)
    if not rows.y.size:
        raise ValueError(f"{path} holds no rows: expected lines such as '1 3:0.5 7:2'")
    lowest = int(rows.indices.min(initial=1))
    if zero_based is False and lowest == 0:
        _refuse(path, _line_of(rows, rows.indices == 0), "index 0 where columns count from 1: pass zero_based=True")
    first = 0 if zero_based is True or (zero_based == "auto" and lowest == 0) else 1
    indices = rows.indices - first
    found = int(indices.max(initial=-1)) + 1
    if n_features is None:
        n_features = max(found, 1)
    elif found > n_features:
        beyond = indices >= n_features
        index = rows.indices[beyond][0]
        _refuse(path, _line_of(rows, beyond), f"index {index} is beyond the {n_features} features expected")
    indptr = np.concatenate(([0], np.cumsum(rows.counts)))
    X = scipy.sparse.csr_matrix((rows.values, indices, indptr), shape=(rows.y.size, n_features))
    return X, rows.y


def write(path: Any, X: Any, y: Any, zero_based: bool = False) -> None:
    """Write X (dense or sparse) and y so that `read` gives back the same numbers; zeros are left out."""
    X = scipy.sparse.csr_matrix(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    y = np.asarray(y, np.float64)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y has shape {y.shape} and X has {X.shape[0]} rows: give y one value a row")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise ValueError("X or y holds NaN or infinite values: remove or impute them first")
    with replacing(path) as file:
        write_rows(file, y, X, 0 if zero_based else 1)


def write_rows(file: IO[bytes], first: np.ndarray, X: Any, offset: int) -> None:
    """Lines of a leading number and the row's entries; the columns of the CSR matrix X count from `offset`."""
    names = (X.indices + offset).tolist()
    values = X.data.tolist()
    for i, lead in enumerate(first.tolist()):
        part = slice(X.indptr[i], X.indptr[i + 1])
        entries = "".join(f" {name}:{_text(value)}" for name, value in zip(names[part], values[part], strict=True))
        file.write(f"{_text(lead)}{entries}\n".encode())


def _text(value: float) -> str:
    """The shortest text that is read back as the same number."""
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def parse(file: IO[bytes], path: Any, line: int = 1) -> Rows:
    """All lines left in `file`, the first of which is number `line`; `path` is for messages."""
    parts = []
    while block := file.read(BLOCK):
        block += file.readline()
        if line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        parts.append(_fast(block, line) or _careful(block, path, line))
        line += block.count(b"\n")
    if not parts:
        parts = [_careful(b"", path, line)]
    fields = (np.concatenate([getattr(part, field.name) for part in parts]) for field in dataclasses.fields(Rows))
    return Rows(*fields)


def _fast(block: bytes, line: int) -> Rows | None:
    """The rows of a block; None where anything in it looks wrong."""
    if b"#" in block:
        block = COMMENT.sub(b"", block)
    if b"qid:" in block:
        block = QUERY.sub(b"", block)
    text = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    space = SPACE[text]
    starts = np.flatnonzero(space[:-1] & ~space[1:]) + 1
    breaks = np.flatnonzero(text == ord("\n"))
    colons = np.flatnonzero(text == ord(":"))
    # the line of each word; a row's first word is the one on another line than its predecessor
    word_line = np.searchsorted(breaks, starts) - 1
    leads = np.diff(word_line, prepend=-1) != 0
    pairs = starts[~leads]
    if pairs.size != colons.size or space[colons - 1].any() or space[colons + 1].any():
        return None
    ends = np.append(starts, text.size)[1:][~leads]
    if not ((pairs < colons) & (colons < ends)).all():
        return None
    odd = np.concatenate((np.zeros(1, np.int32), np.cumsum(~DIGIT[text], dtype=np.int32)))
    if (odd[colons] != odd[pairs]).any():
        return None
    numbers = _numbers(block.replace(b":", b" "))
    if numbers is None or numbers.size != starts.size + colons.size or not np.isfinite(numbers).all():
        return None
    lead_at = np.flatnonzero(leads)
    counts = np.diff(np.append(lead_at, leads.size)) - 1
    # a row of k pairs takes 1 + 2 k numbers
    y_at = np.arange(counts.size) + 2 * np.concatenate(([0], np.cumsum(counts)[:-1]))
    rest = np.delete(numbers, y_at).reshape(-1, 2) if counts.size else np.empty((0, 2))
    indices = rest[:, 0]
    if indices.max(initial=0) >= LARGEST:
        return None
    row = np.repeat(np.arange(counts.size), counts)
    if ((np.diff(indices) <= 0) & (np.diff(row) == 0)).any():
        return None
    return Rows(numbers[y_at], counts, indices.astype(np.int64), rest[:, 1].copy(), line + word_line[lead_at])


def _numbers(text: bytes) -> np.ndarray | None:
    """Numbers separated by white space; None where something else is among them.

    NumPy also splits `1-2` into two numbers: the caller compares the count with that of the words.
    """
    if not text.strip():
        return np.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def _careful(block: bytes, path: Any, line: int) -> Rows:
    """The rows of a block word by word, or an error that names the line."""
    y, counts, indices, values, lines = [], [], [], [], []
    for number, content in enumerate(block.split(b"\n"), line):
        words = content.split(b"#", 1)[0].split()
        if not words:
            continue
        y.append(_number(words[0], path, number, "the label"))
        last, count = -1, 0
        for word in words[1:]:
            if word.startswith(b"qid:"):
                continue
            index, value = _pair(word, path, number)
            if index <= last:
                what = "twice" if index == last else f"after index {last}"
                _refuse(path, number, f"index {index} {what}: indices must increase along a line")
            indices.append(index)
            values.append(value)
            last, count = index, count + 1
        counts.append(count)
        lines.append(number)
    ints = (np.asarray(part, np.int64) for part in (counts, indices))
    floats = (np.asarray(part, np.float64) for part in (y, values))
    (counts, indices), (y, values) = ints, floats
    return Rows(y, counts, indices, values, np.asarray(lines, np.int64))


def _pair(word: bytes, path: Any, line: int) -> tuple[int, float]:
    index, colon, value = word.partition(b":")
    if not colon:
        _refuse(path, line, f"found {_shown(word)} where index:value is expected")
    if not (index.isdigit() and int(index) < LARGEST):
        _refuse(path, line, f"found the index {_shown(index)} in {_shown(word)}: it must be a whole number from 0 on")
    return int(index), _number(value, path, line, f"the value of index {int(index)}")


def _number(word: bytes, path: Any, line: int, what: str) -> float:
    try:
        value = np.nan if b"_" in word else float(word)
        known = True
    except ValueError:
        value, known = np.nan, False
    if not known or b"_" in word:
        _refuse(path, line, f"found {_shown(word)} for {what}: it must be a number")
    if not np.isfinite(value):
        _refuse(path, line, f"found {_shown(word)} for {what}: remove or impute it first")
    return value


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "..")


def _line_of(rows: Rows, marked: np.ndarray) -> int:
    """The line of the first entry that is marked."""
    at = int(np.flatnonzero(marked)[0])
    return int(rows.lines[np.searchsorted(np.cumsum(rows.counts), at, side="right")])


def _refuse(path: Any, line: int, what: str) -> NoReturn:
    raise ValueError(f"{Path(path)}, line {line}: {what}")
