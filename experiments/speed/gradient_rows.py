"""The hypergradient against its cold solve, and how work grows with rows and hyperparameters.

Loops over jax.value_and_grad, in `hyperjax.one_blas_thread` as docs/pitfalls.md has it; no peer runs beside them.
"""

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.speed.task import SEED, WARM, Options, Race, clock, low, peak, permuted, sample, slope

CRITERION = hj.criteria.SmoothError()


def programs(problem: hj.Problem) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Value, and value with gradient, of the smoothed CV error; cold, kernel matrix included."""

    def value(hp: Any, X: Any, y: Any, folds: Any) -> Any:
        return CRITERION(hj.cross_decision(problem, hp, X, y, folds), y, folds)

    return jax.jit(value), jax.jit(jax.value_and_grad(value))


def ready(run: Callable[..., Any], *given: Any) -> Any:
    return jax.block_until_ready(run(*given))


def one_thread(rows: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """The same rows, made while BLAS has one thread."""

    @wraps(rows)
    def inside(*given: Any) -> Iterator[Any]:
        with hj.one_blas_thread():
            yield from rows(*given)

    return inside


def values(problem: hj.Problem, C: Any, gamma: float) -> Any:
    return {"loss": {"C": jnp.asarray(C, jnp.float32)}, "kernel": {"gamma": jnp.float32(gamma)}}


@one_thread
def against_solve(options: Options, name: str, size: int, costs: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    """What the gradient adds to a cold value, over that value."""
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    X, y = sample(name, 300 if options.small else size)
    value, both = programs(problem)
    A, signs, folds = permuted(X, y, WARM)
    data, hp = (*low(A, signs), folds), values(problem, costs[0], 1.0 / X.shape[1])
    ready(value, hp, *data)
    compiling, _ = clock(lambda: ready(both, hp, *data))
    known = {"first": compiling, "memory": peak()}
    facts: dict[str, dict[str, Any]] = {}
    for C in costs:
        hp = values(problem, C, 1.0 / X.shape[1])
        row = facts.setdefault(f"C{C:g}", {**known, "shares": [], "ours": [], "cold": []})
        for repeat in range(options.repeats):
            A, signs, folds = permuted(X, y, SEED + repeat)
            data = (*low(A, signs), folds)
            alone, together = [], []
            while not alone or (len(alone) < 5 and sum(alone) < 0.5):
                alone.append(clock(partial(ready, value, hp, *data))[0])
                together.append(clock(partial(ready, both, hp, *data))[0])
            row["cold"].append(np.median(alone))
            row["ours"].append(np.median(together) - np.median(alone))
            row["shares"].append(row["ours"][-1] / row["cold"][-1])
            row["value"] = float(np.median(row["ours"]) / np.median(row["cold"]))
            yield facts


@one_thread
def hyperparameters(options: Options, size: int) -> Iterator[dict[str, Any]]:
    """Value and gradient in G costs and one width: one C, groups of rows, one C a row; the same rows."""
    size = 200 if options.small else size
    X, y = sample("ijcnn1", size)
    groups = [1, *(g for g in (10, 100, 1000) if g < size), size]
    runs = {}
    for count in groups:
        loss: Any = hj.losses.Hinge()
        if count > 1:
            loss = hj.losses.Grouped(loss, np.arange(size) % count) if count < size else hj.losses.PerSample(loss)
        problem = hj.Problem(loss, hj.kernels.RBF())
        costs = jnp.float32(1.0) if count == 1 else jnp.ones((count,), jnp.float32)
        runs[count] = programs(problem)[1], values(problem, costs, 1.0 / X.shape[1])
    A, signs, folds = permuted(X, y, WARM)
    data = (*low(A, signs), folds)
    first = sum(clock(partial(ready, run, hp, *data))[0] for run, hp in runs.values())
    race, others = Race(options), {str(count): partial(ready, run, hp, *data) for count, (run, hp) in runs.items()}
    for repeat in range(options.repeats):
        A, signs, folds = permuted(X, y, SEED + repeat)
        data = (*low(A, signs), folds)
        calls = {str(count): partial(ready, run, hp, *data) for count, (run, hp) in runs.items()}
        race.round(repeat, calls, others)
        medians = {count: float(np.median(race.seconds[str(count)])) for count in groups}
        counts = [count + 1 for count in groups]
        facts = {"first": first / len(groups), "memory": peak()}
        growth = {"x": counts, "y": list(medians.values()), "value": slope(counts, list(medians.values()))}
        many = {"ours": race.seconds[str(size)], "one": race.seconds["1"], "value": medians[size] / medians[1]}
        yield {"many": {**facts, **many}, "growth": {**facts, **growth, "ours": race.seconds[str(size)]}}


@one_thread
def growth(options: Options, sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Five cold folds, and value and gradient, by rows; the largest sizes run three times."""
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    sizes = (100, 200, 400) if options.small else sizes
    table: dict[str, list[list[float]]] = {"solve": [], "gradient": []}
    firsts, x, memory = [], [], []
    for size in sizes:
        X, y = sample("ijcnn1", size)
        hp = values(problem, 1.0, 1.0 / X.shape[1])
        runs = dict(zip(("solve", "gradient"), programs(problem), strict=True))
        A, signs, folds = permuted(X, y, WARM)
        data = (*low(A, signs), folds)
        firsts.append(sum(clock(partial(ready, run, hp, *data))[0] for run in runs.values()))
        seconds: dict[str, list[float]] = {"solve": [], "gradient": []}
        for repeat in range(min(options.repeats, 3) if size > 20000 else options.repeats):
            A, signs, folds = permuted(X, y, SEED + repeat)
            data = (*low(A, signs), folds)
            for key, run in runs.items():
                seconds[key].append(clock(partial(ready, run, hp, *data))[0])
        jax.clear_caches()
        x.append(size)
        memory.append(peak())
        for key, spent in seconds.items():
            table[key].append(spent)
        yield {
            key: {
                "ours": all_seconds[-1],
                "x": x,
                "y": [float(np.median(spent)) for spent in all_seconds],
                "spread": [[min(spent), max(spent)] for spent in all_seconds],
                "first": firsts[-1],
                "memory": memory[-1],
                "memories": memory,
                "value": slope(x, [np.median(spent) for spent in all_seconds]) if len(x) > 1 else None,
            }
            for key, all_seconds in table.items()
        }
