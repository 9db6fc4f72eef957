"""Hyperparameters under the names people use: "C" and "gamma" for the leaves loss.C and kernel.gamma of the tree."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..coordinates import dotted, flatten
from ..types import Hyperparameters

__all__ = ["full", "merge", "params"]


def _short(hp: Hyperparameters) -> dict[str, str]:
    """Short name -> dotted name; the room is left out wherever what remains is unique."""
    paths = [path for path, _leaf in flatten(hp)]
    rest = [dotted(path[1:]) for path in paths]
    shared = Counter(rest)
    return {tail if shared[tail] == 1 else dotted(path): dotted(path) for path, tail in zip(paths, rest, strict=True)}


def params(hp: Hyperparameters) -> dict[str, Any]:
    """The leaves by short name: a float for a scalar, an array otherwise."""
    leaves = {dotted(path): np.asarray(leaf) for path, leaf in flatten(hp)}
    return {name: float(leaves[at]) if leaves[at].ndim == 0 else leaves[at] for name, at in _short(hp).items()}


def full(names: Any, hp: Hyperparameters) -> Any:
    """Dotted names in place of short ones, in a dict, a list or one string; unknown names stay as they are."""
    known = _short(hp)
    if isinstance(names, str):
        return known.get(names, names)
    if isinstance(names, dict):
        return {full(name, hp): value for name, value in names.items()}
    return [full(name, hp) for name in names] if isinstance(names, Iterable) else names


def merge(init: Any, hp: Hyperparameters) -> Hyperparameters:
    """hp with the start values that `init` names replaced; `init` is a tree like hp, or a flat dict of names."""
    if init is None:
        return hp
    if not isinstance(init, dict):
        raise ValueError(f'init is a {type(init).__name__}: pass a dict of start values such as {{"C": 10.0}}')
    leaves = {dotted(path): leaf for path, leaf in flatten(hp)}
    given = dict(_given(full(init, hp), leaves, ()))
    unknown = sorted(map(str, set(given) - set(leaves)))
    if unknown:
        raise ValueError(f"init names {unknown}; there are {sorted(_short(hp))}")
    for name, value in given.items():
        wanted = np.shape(leaves[name])
        if np.shape(value) not in ((), wanted):
            raise ValueError(f"init[{name!r}] has shape {np.shape(value)}: it must be one number or of shape {wanted}")
        leaves[name] = np.broadcast_to(np.asarray(value, float), wanted)
    return _rebuild(hp, leaves, ())


def _given(tree: Any, leaves: dict[str, Any], at: tuple[str | int, ...]) -> list[tuple[str, Any]]:
    """The values of a tree by dotted name; a list in the place of a leaf is a value."""
    if dotted(at) not in leaves and isinstance(tree, (dict, list, tuple)):
        inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [pair for name, value in inside for pair in _given(value, leaves, (*at, name))]
    return [(dotted(at), tree)]


def _rebuild(tree: Any, leaves: dict[str, Any], at: tuple[str | int, ...]) -> Any:
    if isinstance(tree, dict):
        return {name: _rebuild(inside, leaves, (*at, name)) for name, inside in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_rebuild(inside, leaves, (*at, i)) for i, inside in enumerate(tree)]
    return leaves[dotted(at)]
