"""The tables and the figure of Keerthi, Sindhwani & Chapelle on public data.

python -m experiments.keerthi.run [--quick] [--only PART ..] [--data NAME ..] [--rows N ..] [--seeds K] [--output FILE]
"""

import functools
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hyperjax as hj
from experiments import common
from experiments.keerthi import imbalance, task

PARTS = ("table1", "grid", "tune", "figure1", "cost", "f_measure", "table3", "small")
OUTPUT = Path(__file__).with_name("results.json")
KEY = ("data", "rows", "seed", "method")
SIZES = {"ijcnn1": (2000, 4000, 8000, 16000), "splice": (2000,), "a9a": (2000, 4000, 8000)}
SMALL = {"heart": 180, "pima": 500, "svmguide1": 1000, "magic04": 1000}


def table1(data: str, n: int, seed: int) -> list[dict[str, Any]]:
    """The gradient search with one width and with one a feature."""
    X, y, X_test, y_test = task.split(data, n, seed)
    found = task.adapted(X, y, seed)
    single, result = found["single"], found["result"]
    o = task.outputs(hj.Problem(), single["hp"], X, y, X_test)
    base = {"data": data, "rows": n, "seed": seed}
    return [
        base | {"method": "grad", "error": task.error(o, y_test), **_row(single), **task.described(single["hp"])},
        base
        | {"method": "ard", "error": task.error(np.asarray(result.decision(X_test)), y_test), **_row(found["full"])}
        | {"reason": result.reason},
    ]


def _row(stage: dict[str, Any]) -> dict[str, Any]:
    return {name: stage[name] for name in ("value", "evaluations", "seconds")}


def grid(data: str, n: int, seed: int, points: int = 15) -> list[dict[str, Any]]:
    """15 x 15 points, the smallest smoothed error."""
    X, y, X_test, y_test = task.split(data, n, seed)
    values = {"loss.C": 2.0 ** np.linspace(-5, 9, points), "kernel.gamma": 2.0 ** np.linspace(-12, 2, points)}
    begun = time.perf_counter()
    result = hj.methods.grid(
        hj.Problem(), X, y, task.folds_of(y, seed), hj.criteria.SmoothError(), values, progress=False
    )
    seconds = time.perf_counter() - begun
    o = np.asarray(result.decision(X_test))
    row = {"data": data, "rows": n, "seed": seed, "method": "grid", "error": task.error(o, y_test)}
    return [row | {"value": result.value, "evaluations": result.n_evaluations, "seconds": seconds}
            | task.described(result.hp)]  # fmt: skip


def tune(data: str, n: int, seed: int) -> list[dict[str, Any]]:
    """What hyperjax.tune makes of the same folds, with one width and with one a feature."""
    X, y, X_test, y_test = task.split(data, n, seed)
    out = []
    for method, kernel in (("tune", hj.kernels.RBF()), ("tune-ard", hj.kernels.ARD())):
        begun = time.perf_counter()
        result = hj.tune(hj.Problem(kernel=kernel), X, y, task.folds_of(y, seed), seed=seed, progress=False)
        seconds = time.perf_counter() - begun
        row = {"data": data, "rows": n, "seed": seed, "method": method}
        row |= {"error": task.error(np.asarray(result.decision(X_test)), y_test), "value": result.value}
        out.append(row | {"evaluations": result.n_evaluations, "seconds": seconds, "reason": result.reason})
    return out


def figure1(data: str, n: int, seed: int, points: int = 15) -> list[dict[str, Any]]:
    """Smoothed validation error and test error over the plane, and the path of the gradient search."""
    X, y, X_test, y_test = task.split(data, n, seed)
    folds, problem, criterion = task.folds_of(y, seed), hj.Problem(), hj.criteria.SmoothError()
    Cs, gammas = np.exp(np.linspace(-3.0, 7.0, points)), np.exp(np.linspace(-7.0, 1.0, points))
    surface = hj.methods.grid(
        problem, X, y, folds, criterion, {"loss.C": Cs, "kernel.gamma": gammas}, progress=False
    ).history.to_dict()
    tests = []
    for C, gamma in zip(surface["loss.C"], surface["kernel.gamma"], strict=True):
        o = task.outputs(problem, {"loss": {"C": float(C)}, "kernel": {"gamma": float(gamma)}}, X, y, X_test)
        tests.append(task.error(o, y_test))
    result = hj.methods.keerthi(problem, X, y, folds, criterion, progress=False)
    base = {"data": data, "rows": n, "seed": seed}
    path = result.history.to_dict()
    return [
        base | {"method": "surface", "C": surface["loss.C"], "gamma": surface["kernel.gamma"]}
        | {"value": surface["value"], "test": tests},
        base | {"method": "path", "C": path["loss.C"], "gamma": path["kernel.gamma"], "value": path["value"]},
    ]  # fmt: skip


def cost(data: str, n: int, seed: int) -> list[dict[str, Any]]:
    """Seconds of one evaluation at the end of a search: kernel, training from cold, value and gradient from warm."""
    from experiments.keerthi.cost import breakup

    X, y, _, _ = task.split(data, n, seed)
    return [{"data": data, "rows": n, "seed": seed, "method": "evaluation", **breakup(X, y, seed)}]


def small(data: str, n: int, seed: int, points: int = 15) -> list[dict[str, Any]]:
    """Sets small enough for a grid in any session: the three searches of table 1 side by side."""
    return table1(data, n, seed) + grid(data, n, seed, points)


QUICK = {
    "grid": functools.partial(grid, points=3),
    "figure1": functools.partial(figure1, points=3),
    "table3": functools.partial(imbalance.table3, thresholds=("tuned",), hinges=("full",)),
    "small": functools.partial(small, points=3),
}
"""The parts whose small form is more than fewer rows."""
SOLO = {"table1": table1, "grid": grid, "tune": tune, "figure1": figure1, "cost": cost, "small": small}
SEEDS = {"table1": 5, "grid": 1, "tune": 5, "figure1": 1, "cost": 1, "small": 1, "f_measure": 10, "table3": 10}
GRID_ROWS = 4000
"""The grid's largest subset; above it the paper's own seconds stand beside ours."""


def jobs(part: str, options: Any) -> list[tuple[str, int, int]]:
    """What a part runs: (data, rows, seed)."""
    if options.quick:
        return [("heart", 80, 0)]
    sizes = {name: (n,) for name, n in SMALL.items()} if part == "small" else SIZES
    names = options.data or (list(sizes) if part in ("table1", "grid", "small") else ["ijcnn1"])
    if part in ("f_measure", "table3"):
        names = options.data or ["a9a" if part == "f_measure" else "ijcnn1"]
    out = []
    for name in names:
        wanted = options.rows or (sizes[name] if part in ("table1", "grid", "small", "cost") else (2000,))
        for n in wanted:
            if part in ("grid", "figure1") and n > GRID_ROWS:
                continue
            count = options.seeds or (SEEDS[part] if n <= 8000 else 1)
            out += [(name, n, seed) for seed in range(count)]
    return out


def main(argv: list[str] | None = None) -> None:
    parser = common.arguments(__doc__, PARTS, OUTPUT)
    parser.add_argument("--rows", nargs="+", type=int, default=None, help="these training sizes only")
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message="the optimum sits on the bounds")
    for part in options.only:
        for data, n, seed in jobs(part, options):
            begun = time.perf_counter()
            made = SOLO | imbalance.PARTS | (QUICK if options.quick else {})
            found = made[part](data, n, seed)
            common.merge(options.output, part, found, common.settings(folds=task.FOLDS, dtype="float32"), KEY)
            print(part, data, n, seed, f"{time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
