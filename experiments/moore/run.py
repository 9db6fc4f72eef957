"""Moore, Bergeron & Bennett, Model selection for primal SVM: tables 3 and 4 and figures 4 to 9 on public data.

python -m experiments.moore.run                       # everything, in pieces with --only
python -m experiments.moore.run --only table4 --seeds 3
"""

import functools
import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import hyperjax as hj
from experiments import common
from experiments.moore import data
from hyperjax.methods.base import Search, Takes

PARTS = ("table3", "table4", "figure4", "figure9", "scaling")
OUTPUT = Path(__file__).with_name("results.json")
KEY = ("data", "rows", "groups", "method", "seed")
TUBE, LINEAR = hj.losses.SquaredEpsilonInsensitive(), hj.kernels.Linear()
BOX_A = None
"""Experiment A: C from 1e-3 to 1e3 and eps up to the deviation of y, what the methods take by themselves."""
BOX_B = {"loss.C": (0.5e-4, 0.5e3), "loss.eps": (0.0, 1.0)}
"""Experiment B: the extremes of the grid; C is half of the paper's."""
FINE = {"loss.C": 0.5 * 10.0 ** np.arange(-4, 4), "loss.eps": np.linspace(0.0, 1.0, 6)}
COARSE = {"loss.C": np.array([0.05, 5.0]), "loss.eps": np.array([0.0, 1.0])}
SMALL = {"bloodbrain": 100, "triazines": 100, "pyrim": 50, "esol": 100}
"""Modelling rows of experiment A."""


def methods(box: Any) -> dict[str, Any]:
    """Every search as a function of problem, X, y and folds."""
    published = {"tol": 1e-3, "feasibility": 1e-3, "shortest": 1e-3}
    return {
        "grid fine": functools.partial(product, values=FINE),
        "grid coarse": functools.partial(product, values=COARSE),
        "impgrad": functools.partial(hj.methods.impgrad, bounds=box),
        "pbp": functools.partial(hj.methods.pbp, bounds=box),
        "pbp published": functools.partial(hj.methods.pbp, bounds=box, **published),
        "tune": functools.partial(hj.tune, bounds=box),
    }


def product(problem: hj.Problem, X: Any, y: Any, folds: Any, values: Any, progress: bool = False) -> hj.TuneResult:
    """Every combination of the values, C and eps of every group apart (`hyperjax.methods.grid` moves groups as one)."""
    search = Search("grid", Takes(rough=True), problem, X, y, folds, progress=progress, inner_tol=1e-3)
    parts = zip(search.coords.paths, search.coords.domains, search.coords.sizes, strict=True)
    axes = [np.asarray(domain.to_real(values[".".join(path)])) for path, domain, size in parts for _ in range(size)]
    thetas = np.asarray(list(itertools.product(*axes)))
    reason = search.walk(lambda: search.sweep(thetas, 16))
    return search.result(search.best(), reason, points=len(thetas))


