"""Probabilities: a sigmoid of the outputs, fitted to the held-out ones."""

from typing import Any

import numpy as np

from .failures import USAGE, Failure
from .job import Job

__all__ = ["fit", "fitted"]


def fitted(job: Job, result: Any) -> tuple[float, float]:
    """(slope, offset) from the outputs of the cross-validation at the tuned hyperparameters."""
    from ..solve import cross_decision

    if job.task != "classification":
        raise Failure(USAGE, "--probabilities: a regression has none")
    hp = {name: result.hp[name] for name in ("loss", "kernel")}
    o = np.atleast_2d(np.asarray(cross_decision(job.problem, hp, job.X, job.y, job.folds), float))
    tested = np.asarray(job.folds.test).reshape(len(o), -1, len(job.y)).sum(axis=1) > 0
    y = np.broadcast_to(job.y, o.shape)
    return fit(o[tested], y[tested])


def fit(outputs: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The sigmoid 1 / (1 + e^-(slope o + offset)) of largest likelihood, for targets drawn in as Platt does.

    Lin, Lin & Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.
    """
    from scipy.optimize import minimize

    n_pos, n_neg = float(np.sum(y > 0)), float(np.sum(y <= 0))
    target = np.where(y > 0, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    # in units of the outputs' spread the problem is well scaled whatever C is
    spread = float(np.std(outputs)) or 1.0
    x = outputs / spread

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        t = theta[0] * x + theta[1]
        rest = 0.5 * (1.0 + np.tanh(0.5 * t)) - target
        return float(np.mean(np.logaddexp(0.0, t) - target * t)), np.array([np.mean(rest * x), np.mean(rest)])

    start = np.array([1.0, np.log((n_pos + 1.0) / (n_neg + 1.0))])
    slope, offset = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return float(slope / spread), float(offset)
