"""Where the seconds of an evaluation go."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.keerthi import task
from hyperjax import objective, plan

REPEATS = 7


def breakup(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Least seconds of several calls: kernel matrix, training with V (cold and warm), the same with the gradient."""
    problem, criterion = hj.Problem(), hj.criteria.SmoothError()
    folds = task.folds_of(y, seed)
    found = hj.methods.keerthi(problem, X, y, folds, criterion, seed=seed, progress=False)
    made = plan.prepare(problem, X, y, folds, criterion, found, None, None, None, None, None, None, None, seed, "full")
    coords = made.coords("full", made.hp)
    at, tol = made.task(coords, made.hp), jnp.asarray(1e-3, made.X.dtype)
    theta = coords.read(made.hp)
    # the warm start of an evaluation in a search: the folds' solutions a step of a tenth away
    near = objective.evaluate(at, theta + jnp.asarray(0.1, theta.dtype), at.start(), tol)[1]["start"]
    kernel = jax.jit(lambda gamma, X: problem.kernel.cross({"gamma": gamma}, X, X))
    gamma = made.hp["kernel"]["gamma"]
    out = {
        "kernel": _seconds(lambda: kernel(gamma, made.X)),
        "cold": _seconds(lambda: objective.evaluate(at, theta, at.start(), tol)[0]),
        "cold_gradient": _seconds(lambda: objective.differentiate(at, theta, at.start(), tol)[1]),
        "warm": _seconds(lambda: objective.evaluate(at, theta, near, tol)[0]),
        "warm_gradient": _seconds(lambda: objective.differentiate(at, theta, near, tol)[1]),
    }
    return out | {"gradient_share_cold": 1.0 - out["cold"] / out["cold_gradient"], **task.described(found.hp)}


def _seconds(work: Any) -> float:
    """The least after a first call that compiles: other work on the machine can only add to it."""
    jax.block_until_ready(work())
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - begun)
    return min(times)
