"""The tables and figures of Klatzer & Pock on public data.

python -m experiments.klatzer_pock.run [--quick] [--only PART ..] [--data NAME ..] [--seeds K] [--output FILE]
"""

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hyperjax as hj
from experiments import common
from experiments.klatzer_pock import figures, task

PARTS = ("table1", "table2", "table3", "images", "figure2", "figure3", "figure4")
OUTPUT = Path(__file__).with_name("results.json")
KEY = ("data", "seed", "method")
DATA = {
    "table1": ("heart", "ionosphere", "diabetes", "seeds"),
    "table2": ("seeds", "parkinson"),
    "table3": ("parkinson",),
    "images": ("digits",),
    "figure2": ("toy",),
    "figure3": ("diabetes",),
    "figure4": ("diabetes",),
}
SEEDS = {"table1": 8, "table2": 5, "table3": 5, "images": 1, "figure2": 1, "figure3": 6, "figure4": 1}
QUICK = {"images": "digits", "figure2": "toy", "table3": "parkinson"}
"""The set of the small form of a part, where it is not heart."""
C_VALUES = np.logspace(-4, 3, 15)
FEW_C, GAMMAS = np.logspace(-2, 3, 10), np.logspace(-3, 0.5, 5)


def _row(data: str, seed: int, method: str, fit: task.Fit, X: np.ndarray, y: np.ndarray, begun: float) -> dict:
    row = {"data": data, "seed": seed, "method": method, "cv": fit.cv_error()}
    row |= {"test": task.error(fit.predicted(X), y), "trials": fit.trials}
    row["C"] = [float(result.hp["loss"]["C"]) for result in fit.results]
    return row | {"seconds": time.perf_counter() - begun, "reason": [result.reason for result in fit.results]}


def table1(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """Linear and Gaussian machines with three outer losses and by a grid."""
    X, y, X_test, y_test = task.split(data, seed)
    out = []
    for kind in ("kernel",) if quick else ("linear", "kernel"):
        problem, prefix = task.machine(kind), {"linear": "Lin", "kernel": "Ker"}[kind]
        for name, criterion in list(task.CRITERIA.items())[: 1 if quick else 3]:

            def learn(X: Any, y: Any, folds: Any, criterion: Any = criterion, problem: Any = problem) -> Any:
                return hj.methods.klatzer_pock(problem, X, y, folds, criterion, progress=False)

            begun = time.perf_counter()
            out.append(_row(data, seed, prefix + name, task.Fit(X, y, seed, learn), X_test, y_test, begun))

        def search(X: Any, y: Any, folds: Any, problem: Any = problem, kind: str = kind) -> Any:
            values = {"loss.C": C_VALUES} if kind == "linear" else {"loss.C": FEW_C, "kernel.gamma": GAMMAS}
            return hj.methods.grid(problem, X, y, folds, hj.criteria.ErrorRate(), values, progress=False)

        if not quick:
            begun = time.perf_counter()
            out.append(_row(data, seed, prefix + "grid", task.Fit(X, y, seed, search), X_test, y_test, begun))
    return out


def table2(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """One width a feature, from the optimum with all of them equal; that optimum stands beside it."""
    X, y, X_test, y_test = task.split(data, seed)
    out = []
    for name, criterion in list(task.CRITERIA.items())[: 1 if quick else 3]:
        for kind in ("widths",) if quick else ("kernel", "widths"):

            def learn(X: Any, y: Any, folds: Any, criterion: Any = criterion, kind: str = kind) -> Any:
                return hj.methods.klatzer_pock(task.machine(kind), X, y, folds, criterion, progress=False)

            begun = time.perf_counter()
            out.append(_row(data, seed, f"{kind} {name}", task.Fit(X, y, seed, learn), X_test, y_test, begun))
    return out


def table3(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """A kernel a group of features, groups by order of magnitude, weights and widths learnt."""
    parts = task.groups(task.rows(data)[0])
    X, y, X_test, y_test = task.split(data, seed, scale=False)
    X, X_test = task.by_groups(X, X_test, parts)
    kernel = hj.kernels.Weighted([hj.kernels.RBF(gamma=1.0, columns=tuple(part)) for part in parts])
    problem, out = hj.Problem(hj.losses.SmoothHinge(mu=task.MU), kernel, bias=False), []
    for name, criterion in list(task.CRITERIA.items())[: 1 if quick else 3]:

        def learn(X: Any, y: Any, folds: Any, criterion: Any = criterion) -> Any:
            return hj.methods.klatzer_pock(problem, X, y, folds, criterion, progress=False)

        begun = time.perf_counter()
        fit = task.Fit(X, y, seed, learn)
        at = fit.results[0].hp["kernel"]
        learnt = {"beta": np.asarray(at["beta"]).tolist(), "gamma": [float(k["gamma"]) for k in at["kernels"]]}
        out.append(_row(data, seed, name, fit, X_test, y_test, begun) | learnt)
    return out


def images(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """Four classes of images, exponential chi-squared kernel, one machine a class: confusion matrices in percent."""
    X, y, X_test, y_test = task.split(data, seed, scale=False)
    problem, out = hj.Problem(hj.losses.SmoothHinge(mu=task.MU), hj.kernels.ExpChi2(gamma=1.0), bias=False), []
    labels = task.classes(y)
    for name in ("hinge",) if quick else ("hinge", "mse", "grid"):

        def learn(X: Any, y: Any, folds: Any, name: str = name) -> Any:
            if name == "grid":
                values = {"loss.C": FEW_C, "kernel.gamma": np.logspace(-1.5, 1.5, 5)}
                return hj.methods.grid(problem, X, y, folds, hj.criteria.ErrorRate(), values, progress=False)
            return hj.methods.klatzer_pock(problem, X, y, folds, task.CRITERIA[name], progress=False)

        begun = time.perf_counter()
        fit = task.Fit(X, y, seed, learn)
        found = fit.predicted(X_test)
        confusion = [[100.0 * float(np.mean(found[y_test == a] == b)) for b in labels] for a in labels]
        row = _row(data, seed, name, fit, X_test, y_test, begun)
        out.append(row | {"labels": labels, "confusion": confusion})
    return out


RUNS = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "images": images,
    "figure2": figures.figure2,
    "figure3": figures.figure3,
    "figure4": figures.figure4,
}


def main(argv: list[str] | None = None) -> None:
    options = common.arguments(__doc__, PARTS, OUTPUT).parse_args(argv)
    warnings.filterwarnings("ignore", message="the optimum sits on the bounds")
    for part in options.only:
        names = (QUICK.get(part, "heart"),) if options.quick else DATA[part]
        for data in [name for name in names if options.data is None or name in options.data]:
            for seed in range(1 if options.quick else options.seeds or SEEDS[part]):
                begun = time.perf_counter()
                found = RUNS[part](data, seed, quick=options.quick)
                made = common.settings(mu=task.MU, folds=task.FOLDS, dtype="float32")
                common.merge(options.output, part, found, made, KEY)
                print(part, data, seed, f"{time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
