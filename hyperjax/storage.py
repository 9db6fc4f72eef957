"""Solutions as files: one npz of plain arrays with a JSON header, read back without pickle.

The header holds the format, the library's version, the problem (classes by name and their fields) and the tree of
hyperparameters; every array of it lies in the file under its dotted path.  Of the training rows only those with a
coefficient other than zero in some fold are kept, so `z`, `X`, `outputs` and hyperparameters of one value a row come
back restricted to them: a loaded solution predicts and differentiates, it is no warm start for the full data.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from . import interop, kernels, losses
from .files import arrays_of, replacing
from .kernels.base import Kernel
from .losses.base import Loss
from .losses.grouped import Grouped
from .problem import Problem
from .solve import Solution
from .types import Module

__all__ = ["load", "save"]

FORMAT = "hyperjax.solution"
VERSION = 1
CERTIFICATE = ("kkt", "gap", "code", "iterations", "n_free", "degenerate", "distance")
ROOMS = {"losses": losses, "kernels": kernels, "interop": interop}
"""Where a class named in a file is looked for: nothing else is ever imported or called."""


def save(solution: Solution, path: Any) -> None:
    """Write `solution` to an npz file; ".npz" is added to a path without it.  An older file is replaced whole."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(solution)):
        raise ValueError("the solution holds traced arrays: save it outside jit, grad and vmap, with concrete values")
    rows = _support(np.asarray(solution.z))
    problem, hp = _restrict(solution, rows)
    arrays: dict[str, np.ndarray] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        # a file opened from inside the package cannot import its top
        "library": sys.modules[__name__.partition(".")[0]].__version__,
        "problem": {"loss": None, "kernel": None, "bias": problem.bias},
        "hp": _encode("hp", hp, arrays),
        "n": int(solution.z.shape[-1]),
    }
    for part in ("loss", "kernel"):
        header["problem"][part] = _encode(part, getattr(problem, part), arrays)
    arrays.update({name: np.asarray(getattr(solution, name)) for name in ("b", *CERTIFICATE)})
    arrays.update(z=np.asarray(solution.z)[..., rows], outputs=np.asarray(solution.outputs)[..., rows], rows=rows)
    arrays["X"] = np.asarray(solution.X)[rows]
    with replacing(_with_suffix(path)) as file:
        np.savez_compressed(file, allow_pickle=False, header=np.asarray(json.dumps(header)), **arrays)


def load(path: Any, problem: Problem | None = None) -> Solution:
    """Read what `save` wrote; `problem` is needed where the loss or kernel is defined outside the library."""
    path = _with_suffix(path)
    header, arrays = _read(path)
    try:
        stored = header["problem"]
        if problem is None:
            problem = _problem(path, stored, arrays)
        else:
            _same_problem(path, stored, problem)
        hp = jax.tree.map(jnp.asarray, _decode(header["hp"], arrays))
        parts = {name: arrays[name] for name in ("X", "z", "b", "outputs", *CERTIFICATE)}
        if problem.kernel.needs_all_rows():
            parts = _spread(parts, arrays["rows"], header["n"])
        return Solution(problem, hp, **{name: jnp.asarray(value) for name, value in parts.items()})
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__} {error}; save the solution again") from error


def _with_suffix(path: Any) -> Path:
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")


def _support(z: np.ndarray) -> np.ndarray:
    """Rows with a coefficient in some fold; the first row where there is none, so that X keeps its columns."""
    rows = np.flatnonzero((np.atleast_2d(z) != 0).any(axis=0))
    return rows if rows.size else np.zeros(1, rows.dtype)


def _restrict(solution: Solution, rows: np.ndarray) -> tuple[Problem, Any]:
    """The problem and hyperparameters with everything of one value a row cut down to `rows`."""
    problem, hp, n = solution.problem, dict(solution.hp), solution.z.shape[-1]
    if isinstance(problem.loss, Grouped):
        return problem.replace(loss=problem.loss.replace(groups=np.asarray(problem.loss.groups)[rows])), hp
    hp["loss"] = jax.tree.map(lambda leaf: leaf[rows] if jnp.shape(leaf) == (n,) else leaf, hp["loss"])
    return problem, hp