def one(name: str, search: Any, task: data.Task, groups: int) -> dict[str, Any]:
    """One search: what it found, and what it took."""
    loss = TUBE if groups == 1 else hj.losses.Grouped(TUBE, task.grouped(groups))
    problem = hj.Problem(loss, LINEAR, False)
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # bounds and silent groups are in the row
        result = search(problem, task.X, task.y, task.folds, progress=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = float(np.mean((np.asarray(result.decision(task.X_test)) - task.y_test) ** 2))
    hp = {leaf: np.ravel(np.asarray(result.hp["loss"][leaf])).round(6) for leaf in ("C", "eps")}
    return {
        "groups": groups, "method": name, "test_mse": error, "value": result.value, "seconds": wall, "cpu": cpu,
        "evaluations": result.n_evaluations, "steps": len(result.details.get("track", ())), "reason": result.reason,
        "C": 2.0 * hp["C"], "eps": hp["eps"], "at_bounds": result.at_bounds,
    }  # fmt: skip


def searches(
    options: Any,
    name: str,
    make: Any,
    n: int,
    seeds: int,
    groups: tuple[int, ...],
    wanted: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """All methods on one size; the first seed runs once before, so that its seconds hold no compilation."""
    for count in groups:
        for method, search in wanted.items():
            if _others(options, n, method) or (count > 1 and method == "grid fine"):
                continue
            first = one(method, search, make(n, seed=0), count)
            again = first["cpu"] < 60.0
            for seed in range(seeds):
                row = one(method, search, make(n, seed=seed), count) if again or seed else first
                row |= {"data": name, "rows": n, "seed": seed, "first_cpu": first["cpu"], "warm": again or seed > 0}
                print(f"{name} {n} {count} {method} {seed}: {row['test_mse']:.4f} in {row['cpu']:.2f} s", flush=True)
                yield row


def table3(options: Any, seeds: int) -> Iterator[list[dict[str, Any]]]:
    """Pyruvate kinase's stand-ins: esol and bbbp with noise added to four of five groups."""
    sizes = {"esol": (100,)} if options.quick else {"esol": (100, 200, 800), "bbbp": (1000, 1600)}
    for name, numbers in sizes.items():
        make = functools.partial(data.molecules, name, columns=20 if options.quick else 100)
        for n in numbers if options.data is None or name in options.data else ():
            chosen = _few(methods(BOX_B)) if options.quick else methods(BOX_B)
            yield list(searches(options, name, make, n, seeds, (1, 5), chosen))


def table4(options: Any, seeds: int) -> Iterator[list[dict[str, Any]]]:
    """Tau-fibril's stand-in: the synthetic set, whose truth is known."""
    for n in (100,) if options.quick else (100, 200, 1000, 5000, 10000):
        chosen = _few(methods(BOX_B)) if options.quick else methods(BOX_B)
        yield list(searches(options, "synthetic", data.synthetic, n, seeds, (1, 5), chosen))


def figure4(options: Any, seeds: int) -> Iterator[list[dict[str, Any]]]:
    """Figures 4 and 5: small QSAR sets, SVR, 25 features; the targets as they are."""
    for name, n in {"pyrim": 50}.items() if options.quick else SMALL.items():
        make = functools.partial(data.molecules, name, columns=20 if options.quick else 25, added=np.zeros(5))
        if options.data is None or name in options.data:
            chosen = methods(BOX_A) if not options.quick else {"impgrad": methods(BOX_A)["impgrad"]}
            yield list(searches(options, name, make, n, seeds if options.quick else 2 * seeds, (1,), chosen))


def figure9(options: Any, seeds: int) -> Iterator[list[dict[str, Any]]]:
    """Time against hyperparameters: one to five groups of the synthetic set."""
    n, counts = (100, (1, 5)) if options.quick else (1000, (1, 2, 3, 4, 5))
    chosen = {name: search for name, search in methods(BOX_B).items() if name in ("impgrad", "pbp", "tune")}
    yield list(searches(options, "synthetic", data.synthetic, n, seeds, counts, chosen))


def scaling(options: Any, seeds: int) -> Iterator[list[dict[str, Any]]]:
    """CPU seconds of one ImpGrad evaluation (value and gradient) against rows and groups."""
    rows = []
    for n in (100,) if options.quick else (500, 1000, 2000, 4000, 8000):
        task = data.synthetic(n, 0)
        for count in (1, 5):
            problem = hj.Problem(hj.losses.Grouped(TUBE, task.grouped(count)) if count > 1 else TUBE, LINEAR, False)
            times, each = [], np.inf

            def tick(record: dict[str, Any], times: list[float] = times) -> None:
                times.append(time.process_time())

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                for _ in range(5):  # the first run compiles; the least of them was disturbed least
                    times.clear()
                    result = hj.methods.impgrad(
                        problem, task.X, task.y, task.folds, bounds=BOX_B, tol=1e-8, max_steps=20, callback=tick,
                        compilation="full", progress=False,
                    )  # fmt: skip
                    counted = result.history[len(result.history) - 1]["evaluations"] - 1
                    each = min(each, (times[-1] - times[0]) / max(counted, 1))
            row = {"data": "synthetic", "rows": n, "groups": count, "method": "impgrad", "seed": 0}
            rows.append(row | {"cpu_evaluation": each, "evaluations": result.n_evaluations})
            print(f"scaling {n} {count}: {1e3 * each:.2f} ms", flush=True)
    yield rows


def _others(options: Any, n: int, method: str) -> bool:
    """Whether only other sizes or methods are asked for."""
    return n not in (options.rows or [n]) or method not in (options.methods or [method])


def _few(every: dict[str, Any]) -> dict[str, Any]:
    return {name: every[name] for name in ("grid coarse", "impgrad", "pbp", "tune")}


def main(argv: Any = None) -> None:
    """Run the parts asked for and merge their rows into the table as each size is done."""
    parser = common.arguments(__doc__, PARTS, OUTPUT)
    parser.add_argument("--methods", nargs="+", default=None, metavar="NAME", help="these methods only")
    parser.add_argument("--rows", nargs="+", type=int, default=None, metavar="N", help="these sizes only")
    options = parser.parse_args(argv)
    seeds = options.seeds or (1 if options.quick else 5)
    for part in options.only:
        for rows in globals()[part](options, seeds):
            made = common.settings(seeds=seeds, quick=options.quick)
            common.merge(options.output, part, rows, made, KEY)
            jax.clear_caches()  # a system lends a process so many memory maps, and every program holds some


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
