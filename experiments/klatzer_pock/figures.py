"""What the figures of Klatzer & Pock show, as rows of the table."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.klatzer_pock import task

SHARP = 20.0
"""mu of the figures."""


def figure2(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """Two clouds of 80 and 20 points and five outliers: the lines that hinge, zero-one and squared error lead to."""
    generator = np.random.default_rng(seed + 2)
    X = np.concatenate([
        generator.normal(size=(80, 2)) + [-1.2, -0.8],
        0.7 * generator.normal(size=(20, 2)) + [1.6, 1.0],
        0.5 * generator.normal(size=(5, 2)) + [6.0, 5.0],
    ]).astype(np.float32)  # fmt: skip
    y = np.where(np.arange(105) < 80, -1.0, 1.0)
    problem, folds = hj.Problem(hj.losses.SmoothHinge(mu=SHARP), hj.kernels.Linear()), hj.folds.stratified(y, 5)
    out = []
    for name, criterion in list(task.CRITERIA.items())[: 1 if quick else 3]:
        result = hj.methods.klatzer_pock(problem, X, y, folds, criterion, progress=False)
        w = np.asarray(result.solution.z) @ X
        row = {"data": data, "seed": seed, "method": name, "w": w.tolist(), "b": float(result.solution.b)}
        row |= {"margin": float(1.0 / np.linalg.norm(w)), "c": result.details["c"], "trials": result.n_evaluations}
        out.append(row)
    return [*out, {"data": data, "seed": seed, "method": "points", "X": X.tolist(), "y": y.tolist()}]


def figure3(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """The surrogates, the CV error and the test error along c, linear machine."""
    c = np.logspace(-3, 4, 3 if quick else 22)
    problem = hj.Problem(hj.losses.SmoothHinge(mu=SHARP), hj.kernels.Linear())
    row = _along(problem, data, seed, [{"loss": {"C": 1.0 / v, "mu": SHARP}, "kernel": {}} for v in c])
    return [{"data": data, "seed": seed, "method": "c", "at": c.tolist(), **row}]


def figure4(data: str, seed: int, quick: bool = False) -> list[dict[str, Any]]:
    """The same along gamma at c = 1, Gaussian kernel."""
    gamma = np.logspace(-3, 1.5, 3 if quick else 22)
    problem = hj.Problem(hj.losses.SmoothHinge(mu=SHARP), hj.kernels.RBF(), bias=False)
    row = _along(problem, data, seed, [{"loss": {"C": 1.0, "mu": SHARP}, "kernel": {"gamma": v}} for v in gamma])
    return [{"data": data, "seed": seed, "method": "gamma", "at": gamma.tolist(), **row}]


def _along(problem: Any, data: str, seed: int, points: list[Any]) -> dict[str, Any]:
    # the sums over samples that hold at C = 1000 need more digits than float32 has
    with jax.enable_x64(True):
        return _measured(problem, data, seed, points)


def _measured(problem: Any, data: str, seed: int, points: list[Any]) -> dict[str, Any]:
    X, y, X_test, y_test = task.split(data, seed)
    X, X_test = X.astype(float), X_test.astype(float)
    folds = hj.folds.stratified(y, task.FOLDS, seed=seed)
    out: dict[str, list[float]] = {name: [] for name in ("cv", "test", *task.CRITERIA)}
    for hp in points:
        hp = {part: {name: jnp.asarray(value) for name, value in hp[part].items()} for part in hp}
        o = task.held_out(problem, hp, X, y, folds)
        for name, value in task.surrogates(o, y).items():
            out[name].append(value)
        out["cv"].append(100.0 * float(np.mean((o >= 0) != (y > 0))))
        test = np.asarray(hj.solve(problem, hp, X, y).decision(X_test))
        out["test"].append(100.0 * float(np.mean((test >= 0) != (y_test > 0))))
    return out