def _spread(parts: dict[str, np.ndarray], rows: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """All n rows again, for kernels that read a matrix against the training rows.

    Rows without a coefficient were not stored; they repeat a stored one, whose kernel values are finite.
    """
    where = np.zeros(n, int)
    where[rows] = np.arange(len(rows))
    z = np.zeros((*parts["z"].shape[:-1], n), parts["z"].dtype)
    z[..., rows] = parts["z"]
    return {**parts, "X": parts["X"][where], "z": z}


def _shipped(module: Module) -> str | None:
    """The name under which a file finds the class, None for a class from outside."""
    name = type(module).__name__
    found = (room for room, content in ROOMS.items() if getattr(content, name, None) is type(module))
    return next((f"{room}.{name}" for room in found), None)


def _encode(where: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A tree of modules, containers, arrays and plain values as JSON; arrays are put aside under their path."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        arrays[where] = np.asarray(value)
        return {"array": where}
    if isinstance(value, dict):
        return {"dict": {name: _encode(f"{where}.{name}", inside, arrays) for name, inside in value.items()}}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(f"{where}.{i}", inside, arrays) for i, inside in enumerate(value)]}
    if isinstance(value, Module) and _shipped(value) is not None:
        inside = {name: _encode(f"{where}.{name}", field, arrays) for name, field in vars(value).items()}
        return {"class": _shipped(value), "fields": inside}
    return {"foreign": _name(value)}


def _name(value: Any) -> str:
    return type(value).__name__ if isinstance(value, Module) else getattr(value, "__name__", type(value).__name__)


def _decode(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(node, dict):
        return node
    (kind, content), *rest = node.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {name: _decode(inside, arrays) for name, inside in content.items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_decode(inside, arrays) for inside in content)
    if kind != "class":
        raise KeyError(kind)
    room, _, name = content.partition(".")
    cls = getattr(ROOMS[room], name)
    if not (isinstance(cls, type) and issubclass(cls, (Loss, Kernel))):
        raise KeyError(content)
    return cls(**{name: _decode(inside, arrays) for name, inside in dict(rest)["fields"].items()})


def _foreign(node: Any) -> list[str]:
    """Names of the classes and functions a header mentions that the library does not ship."""
    if isinstance(node, list):
        return [name for inside in node for name in _foreign(inside)]
    if not isinstance(node, dict):
        return []
    own = [node["foreign"]] if isinstance(node.get("foreign"), str) else []
    return own + [name for inside in node.values() for name in _foreign(inside)]


def _problem(path: Path, stored: Any, arrays: dict[str, np.ndarray]) -> Problem:
    missing = _foreign(stored)
    if missing:
        raise ValueError(
            f"{path} was saved with {', '.join(missing)}, defined outside hyperjax: "
            "pass problem=hyperjax.Problem(..) as it was when saving"
        )
    return Problem(_decode(stored["loss"], arrays), _decode(stored["kernel"], arrays), stored["bias"])


def _same_problem(path: Path, stored: Any, problem: Problem) -> None:
    """Refuse a `problem` whose loss, kernel or bias is of another kind than the saved one."""
    for part in ("loss", "kernel"):
        node, given = stored[part], _encode(part, getattr(problem, part), {})
        old, new = (entry.get("class") or entry["foreign"] for entry in (node, given))
        if old != new:
            raise ValueError(f"{path} was saved with the {part} {old}, and problem= has {new}: pass the one it had")
    if stored["bias"] != problem.bias:
        raise ValueError(f"{path} was saved with bias={stored['bias']!r}, and problem= has bias={problem.bias!r}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    arrays = arrays_of(path, "file of hyperjax")
    if "header" not in arrays:
        raise ValueError(f"{path} is no solution of hyperjax: it lacks the header that Solution.save writes")
    return _header(path, str(arrays["header"])), arrays


def _header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
        known = header["format"] == FORMAT
    except (json.JSONDecodeError, TypeError, KeyError):
        known, header = False, {}
    if not known:
        raise ValueError(f"{path} is no solution of hyperjax: its header is another program's")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {header.get('version')}, written by hyperjax {header.get('library')}; this "
            f"hyperjax reads versions up to {VERSION}: install a newer one"
        )
    return header
