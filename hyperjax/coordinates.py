"""Hyperparameters as one vector: which are tuned, in which coordinates, between which bounds.

Problem
    A tree of natural values has held leaves and free ones.  A free leaf has unconstrained coordinates (its domain's
    `to_real`); a tied leaf, such as the widths of an ARD kernel in an isotropic stage, has one, the mean of them.
    theta (k,) holds the coordinates of all free leaves, one after the other.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .domains import Domain, Interval, NonNegative, Positive, Simplex
from .problem import Problem
from .types import Array, Hyperparameters, Module, static

__all__ = ["Coordinates", "dotted", "flatten", "make", "natural", "real"]

REACH = 12.0
"""Log-like coordinates stay within this distance of where the problem's own start values put them."""


class Coordinates(Module):
    """The free hyperparameters of a tree and their vector theta."""

    template: Hyperparameters
    """A complete tree: the values of held hyperparameters, and of the free ones when the coordinates were made."""
    domains: tuple[Domain, ...]
    """One a free leaf."""
    low: Array
    """Lower bounds (k,) of theta, -inf where there is none."""
    high: Array
    paths: tuple[tuple[str | int, ...], ...] = static()
    """Where the free leaves lie in the tree."""
    tied: tuple[bool, ...] = static()
    """Whether a leaf's coordinates move together."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many coordinates each free leaf has."""
        shapes = (np.shape(_at(self.template, path)) for path in self.paths)
        return tuple(1 if tied else int(np.prod(shape)) for shape, tied in zip(shapes, self.tied, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """One name a coordinate: "loss.C", "kernel.gamma[3]"."""
        out = []
        for path, size, tied in zip(self.paths, self.sizes, self.tied, strict=True):
            single = tied or np.shape(_at(self.template, path)) == ()
            out += [dotted(path)] if single else [f"{dotted(path)}[{i}]" for i in range(size)]
        return tuple(out)

    def build(self, theta: Array) -> Hyperparameters:
        """The tree at theta."""
        hp, at = self.template, 0
        for path, domain, size, tied in zip(self.paths, self.domains, self.sizes, self.tied, strict=True):
            leaf, part = _at(self.template, path), theta[at : at + size]
            if tied:
                real = domain.to_real(leaf)
                value = domain.from_real(real - jnp.mean(real) + part[0])
            else:
                value = domain.from_real(part.reshape(jnp.shape(leaf)))
            hp, at = _put(hp, path, value), at + size
        return hp

    def read(self, hp: Hyperparameters) -> Array:
        """The coordinates of a tree."""
        parts = []
        for path, domain, tied in zip(self.paths, self.domains, self.tied, strict=True):
            real = jnp.ravel(domain.to_real(jnp.asarray(_at(hp, path))))
            parts.append(jnp.mean(real)[None] if tied else real)
        return jnp.concatenate(parts)


@jax.jit
def natural(coords: Coordinates, theta: Array) -> Hyperparameters:
    """coords.build(theta) as one program, where its operations would be compiled one by one."""
    return coords.build(theta)


@jax.jit
def real(coords: Coordinates, hp: Hyperparameters) -> Array:
    """coords.read(hp) as one program."""
    return coords.read(hp)


@jax.jit
def _all_real(domains: tuple[Domain, ...], values: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(domain.to_real(jnp.asarray(value)) for domain, value in zip(domains, values, strict=True))


def make(
    problem: Problem,
    hp: Hyperparameters,
    usual: Hyperparameters,
    criterion_domains: dict[str, Any],
    hold: Any = None,
    bounds: Any = None,
    tied: tuple[str, ...] = (),
) -> Coordinates:
    """The coordinates of everything in hp that is not held.

    `usual` are the problem's own start values, the centre of the bounds; `hold` and `bounds` name leaves by dotted
    paths.  What a loss or kernel declares held (mu, degree) stays so unless `bounds` names it.
    """
    domains = problem.domains(usual)
    if "criterion" in hp:
        domains["criterion"] = criterion_domains
    flat = dict(flatten(hp))
    bounds = _checked_bounds(bounds, flat)
    held = _held(problem, hold, flat, bounds)
    paths = tuple(path for path in flat if not any(path[: len(h)] == h for h in held))
    if not paths:
        raise ValueError("hold leaves nothing to tune: name fewer hyperparameters in hold")
    kinds = tuple(_at(domains, path) for path in paths)
    ties = tuple(dotted(path) in tied and np.size(flat[path]) > 1 for path in paths)
    centre = dict(flatten(usual)) | {path: leaf for path, leaf in flat.items() if path[0] == "criterion"}
    middles = _all_real(kinds, tuple(centre[path] for path in paths))
    low, high = [], []
    for path, domain, middle, tie in zip(paths, kinds, middles, ties, strict=True):
        shape = () if tie else np.shape(flat[path])
        left, right = _limits(dotted(path), domain, middle, bounds.get(path), np.shape(flat[path]))
        low.append(np.broadcast_to(np.mean(left) if tie else left, shape).ravel())
        high.append(np.broadcast_to(np.mean(right) if tie else right, shape).ravel())
    dtype = jnp.asarray(flat[paths[0]]).dtype
    left, right = (jnp.asarray(np.concatenate(part), dtype) for part in (low, high))
    return Coordinates(hp, kinds, left, right, paths, ties)


def dotted(path: tuple[str | int, ...]) -> str:
    """("kernel", "kernels", 0, "gamma") as "kernel.kernels.0.gamma"."""
    return ".".join(map(str, path))


def flatten(tree: Any, at: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """The leaves of nested dicts and lists with their paths, in the order of the tree."""
    if isinstance(tree, dict):
        return [pair for name, inside in tree.items() for pair in flatten(inside, (*at, name))]
    if isinstance(tree, (list, tuple)):
        return [pair for i, inside in enumerate(tree) for pair in flatten(inside, (*at, i))]
    return [(at, tree)]


def _at(tree: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _put(tree: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The tree with one leaf replaced; nothing is changed in place."""
    if not path:
        return value
    key, *rest = path
    if isinstance(tree, dict):
        return {**tree, key: _put(tree[key], tuple(rest), value)}
    return [_put(inside, tuple(rest), value) if i == key else inside for i, inside in enumerate(tree)]


def _parse(name: Any, what: str, known: list[tuple[str | int, ...]]) -> tuple[str | int, ...]:
    """A dotted path as keys; it must lead to a leaf or to a part of the tree."""
    names = ", ".join(map(dotted, known))
    if not isinstance(name, str):
        raise ValueError(f"{what} holds {name!r}: give dotted names such as 'loss.C'; there are {names}")
    path = tuple(int(key) if key.isdigit() else key for key in name.split("."))
    if not any(leaf[: len(path)] == path for leaf in known):
        raise ValueError(f"{what} names {name!r}, and there is no such hyperparameter: there are {names}")
    return path


def _held(problem: Problem, hold: Any, flat: dict, bounds: dict) -> list[tuple[str | int, ...]]:
    known = list(flat)
    declared = [f"loss.{name}" for name in problem.loss.held] + [f"kernel.{name}" for name in problem.kernel.held]
    own = [_parse(name, "hold", known) for name in declared]
    if isinstance(hold, str):
        hold = [hold]
    asked = [_parse(name, "hold", known) for name in (hold or ())]
    return [path for path in own if path not in bounds] + asked


def _checked_bounds(bounds: Any, flat: dict) -> dict[tuple[str | int, ...], tuple[Any, Any]]:
    """User bounds by path, each a pair (low, high) of natural values or None."""
    if bounds is None:
        return {}
    if not isinstance(bounds, dict):
        raise ValueError(f"bounds is a {type(bounds).__name__}: pass a dict such as {{'loss.C': (1e-3, 1e3)}}")
    out = {}
    for name, pair in bounds.items():
        path = _parse(name, "bounds", list(flat))
        if path not in flat:
            raise ValueError(f"bounds names {name!r}, a part of the tree: name one hyperparameter, such as 'loss.C'")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"bounds[{name!r}] is {pair!r}: give a pair (low, high), None for an open end")
        out[path] = tuple(pair)
    return out


def _limits(name: str, domain: Any, middle: Any, pair: Any, shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of a leaf in unconstrained coordinates; `middle` is where its own start value lies."""
    if isinstance(domain, (Positive, Interval, Simplex)):
        middle = np.broadcast_to(np.asarray(middle, float), shape)
        low, high = middle - REACH, middle + REACH
    else:
        low = np.full(shape, 0.0 if isinstance(domain, NonNegative) else -np.inf)
        high = np.full(shape, np.inf)
    if pair is None:
        return low, high
    if isinstance(domain, Simplex):
        raise ValueError(f"bounds[{name!r}]: weights that sum to 1 take no bounds")
    ends = zip((low, high), pair, strict=True)
    low, high = (old if end is None else _natural(name, domain, end, shape) for old, end in ends)
    if not np.all(low < high):
        raise ValueError(f"bounds[{name!r}] is {pair!r}: the lower bound must lie below the upper one")
    return low, high


def _natural(name: str, domain: Any, end: Any, shape: Any) -> np.ndarray:
    """One end of user bounds in unconstrained coordinates."""
    try:
        value = np.asarray(end, float)
    except (TypeError, ValueError):
        raise ValueError(f"bounds[{name!r}] holds {end!r}: give numbers in natural units") from None
    wrong = "must be a number" if np.any(np.isnan(value)) else domain.problem_with(value)
    if wrong or value.shape not in ((), shape):
        raise ValueError(f"bounds[{name!r}] holds {end!r}: it {wrong or f'must be one number or of shape {shape}'}")
    if np.all(np.isinf(value)):
        return np.broadcast_to(value, shape)
    with jax.ensure_compile_time_eval():
        return np.broadcast_to(np.asarray(domain.to_real(jnp.asarray(value)), float), shape)
