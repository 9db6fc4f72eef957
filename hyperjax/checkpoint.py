"""A search as a file: every evaluation it has made, so that a run that was killed goes on as if it had not been.

A search is a function of the values it is told.  The file holds these values in order and the warm start after the
last one; a resumed run takes the same steps, is told the same values without computing them, and goes on from the
last.  The result is the same bit for bit.
"""

import dataclasses
import hashlib
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .files import replacing

__all__ = ["Checkpoint", "fingerprint"]

FORMAT = "hyperjax.checkpoint"
VERSION = 1


def fingerprint(**parts: Any) -> dict[str, str]:
    """One digest a part of what decides a search; equal for equal contents."""
    return {name: _digest(value) for name, value in parts.items()}


def _digest(value: Any) -> str:
    leaves, structure = jax.tree.flatten(value)
    digest = hashlib.sha256(str(structure).encode())
    for leaf in leaves:
        if isinstance(leaf, (np.ndarray, np.generic, jax.Array, bool, int, float)):
            array = np.ascontiguousarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        else:
            digest.update(getattr(leaf, "__qualname__", str(leaf)).encode())
    return digest.hexdigest()


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
        # opened here: NumPy leaves a file it opened itself open when the archive is broken
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
        header = json.loads(str(arrays.pop("header")))
        known = header["format"] == FORMAT
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, TypeError, KeyError) as error:
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
