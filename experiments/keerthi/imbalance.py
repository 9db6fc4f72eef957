"""The F-measure on adult and the weighted error on ijcnn1: thresholds, costs and margins by class."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.keerthi import task
from experiments.keerthi.task import CostRatio

KAPPA = 0.01
HINGES = {
    "equal": (hj.losses.Hinge(), []),
    "ratio": (CostRatio(hj.losses.WeightedHinge(), ratio=KAPPA), []),
    "costs": (hj.losses.WeightedHinge(), ["loss.m_pos", "loss.m_neg"]),
    "full": (hj.losses.WeightedHinge(), []),
}
"""The four columns of table 3 and what each holds."""


def measures(o: np.ndarray, y: np.ndarray, threshold: float, criterion: Any) -> dict[str, float]:
    """The hard criterion of test outputs at the threshold, and at the best cut of these outputs."""
    fields = {} if not hasattr(criterion, "kappa") else {"kappa": criterion.kappa}
    judge = type(criterion)(**fields)
    found = float(judge.hard_value(jnp.asarray(o - threshold, jnp.float32), jnp.asarray(y, jnp.float32)))
    order = np.argsort(-o)
    fp = np.concatenate([[0.0], np.cumsum(y[order] < 0)])
    tp = np.concatenate([[0.0], np.cumsum(y[order] > 0)])
    pos, neg = np.sum(y > 0), np.sum(y < 0)
    if fields:
        scan = np.min((pos - tp + criterion.kappa * fp) / (pos + criterion.kappa * neg))
    else:
        scan = 1.0 - np.max(2.0 * tp / (pos + tp + fp))
    return {"test": found, "test_best_cut": float(scan)}


def _row(result: Any, X_test: np.ndarray, y_test: np.ndarray, criterion: Any) -> dict[str, Any]:
    threshold = float(result.hp.get("criterion", {}).get("threshold", 0.0))
    o = np.asarray(result.decision(X_test), float)
    row = {"value": result.value, "validation": result.hard, **measures(o, y_test, threshold, criterion)}
    return row | {"evaluations": result.n_evaluations, "seconds": result.seconds, **task.described(result.hp)}


def f_measure(data: str, n: int, seed: int) -> list[dict[str, Any]]:
    """F with the threshold at 0 and tuned."""
    X, y, X_test, y_test = task.split(data, n, seed)
    out = []
    for threshold in ("fixed", "tuned"):
        criterion = hj.criteria.FMeasure(threshold=threshold)
        result = hj.methods.keerthi(hj.Problem(), X, y, task.folds_of(y, seed), criterion, seed=seed, progress=False)
        row = {"data": data, "rows": n, "seed": seed, "method": threshold}
        out.append(row | _row(result, X_test, y_test, criterion))
    return out


def table3(
    data: str,
    n: int,
    seed: int,
    thresholds: Sequence[str] = ("fixed", "tuned"),
    hinges: Sequence[str] = tuple(HINGES),
) -> list[dict[str, Any]]:
    """Weighted error with four hinges, with and without a threshold; and costs from the image of the full hinge."""
    X, y, X_test, y_test = task.split(data, n, seed)
    folds, out, ends = task.folds_of(y, seed), [], {}
    for threshold in thresholds:
        criterion = hj.criteria.WeightedError(kappa=KAPPA, threshold=threshold)
        for name in hinges:
            loss, hold = HINGES[name]
            result = hj.methods.keerthi(hj.Problem(loss), X, y, folds, criterion, hold=hold, seed=seed, progress=False)
            ends[name, threshold] = result
            row = {"data": data, "rows": n, "seed": seed, "method": f"{name}, {threshold}"}
            out.append(row | _row(result, X_test, y_test, criterion))
    criterion = hj.criteria.WeightedError(kappa=KAPPA, threshold="tuned")
    loss, hold = HINGES["costs"]
    result = hj.methods.keerthi(
        hj.Problem(loss), X, y, folds, criterion, init=image(ends["full", "tuned"].hp), hold=hold, seed=seed,
        progress=False,
    )  # fmt: skip
    row = {"data": data, "rows": n, "seed": seed, "method": "costs from the image of full, tuned"}
    return [*out, row | {"start": result.history[0]["value"], **_row(result, X_test, y_test, criterion)}]


def image(hp: Any) -> dict[str, Any]:
    """The costs and threshold without margins that give the outputs of (C_pos, C_neg, m_pos, m_neg), rescaled."""
    at = {name: float(value) for name, value in hp["loss"].items()}
    M, r = 0.5 * (at["m_pos"] + at["m_neg"]), 0.5 * (at["m_pos"] - at["m_neg"])
    s0 = float(hp.get("criterion", {}).get("threshold", 0.0))
    return {
        "loss": {"C_pos": at["C_pos"] / M, "C_neg": at["C_neg"] / M, "m_pos": 1.0, "m_neg": 1.0},
        "kernel": {"gamma": float(hp["kernel"]["gamma"])},
        "criterion": {"threshold": (s0 - r) / M},
    }


PARTS = {"f_measure": f_measure, "table3": table3}
