"""A search as a file: every evaluation it has made, so that a run that was killed goes on as if it had not been.

A search is a function of the values it is told.  The file holds these values in order and the warm start after the
last one; a resumed run takes the same steps, is told the same values without computing them, and goes on from the
last.  The result is the same bit for bit.
"""

import dataclasses
import functools
import hashlib
import inspect
import json
import re
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .files import arrays_of, replacing

__all__ = ["Checkpoint", "fingerprint"]

FORMAT = "hyperjax.checkpoint"
VERSION = 1
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""What differs from process to process in the name of a function."""
KNOWN = {__name__.partition(".")[0], "builtins", "jax", "jaxlib", "numpy", "typing"}
"""Packages whose functions and classes are told by their names: they change with the versions."""


def fingerprint(**parts: Any) -> dict[str, str]:
    """One digest a part of what decides a search; equal for equal contents."""
    return {name: _digest(value) for name, value in parts.items()}


def _digest(value: Any) -> str:
    leaves, structure = jax.tree.flatten(value)
    digest = hashlib.sha256(ADDRESS.sub("", str(structure)).encode())
    seen: set[int] = set()
    for part in (*_fixed(structure), *leaves):
        digest.update(_content(part, seen))
    return digest.hexdigest()


def _fixed(structure: Any) -> list[Any]:
    """The classes and static fields of a tree."""
    node = structure.node_data()
    inside = [part for child in structure.children() for part in _fixed(child)]
    return inside if node is None else [node, *inside]


def _content(value: Any, seen: set[int]) -> bytes:
    """What a value holds, the same in every process: numbers as bytes, functions and classes of one's own as code.

    A name alone does not tell an edited criterion from the one the file was written with.
    """
    if isinstance(value, (np.ndarray, np.generic, jax.Array, bool, int, float)):
        array = np.ascontiguousarray(value)
        return f"{array.dtype}{array.shape}".encode() + array.tobytes()
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(_content(part, seen) for part in value) + b")"
    if isinstance(value, dict):
        return _content(list(value.items()), seen)
    if isinstance(value, frozenset):  # in no order
        return repr(sorted(map(repr, value))).encode()
    if isinstance(value, types.CodeType):
        return value.co_code + _content((value.co_names, value.co_consts), seen)
    if isinstance(value, functools.partial):
        return _content((value.func, value.args, value.keywords), seen)
    value = inspect.unwrap(value) if callable(value) else value
    name = getattr(value, "__qualname__", None) or ADDRESS.sub("", repr(value))
    if id(value) in seen:
        return name.encode()
    seen.add(id(value))
    if inspect.isfunction(value):
        held = () if _is_known(value) else (value.__code__, value.__defaults__, value.__kwdefaults__, _cells(value))
        return name.encode() + _content(held, seen)
    kind = value if isinstance(value, type) else type(value)
    own = [vars(base).items() for base in kind.__mro__ if not _is_known(base)]
    methods = [method for items in own for _, method in sorted(items) if inspect.isfunction(method)]
    return name.encode() + _content(methods, seen)


def _is_known(thing: Any) -> bool:
    return (thing.__module__ or "").partition(".")[0] in KNOWN


def _cells(function: Any) -> list[tuple[str, Any]]:
    """The values a function has taken along from where it was made."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [(name, cell.cell_contents) for name, cell in cells if cell != types.CellType()]


@dataclasses.dataclass
class Checkpoint:
    """The file of one search; `entries` are the evaluations it was opened with."""

    path: Path
    identity: dict[str, str]
    entries: list[dict[str, np.ndarray]]
    start: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def open(cls, path: Any, identity: dict[str, str]) -> "Checkpoint":
        """A new checkpoint, or the one that lies at `path` if it belongs to the same search."""
        path = Path(path)
        if not path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: the folder {path.parent} does not exist, make it first")
        if path.is_dir():
            raise ValueError(f"checkpoint={str(path)!r} is a folder: name a file in it")
        if not path.exists():
            return cls(path, identity, [], None)
        header, arrays = _read(path)
        differing = [name for name in identity if header["identity"].get(name) != identity[name]]
        if differing:
            raise ValueError(
                f"checkpoint={str(path)!r} belongs to another search: it differs in {', '.join(differing)}; "
                "give this search a file of its own, or remove that one"
            )
        start = (arrays["start.z"], arrays["start.b"]) if "start.z" in arrays else None
        return cls(path, identity, _unpack(header["names"], arrays), start)

    def save(self, entries: list[dict[str, np.ndarray]], start: Any) -> None:
        """Put all evaluations and the warm start in the file's place at once."""
        names = sorted({name for entry in entries for name in entry})
        arrays = _pack(names, entries)
        if start is not None:
            arrays["start.z"], arrays["start.b"] = (np.asarray(part) for part in start)
        header = {"format": FORMAT, "version": VERSION, "identity": self.identity, "names": names}
        header["content"] = _digest(arrays)
        with replacing(self.path) as file:
            np.savez(file, allow_pickle=False, header=np.asarray(json.dumps(header)), **arrays)


def _pack(names: list[str], entries: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """One array a name: the entries' values one after the other, and how long each is."""
    arrays = {}
    for name in names:
        arrays[name] = np.concatenate([np.ravel(entry.get(name, [])) for entry in entries])
        arrays[f"{name}.length"] = np.asarray([np.size(entry[name]) if name in entry else -1 for entry in entries])
    return arrays


def _unpack(names: list[str], arrays: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    entries: list[dict[str, np.ndarray]] = []
    for name in names:
        lengths = arrays[f"{name}.length"]
        parts = np.split(arrays[name], np.cumsum(np.maximum(lengths, 0))[:-1])
        entries = entries or [{} for _ in lengths]
        for entry, part, length in zip(entries, parts, lengths, strict=True):
            if length >= 0:
                entry[name] = part
    return entries


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    remedy = "remove the file to start afresh, or restore it from a copy"
    try:
        arrays = arrays_of(path, "checkpoint of hyperjax")
        header = json.loads(str(arrays.pop("header")))
        known = header["format"] == FORMAT
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"checkpoint={str(path)!r} is damaged or no checkpoint of hyperjax: {remedy}") from error
    if not known:
        raise ValueError(f"checkpoint={str(path)!r} is another file of hyperjax, no checkpoint: name a file of its own")
    if header.get("version") != VERSION:
        raise ValueError(
            f"checkpoint={str(path)!r} has format version {header.get('version')} and this hyperjax writes {VERSION}: "
            "go on with the version that wrote it, or remove the file"
        )
    if header.get("content") != _digest(arrays):
        raise ValueError(f"checkpoint={str(path)!r} is damaged, its contents do not match its digest: {remedy}")
    return header, arrays
