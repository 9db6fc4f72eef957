"""Table 1 and figure 1 of Jiang & Siddiqui: SGD + DCD and bilevel-SGD, 150 steps, five stratified folds, ten seeds.

python -m experiments.jiang_siddiqui.run                       everything, about an hour
python -m experiments.jiang_siddiqui.run --data pima cancer    these sets only, merged into the table
python -m experiments.jiang_siddiqui.run --quick               a few rows, a few seconds
"""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import hyperjax as hj
from experiments import common
from hyperjax.methods.couellan_wang import couellan_wang
from hyperjax.methods.jiang_siddiqui import jiang_siddiqui

OUTPUT = Path(__file__).with_name("results.json")
PARTS = ("steps", "tune", "variants")
STEPS, CHUNK = 150, 25
CLASSES = {"cancer": "breast_cancer", "pima": "pima", "svmguide1": "svmguide1", "connect4": "connect4"}
CLASSES["connect4_onehot"] = "connect4"
DATA = (*CLASSES, "magic04")
BIASES = {"none": False, "column": "regularised"}
METHODS = {
    "bilevel-SGD": (couellan_wang, {}),
    "SGD+DCD": (jiang_siddiqui, {}),
    "SGD+DCD, exact": (jiang_siddiqui, {"jacobian": "exact"}),
}
VARIANTS = {
    "one row a step": (jiang_siddiqui, {"passes": 0}),
    "all violators": (jiang_siddiqui, {"samples": "all"}),
    "exact, all violators": (jiang_siddiqui, {"samples": "all", "jacobian": "exact"}),
    "log steps": (jiang_siddiqui, {"logarithmic": True}),
    "rescale": (jiang_siddiqui, {"shrink": "rescale"}),
}


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    X: np.ndarray
    y: np.ndarray


def task(name: str, rows: int | None = None) -> Task:
    """A data set with every feature scaled to [-1, 1] on all rows; connect4 is win against loss, draws left out.

    A square of connect4 is one column (a piece of mine 1, of the other's -1, empty 0), or three indicators.
    """
    found = common.arrays(CLASSES.get(name, name))
    X, y = np.asarray(found["X"], np.float64), np.asarray(found["y"])
    if CLASSES.get(name) == "connect4":
        X, y = X[y != 0], common.signs(y[y != 0], 2)
    if name == "connect4_onehot":
        X = np.concatenate([X == piece for piece in (0, 1, -1)], axis=1).astype(np.float64)
    keep = np.random.default_rng(0).permutation(len(y))[:rows]
    return Task(name, common.to_unit_box(X)[keep], y[keep].astype(np.float64))


def folds_of(one: Task, seed: int) -> Any:
    return hj.folds.stratified(one.y, 5, seed=seed)


def problem(bias: str) -> hj.Problem:
    return hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), BIASES[bias])


def search(one: Task, bias: str, method: Any, options: dict[str, Any], seed: int, steps: int) -> tuple[dict, dict]:
    """(the row, the curves) of one seed; the seconds are those of the steps, without the model on all rows."""
    begun = time.process_time()
    result = method(
        problem(bias), one.X, one.y, folds_of(one, seed), seed=seed, max_steps=steps, progress=False, **options
    )
    history = result.history.to_dict()
    accuracy = 100.0 * (1.0 - np.array(history["hard"]))
    row = {
        "data": one.name,
        "bias": bias,
        "seed": seed,
        "accuracy": accuracy[-1],
        "C": result.details["C"][-1],
        "V": result.details["V"][-1],
        "seconds": history["seconds"][-1],
        "cpu_with_final_model": time.process_time() - begun,
        "kkt": history["kkt"][-1],
        "largest_C": result.details["C"].max(),
    }
    return row, {"accuracy": accuracy, "V": result.details["V"], "C": result.details["C"]}


def curves(name: str, bias: str, method: str, all_of: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Mean and spread over seeds of every step."""
    out: dict[str, Any] = {"data": name, "bias": bias, "method": method, "seeds": len(all_of)}
    for key in ("accuracy", "V", "C"):
        stacked = np.stack([one[key] for one in all_of])
        out[key] = [float(f"{v:.5g}") for v in stacked.mean(axis=0)]
        out[f"{key}_sd"] = [float(f"{v:.3g}") for v in stacked.std(axis=0, ddof=min(1, len(all_of) - 1))]
    return out


def steps_of(one: Task, bias: str, methods: dict[str, Any], seeds: int, steps: int, output: Path, part: str) -> None:
    """All methods on one set, merged into the table method by method."""
    made = common.settings(steps=steps, folds="five stratified, seed of the row", scaling="[-1, 1] on all rows")
    for name, (method, options) in methods.items():
        # compiles: the seconds of the seeds are then those of the steps
        search(one, bias, method, options, 0, min(CHUNK, steps))
        found = [search(one, bias, method, options, seed, steps) for seed in range(seeds)]
        rows = [{**row, "method": name} for row, _ in found]
        common.merge(output, part, rows, made, ("data", "bias", "method", "seed"))
        if part == "steps":
            drawn = curves(one.name, bias, name, [curve for _, curve in found])
            common.merge(output, "figure1", [drawn], made, ("data", "bias", "method"))


def tune_of(one: Task, bias: str, seeds: int, output: Path) -> None:
    """hyperjax.tune on the smoothed error, from its own start C = 1."""
    rows = []
    for seed in range(seeds):
        folds, begun = folds_of(one, seed), time.process_time()
        result = hj.tune(problem(bias), one.X, one.y, folds, progress=False)
        cpu = time.process_time() - begun
        outputs = hj.cross_decision(problem(bias), result.hp, one.X, one.y, folds)
        rows.append(
            {
                "data": one.name,
                "bias": bias,
                "method": "tune",
                "seed": seed,
                "accuracy": 100.0 * (1.0 - float(result.hard or 0.0)),
                "C": result.hp["loss"]["C"],
                "V": float(np.maximum(1.0 - one.y * np.asarray(outputs), 0.0).sum() / 5),
                "seconds": result.history[-1]["seconds"],
                "cpu_with_final_model": cpu,
                "evaluations": result.n_evaluations,
                "reason": result.reason,
                "largest_C": max(float(record["hp"]["loss"]["C"]) for record in result.history),
            }
        )
    made = common.settings(criterion="SmoothError", start="C = 1", folds="five stratified, seed of the row")
    common.merge(output, "tune", rows, made, ("data", "bias", "seed"))


def main(argv: list[str] | None = None) -> None:
    parser = common.arguments(__doc__, PARTS, OUTPUT)
    parser.add_argument("--bias", nargs="+", choices=tuple(BIASES), default=list(BIASES))
    options = parser.parse_args(argv)
    names = options.data or (["pima"] if options.quick else list(DATA))
    seeds, steps = options.seeds or (2 if options.quick else 10), 10 if options.quick else STEPS
    biases = ["none"] if options.quick else options.bias
    for name in names:
        one = task(name, 200 if options.quick else None)
        for bias in biases:
            if "steps" in options.only:
                steps_of(one, bias, METHODS, seeds, steps, options.output, "steps")
            if "variants" in options.only and name == "pima" and bias == "none":
                chosen = dict(list(VARIANTS.items())[:1]) if options.quick else VARIANTS
                steps_of(one, bias, chosen, seeds, steps, options.output, "variants")
            if "tune" in options.only:
                tune_of(one, bias, seeds, options.output)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
