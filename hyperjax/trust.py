"""Can this hypergradient be trusted?  Reverse mode, forward mode and differences side by side."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from . import checks
from .plugins import traceable
from .results import Code
from .solve import Solution

__all__ = ["HypergradientReport", "check_hypergradient"]

EVERY = 16
"""Up to this many numbers in hp each is a direction of its own; beyond, random directions are drawn."""


@dataclasses.dataclass(frozen=True)
class HypergradientReport:
    """The derivative of f along several directions, by every way there is."""

    names: tuple[str, ...]
    value: float
    reverse: np.ndarray
    forward: np.ndarray
    central: np.ndarray
    """Central differences, the steps extrapolated to zero."""
    uncertain: np.ndarray
    """How far two extrapolations lie apart: what the differences themselves are worth."""
    kinked: np.ndarray
    """Whether the slopes to the left and to the right differ by more than that: f has a kink there."""
    sides: np.ndarray
    """The two one-sided slopes (directions, 2)."""
    digits: np.ndarray
    """Decimal digits of `reverse` that the others confirm."""
    rounding: float
    """What the rounding of f makes of a difference: no smaller slope can be told from 0."""
    same: float
    """How close forward and reverse mode must be, relative to the slope: 1e-6, or what the float type leaves of it."""
    distance: float | None
    """How far the nearest sample is from changing its piece (where f returns a Solution)."""
    codes: tuple[str, ...]

    def agree(self, digits: float = 3) -> np.ndarray:
        """Where all ways agree: to so many digits, or, for a slope too small for differences, to their rounding."""
        return (self.digits >= digits) | (self._modes() & (np.abs(self.reverse - self.central) <= self.rounding))

    def _modes(self) -> np.ndarray:
        # sums cancel in a slope near 0: ten times the rounding leaves it about one unit of f's own
        size = np.maximum(np.maximum(np.abs(self.reverse), _scale(self.reverse)), 10 * self.rounding)
        return np.abs(self.forward - self.reverse) <= self.same * size

    @property
    def trusted(self) -> bool:
        """Whether forward and reverse mode agree and the differences confirm at least 3 digits, without a kink."""
        return bool(np.all(self._modes() & self.agree()) and not np.any(self.kinked))

    def __str__(self) -> str:
        width = max([len(name) for name in self.names] + [9])
        lines = [f"f = {self.value:.10g}"]
        lines.append(f"{'direction':{width}}  {'reverse':>14}  {'forward':>14}  {'central':>14}  digits")
        for i, name in enumerate(self.names):
            note = "  too small for differences" if self.digits[i] < 3 and self.agree()[i] else ""
            note = f"  kink: {self.sides[i, 0]:.4g} | {self.sides[i, 1]:.4g}" if self.kinked[i] else note
            lines.append(
                f"{name:{width}}  {self.reverse[i]:14.7g}  {self.forward[i]:14.7g}  {self.central[i]:14.7g}  "
                f"{self.digits[i]:6.1f}{note}"
            )
        if self.distance is not None:
            lines.append(f"nearest sample to a change of piece: {self.distance:.2e} in output units")
        bad = [code for code in self.codes if code not in ("OK",)]
        if bad:
            lines.append(f"codes of the solve: {', '.join(bad)}")
        lines.append(self.advice())
        return "\n".join(lines)

    def advice(self) -> str:
        """Which digits to believe, in a sentence."""
        if any(Code[code].failed for code in self.codes):
            return "do not believe it: the solve failed (see its codes); loosen tol, scale the features or lower C"
        if not np.isfinite(self.value):
            return (
                f"f is {self.value:g}: held-out outputs are NaN where a fold was not solved; let f return "
                "(value, solution) to see the codes"
            )
        if np.any(self.kinked):
            return "one-sided: f has a kink here and this is the gradient of one side; move hp, or smooth the loss"
        if not np.all(self._modes()):
            return "forward and reverse mode differ: f is not a function of hp alone, or a rule inside it is wrong"
        if self.trusted:
            told = self.digits[self.digits >= 3]
            if not told.size:
                return f"all ways agree that f is flat here: no slope beyond {self.rounding:.1g}"
            return f"believe {int(np.floor(np.min(told)))} digits or more: all ways agree"
        return (
            "the differences do not confirm it: solve more tightly (tol=1e-10 in float64) and look again; if that "
            "changes nothing, f jumps here or a derivative rule inside it is wrong"
        )


def check_hypergradient(
    f: Callable[[Any], Any], hp: Any, step: float | None = None, directions: int = 8, seed: int = 0
) -> HypergradientReport:
    """Compare reverse mode, forward mode and central differences of f at hp.

    f maps a tree of floating-point hyperparameters to a scalar, or to (scalar, Solution): then the report knows the
    codes and the distance to the nearest kink.  Steps are relative to each number: `step`, a half and a quarter of it
    (by default the fourth root of the rounding unit), extrapolated to zero.  Up to 16 numbers are looked at one by
    one, more along `directions` random directions.
    """
    checks.known("differences are taken on the host; call check_hypergradient", hp=hp)
    for name, number in (("step", step), ("directions", directions)):
        if number is not None and not number > 0:
            raise ValueError(f"{name}={number!r}: give a positive number")
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, hp))
    if not flat.size:
        raise ValueError("hp holds no numbers: pass a tree of hyperparameters to differentiate in")
    if not jnp.issubdtype(flat.dtype, jnp.floating):
        raise ValueError(f"hp holds numbers of type {flat.dtype}: pass floating-point hyperparameters")
    first = f(hp)
    solution = first[1] if isinstance(first, tuple) else None
    value = first[0] if isinstance(first, tuple) else first
    if jnp.shape(value) != ():
        raise ValueError(f"f returns shape {jnp.shape(value)}: it must return a scalar, or (scalar, Solution)")

    def scalar(x: Any) -> Any:
        out = f(unravel(x))
        return out[0] if isinstance(out, tuple) else out

    names, along = _directions(hp, np.asarray(flat, float), directions, seed)
    scalar, moved = jax.jit(scalar), [jnp.asarray(v, flat.dtype) for v in along]
    with traceable("f"):
        gradient = np.asarray(jax.jit(jax.grad(scalar))(flat), float)
    reverse = np.asarray([gradient @ np.asarray(v, float) for v in moved])
    tangent = jax.jit(lambda x, v: jax.jvp(scalar, (x,), (v,))[1])
    forward = np.asarray([float(tangent(flat, v)) for v in moved])
    eps = float(jnp.finfo(flat.dtype).eps)
    h = eps ** (1 / 4) if step is None else float(step)
    rounding = 16 * eps * abs(float(value)) / h  # of two values, at a quarter of the step, extrapolated
    parts = [_differences(lambda t, v=v: float(scalar(flat + t * v)), float(value), h) for v in moved]
    central, uncertain, sides, spread = (np.asarray(part) for part in zip(*parts, strict=True))
    scale = np.maximum(np.maximum(np.abs(reverse), np.abs(central)), _scale(reverse))
    worst = np.maximum(np.abs(reverse - forward), np.abs(reverse - central))
    digits = np.clip(-np.log10(np.maximum(worst / scale, 1e-16)), 0.0, 16.0)
    kinked = np.abs(sides[:, 0] - sides[:, 1]) > np.maximum(np.maximum(10 * spread, 0.05 * scale), 4 * rounding)
    codes: tuple[str, ...] = ()
    distance = None
    if isinstance(solution, Solution):
        codes = tuple(Code(int(c)).name for c in np.atleast_1d(np.asarray(solution.code)))
        distance = float(np.min(np.asarray(solution.distance)))
    same = max(1e-6, 1e3 * eps)
    return HypergradientReport(
        names, float(value), reverse, forward, central, uncertain, kinked, sides, digits,
        rounding, same, distance, codes,
    )


def _scale(slopes: np.ndarray) -> float:
    """What counts as zero beside these slopes."""
    return 1e-8 * max(float(np.max(np.abs(slopes), initial=0.0)), 1e-300)


def _directions(hp: Any, flat: np.ndarray, count: int, seed: int) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Names and vectors: one number each, moved relative to its size, or random mixtures of all."""
    size = np.where(flat != 0, np.abs(flat), 1.0)
    if flat.size > EVERY:
        drawn = np.random.default_rng(seed).normal(size=(count, flat.size)) / np.sqrt(flat.size)
        return tuple(f"random {i}" for i in range(count)), [size * row for row in drawn]
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(hp):
        name = jax.tree_util.keystr(path)
        names += [name] if np.ndim(leaf) == 0 else [f"{name}[{i}]" for i in range(np.size(leaf))]
    return tuple(names), list(np.diag(size))


def _differences(f: Callable[[float], float], value: float, h: float) -> tuple[float, float, list[float], float]:
    """(extrapolated central slope, its uncertainty, slopes to the left and right, how much those vary)."""
    at = {t: f(t * h) for t in (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)}
    central = [(at[t] - at[-t]) / (2 * t * h) for t in (1.0, 0.5, 0.25)]
    better = [(4 * fine - coarse) / 3 for coarse, fine in zip(central[:-1], central[1:], strict=True)]
    sides, spread = [], 0.0
    for sign in (-1.0, 1.0):
        slopes = [(at[sign * t] - value) / (sign * t * h) for t in (0.5, 0.25)]
        sides.append(2 * slopes[1] - slopes[0])
        spread = max(spread, abs(slopes[1] - slopes[0]))
    return better[1], abs(better[1] - better[0]), sides, spread
