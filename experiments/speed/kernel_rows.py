"""Hinge, bias, Gaussian kernel with gamma = 1/d, five folds: hyperjax against five calls of LIBSVM."""

import multiprocessing
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.speed import peers
from experiments.speed.task import SEED, WARM, Options, Race, clock, low, peak, permuted, sample, splits, worst

PROBLEM = hj.Problem(loss=hj.losses.Hinge(), kernel=hj.kernels.RBF(), bias=True)
STEP = 1.1
JUDGED = {False: 5, True: 1}
"""Repeats of small and of large cells whose objectives are computed: in these it takes longer than the solve."""


def values(C: float, gamma: float) -> Any:
    return {"loss": {"C": jnp.float32(C)}, "kernel": {"gamma": jnp.float32(gamma)}}


def ours(hp: Any, X: Any, y: Any, folds: Any, init: Any = None) -> Any:
    """All folds, kernel matrix included; X and y are host arrays already in float32."""
    return jax.block_until_ready(hj.cross_solve(PROBLEM, hp, X, y, folds, init=init))


def coefficients(models: list[Any], folds: Any) -> tuple[np.ndarray, np.ndarray]:
    """LIBSVM's z (T, n) and b (T,)."""
    z, b = np.zeros(folds.train.shape), np.zeros(len(models))
    for t, (rows, model) in enumerate(zip(splits(folds), models, strict=True)):
        z[t, rows[model.support_]], b[t] = model.dual_coef_[0], model.intercept_[0]
    return z, b


def quality(z: np.ndarray, b: np.ndarray, C: float, gamma: float, X: np.ndarray, y: np.ndarray, folds: Any) -> Any:
    """Primal and dual objective of every fold in float64; z is first put into its box, b as reported.

    max(primal) - dual is a bound only for a dual feasible point, so sum z = 0 is restored by the share of each row
    strictly inside its box.
    """
    primal, dual = [], []
    norms = np.sum(X * X, axis=1)
    for t, rows in enumerate(splits(folds)):
        signs, here = y[rows], np.clip(y[rows] * z[t, rows], 0.0, C)
        inside = (here > 0) & (here < C)
        for _ in range(3):
            here[inside] -= signs[inside] * (signs @ here) / max(inside.sum(), 1)
            here = np.clip(here, 0.0, C)
        support = here > 0
        f, base = np.zeros(len(rows)), rows[support]
        for part in np.array_split(np.arange(len(rows)), max(len(rows) // 1000, 1)):
            some = rows[part]
            squares = norms[some][:, None] + norms[base][None, :] - 2.0 * X[some] @ X[base].T
            f[part] = np.exp(-gamma * np.maximum(squares, 0.0)) @ (signs * here)[support]
        half = 0.5 * (signs * here) @ f
        primal.append(half + C * np.maximum(1.0 - signs * (f + b[t]), 0.0).sum())
        dual.append(here.sum() - half)
    return np.array(primal), np.array(dual)


def compare(row: dict[str, Any], mine: Any, theirs: list[Any], C: float, gamma: float, X: Any, y: Any, folds: Any):
    """Adds objectives and gaps to the row: the worst fold so far."""
    own = quality(np.asarray(mine.z, np.float64), np.asarray(mine.b, np.float64), C, gamma, X, y, folds)
    peer = quality(*coefficients(theirs, folds), C, gamma, X, y, folds)
    gaps = [np.max((primal - dual) / primal) for primal, dual in (own, peer)]
    worst(row, objective_excess=np.max((peer[1] - own[1]) / np.abs(peer[1])), gap=gaps[0], peer_gap=gaps[1])
    row["objective"], row["peer_objective"] = own[1].tolist(), peer[1].tolist()
    row["codes"] = sorted(set(row.get("codes", [])) | set(np.asarray(mine.code).tolist()))


def point(options: Options, name: str, size: int, costs: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    """Cold, and from that solution after a 10 % step in C and gamma, for every C."""
    X, y = sample(name, 300 if options.small else size)
    gamma = 1.0 / X.shape[1]
    A, signs, folds = permuted(X, y, WARM)
    data = (*low(A, signs), folds)
    compiling, first = clock(lambda: ours(values(costs[0], gamma), *data))
    compiling_step, _ = clock(lambda: ours(values(STEP * costs[0], STEP * gamma), *data, init=first))
    warm = A, signs, folds
    known = {"memory": peak()}
    races: dict[str, Race] = {}
    facts: dict[str, dict[str, Any]] = {}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(peers.fit, peers.tasks(A[:200], signs[:200], hj.folds.stratified(signs[:200], 5, seed=0), 1.0, gamma))
        for C in costs:
            before = ours(values(C, gamma), *data)
            for repeat in range(options.repeats):
                rows, previous = permuted(X, y, SEED + repeat), None
                for what, cost, width in (("cold", C, gamma), ("step", STEP * C, STEP * gamma)):
                    key = f"{what}-C{C:g}"
                    race = races.setdefault(key, Race(options))
                    row = facts.setdefault(key, {"first": compiling if what == "cold" else compiling_step, **known})
                    others = _calls(cost, width, warm, before if what == "step" else None, pool)
                    previous = _round(race, row, repeat, cost, width, rows, previous, others, pool)
                yield {key: race.row("LIBSVM", **facts[key], **_others(race)) for key, race in races.items()}


def _calls(C: float, gamma: float, rows: Any, init: Any, pool: Any) -> dict[str, Any]:
    """What everybody does on these rows; who is reported beside the peer, for cold solves alone."""
    X, y, folds = rows
    data, jobs = (*low(X, y), folds), peers.tasks(X, y, folds, C, gamma)
    calls = {"ours": partial(ours, values(C, gamma), *data, init=init), "LIBSVM": partial(peers.fits, jobs)}
    if init is None:
        calls["two processes"] = partial(pool.map, peers.fit, jobs, chunksize=1)
        if peers.thunder() is not None:
            calls["thundersvm"] = partial(peers.thunders, *data, C, gamma)
    return calls


def _round(
    race: Race, row: dict[str, Any], repeat: int, C: float, gamma: float, rows: Any, init: Any, others: Any, pool: Any
) -> Any:
    """Everybody once; our solution, from where the next step goes on."""
    X, y, folds = rows
    found = race.round(repeat, _calls(C, gamma, rows, init, pool), others)
    if "LIBSVM" in found and repeat < JUDGED[len(y) > 2000]:
        compare(row, found["ours"], found["LIBSVM"], C, gamma, X, y, folds)
    return found["ours"]


def _others(race: Race) -> dict[str, Any]:
    """Seconds of who is reported beside the peer."""
    names = {"two_processes": "two processes", "thundersvm": "thundersvm"}
    return {key: race.seconds[name] for key, name in names.items() if name in race.seconds}
