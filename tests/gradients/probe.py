"""One inner problem under a microscope: its outputs, both Jacobians, both Hessians and their differences."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import hyperjax as hj

N, D, FOLDS = 24, 3, 3
STEP = 1e-5
TOL = 1e-13
# Compile time is nearly all of these tests' time.
QUICK = {"xla_backend_optimization_level": 0}
FACTORS = (1.0, 1.37, 0.71, 1.93, 0.43, 2.6, 0.26, 3.7)
MARGIN = 1e-3
"""Smallest accepted distance to a change of piece: a hundred steps."""


def data(labels: bool, positive: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows with overlapping classes, or a noisy curve."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D))
    target = X[:, 0] - 0.6 * X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=N)
    return (np.abs(X) if positive else X), (np.where(target > 0, 1.0, -1.0) if labels else target)


def weights(zero: bool) -> np.ndarray:
    """Sample weights between 1/2 and 3/2, one of them 0 if asked."""
    w = np.random.default_rng(8).uniform(0.5, 1.5, N)
    w[4] = 0.0 if zero else w[4]
    return w


def covering(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Cases of the full cross of the axes, chosen greedily until every pair of values of two axes occurs."""
    cross = list(itertools.product(*(range(len(axis)) for axis in axes)))
    pairs = {case: {(i, j, case[i], case[j]) for i, j in itertools.combinations(range(len(axes)), 2)} for case in cross}
    missing: set[tuple[int, ...]] = set().union(*pairs.values())
    chosen = []
    while missing:
        best = max(cross, key=lambda case: len(pairs[case] & missing))
        missing -= pairs[best]
        chosen.append(best)
    return [tuple(axis[i] for axis, i in zip(axes, case, strict=True)) for case in chosen]


def criterion(o: jax.Array, y: jax.Array, labels: bool) -> jax.Array:
    """A smooth validation criterion."""
    return jnp.mean(jax.nn.softplus(-y * o)) if labels else jnp.mean(jnp.log(jnp.cosh(o - y)))


@dataclasses.dataclass
class Probe:
    """theta = (X, hp, w and, in regression, y) in one vector; everything as functions of it."""

    problem: hj.Problem
    labels: bool
    theta: np.ndarray
    parts: dict[str, np.ndarray]
    """The positions of each part of theta."""
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def value(self, theta: np.ndarray) -> float:
        return float(self.first(theta)["value"])


def probe(
    problem: hj.Problem, labels: bool = True, zero: bool = False, positive: bool = False, hp: Any = None, X: Any = None
) -> Probe:
    """A Probe at hyperparameters that keep their distance from every change of piece."""
    features, y = data(labels, positive)
    X = features if X is None else X
    hp = problem.init(X, y) if hp is None else hp
    folds = hj.folds.stratified(y, FOLDS, seed=1) if labels else hj.folds.kfold(N, FOLDS, seed=1)
    tree = {"hp": hp, "w": jnp.asarray(weights(zero)), "X": jnp.asarray(X)} | ({} if labels else {"y": jnp.asarray(y)})
    theta, unravel = ravel_pytree(tree)
    numbers = unravel(jnp.arange(theta.size, dtype=theta.dtype))
    parts = {name: np.asarray(ravel_pytree(numbers[name])[0]).astype(int) for name in tree}

    def both(v):
        t = unravel(v)
        target = t.get("y", jnp.asarray(y))

        def outputs(v):
            t = unravel(v)
            at = t.get("y", jnp.asarray(y))
            s = hj.cross_solve(problem, t["hp"], t["X"], at, folds, weights=t["w"], tol=TOL)
            return (s.held_out(folds), at), {"kkt": s.kkt, "distance": s.distance, "code": s.code}

        (o, at), pull, facts = jax.vjp(outputs, v, has_aux=True)
        value, cotangent = jax.value_and_grad(lambda x: criterion(*x, labels))((o, target))
        return (o, pull(cotangent)[0]), {"value": value, **facts}

    def first(v):
        (o, g), facts = both(v)
        return {"o": o, "gradient": g, **facts}

    def second(v):
        (o, _), linear, _ = jax.linearize(both, v, has_aux=True)
        pull = jax.linear_transpose(linear, v)
        eye, none = jnp.eye(v.size), jnp.zeros_like(v)
        J, H = jax.vmap(linear, out_axes=-1)(eye)
        Jt = jax.vmap(lambda u: pull((u, none))[0])(jnp.eye(o.size))
        Ht = jax.vmap(lambda u: pull((jnp.zeros_like(o), u))[0])(eye)
        return {"forward": J, "reverse": Jt, "hessian": H, "hessian_reverse": Ht}

    here = jax.jit(first, compiler_options=QUICK)
    at = _away_from_kinks(here, np.asarray(theta), unravel)
    return Probe(problem, labels, at, parts, here, jax.jit(second, compiler_options=QUICK))


def _away_from_kinks(first: Callable[[Any], Any], theta: np.ndarray, unravel: Callable[[Any], Any]) -> np.ndarray:
    """theta with its costs multiplied by the first factor that leaves every sample well inside its piece."""
    mask = jax.tree_util.tree_map_with_path(
        lambda path, v: jnp.full_like(v, jax.tree_util.keystr(path).startswith("['hp']['loss']['C")), unravel(theta)
    )
    cost = np.asarray(ravel_pytree(mask)[0])
    for factor in FACTORS:
        at = np.where(cost > 0, factor * theta, theta)
        facts = first(at)
        assert np.max(facts["kkt"]) < 1e-12, f"the inner solve stopped at kkt {np.max(facts['kkt']):.1e}"
        if np.min(facts["distance"]) > MARGIN:
            return at
    raise AssertionError("no factor leads away from the kinks: change the data of the test")


def difference(f: Callable[[np.ndarray], Any], at: np.ndarray, along: np.ndarray, step: float = STEP) -> Any:
    """The central difference of f along a direction."""
    return (np.asarray(f(at + step * along)) - np.asarray(f(at - step * along))) / (2.0 * step)


def one_sided(f: Callable[[np.ndarray], Any], at: np.ndarray, along: np.ndarray, step: float = STEP) -> Any:
    """The forward difference of second order."""
    f0, f1, f2 = (np.asarray(f(at + k * step * along)) for k in (0, 1, 2))
    return (4.0 * f1 - 3.0 * f0 - f2) / (2.0 * step)


def directions(p: Probe) -> dict[str, np.ndarray]:
    """Each hyperparameter alone (relative steps), and a random direction in X, in y and in the positive weights."""
    rng = np.random.default_rng(9)
    out = {}
    for i in p.parts["hp"]:
        out[f"hp {i}"] = np.eye(p.theta.size)[i] * max(abs(p.theta[i]), 0.1)
    for name in ("X", "y", "w"):
        if name in p.parts:
            along = np.zeros(p.theta.size)
            along[p.parts[name]] = rng.normal(size=p.parts[name].size)
            if name == "w":
                along[p.theta == 0.0] = 0.0
            out[name] = along
    return out
