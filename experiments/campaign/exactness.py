"""Every loss x kernel x bias: the derivatives against differences, each other and themselves.

A combination is measured at the first of some seeds whose solution is farther from a change of active set than the
step moves it.  Errors are relative to the largest entry of what they are held against, and to SMALL of the outputs'
size where nothing moves: as many free samples as columns tie a linear machine to them whatever C is.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import hyperjax as hj

N, D, T, TOL = 18, 2, 2, 1e-13
STEP = 1e-5
SMALL = 1e-3
LIMITS = {"gradient": 1e-6, "modes": 1e-10, "hessian": 1e-5, "adjoint": 1e-10}
GROUPS = np.arange(N) % 2
LOSSES = [
    hj.losses.Hinge(),
    hj.losses.SquaredHinge(),
    hj.losses.SmoothHinge(mu=3.0),
    hj.losses.ModifiedHuber(),
    hj.losses.Logistic(),
    hj.losses.WeightedHinge(C_pos=1.5, C_neg=0.8, m_pos=1.2, m_neg=0.7),
    hj.losses.EpsilonInsensitive(),
    hj.losses.SquaredEpsilonInsensitive(),
    hj.losses.Pinball(tau=0.4),
    hj.losses.Squared(),
    hj.losses.Grouped(hj.losses.EpsilonInsensitive(), GROUPS),
    hj.losses.PerSample(hj.losses.Hinge()),
]
KERNELS = [
    hj.kernels.Linear(),
    hj.kernels.RBF(),
    hj.kernels.ARD(),
    hj.kernels.Weighted([hj.kernels.Linear(), hj.kernels.RBF()]),
]
BIASES = (True, False, "regularised")


def suite(show: bool = True) -> list[dict[str, Any]]:
    """One row a combination."""
    rows = []
    for loss in LOSSES:
        for kernel in KERNELS:
            for bias in BIASES:
                rows.append(measure(hj.Problem(loss=loss, kernel=kernel, bias=bias)))
                if show:
                    print({k: v for k, v in rows[-1].items() if k != "seconds"}, flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst error of every check, and how many combinations pass them all."""
    worst = {name: max((row.get(name, 0.0) for row in rows), default=0.0) for name in LIMITS}
    return {"combinations": len(rows), "good": sum(r["verdict"] == "good" for r in rows), "worst": worst}


def measure(problem: hj.Problem) -> dict[str, Any]:
    """All checks of one combination."""
    begin = time.perf_counter()
    loss = type(problem.loss).__name__
    row: dict[str, Any] = {"loss": loss, "kernel": type(problem.kernel).__name__, "bias": problem.bias}

    def outputs(inputs: Any) -> Any:
        hp, X, y, weights = inputs
        folds = hj.Folds(jnp.asarray(TRAIN), jnp.asarray(1.0 - TRAIN))
        return hj.cross_solve(problem, hp, X, y, folds, weights=weights, tol=TOL).outputs

    for seed in range(20):
        inputs = _draw(problem, seed)
        solution = hj.cross_solve(problem, *inputs[:3], TRAIN, weights=inputs[3], tol=TOL)
        row.update(seed=seed, kkt=float(jnp.max(solution.kkt)), distance=float(jnp.min(solution.distance)))
        if bool(jnp.all(solution.converged)) and row["distance"] > 300 * STEP and row["kkt"] < 1e-12:
            break
    else:
        return {**row, "verdict": "failed", "reason": "no seed with kkt < 1e-12 away from a change of active set"}
    errors = _errors(outputs, inputs, problem.loss.labels)
    bad = [name for name, limit in LIMITS.items() if not errors[name] <= limit]
    verdict = {"verdict": "failed" if bad else "good", "reason": ", ".join(bad)}
    return {**row, **errors, **verdict, "seconds": time.perf_counter() - begin}


TRAIN = np.stack([np.arange(N) % 3 != 0, np.arange(N) % 3 != 1]).astype(float)


def _draw(problem: hj.Problem, seed: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    score = X[:, 0] - 0.5 * X[:, 1] ** 2 + 0.7 * rng.standard_normal(N)
    y = np.where(score > np.median(score), 1.0, -1.0) if problem.loss.labels else score
    hp = jax.tree.map(lambda v: jnp.asarray(v * rng.uniform(0.8, 1.25, np.shape(v))), problem.init(X, y))
    return hp, jnp.asarray(X), jnp.asarray(y), jnp.asarray(rng.uniform(0.5, 1.5, N))


def _errors(outputs: Any, inputs: Any, labels: bool) -> dict[str, float]:
    """The four checks; labels stay where they are."""
    flat, back = ravel_pytree(inputs)
    hp_size = ravel_pytree(inputs[0])[0].size
    moving = np.ones(flat.size)
    if labels:
        moving[hp_size + N * D : hp_size + N * D + N] = 0.0
    rng = np.random.default_rng(0)
    probe = jnp.asarray(rng.standard_normal((T, N)))

    def value(flat: Any) -> Any:
        return jnp.mean(jax.nn.softplus(probe * outputs(back(flat))))

    of_hp = lambda part: outputs(back(flat.at[:hp_size].set(part)))
    gradient = jax.jit(jax.grad(value))
    directions = [*np.eye(flat.size)[:hp_size], *(moving * rng.standard_normal((3, flat.size)))]
    exact, quotient, turn, turned = [], [], [], []
    second = jax.jit(lambda v: jax.jvp(jax.grad(value), (flat,), (v,))[1])
    jitted = jax.jit(value)
    for v in directions:
        v = jnp.asarray(v / np.linalg.norm(v))
        exact.append(float(jnp.vdot(gradient(flat), v)))
        quotient.append(float((jitted(flat + STEP * v) - jitted(flat - STEP * v)) / (2 * STEP)))
        turn.append(np.asarray(second(v))[moving > 0])
        turned.append(np.asarray((gradient(flat + STEP * v) - gradient(flat - STEP * v)) / (2 * STEP))[moving > 0])
    forward, backward = jax.jit(jax.jacfwd(of_hp))(flat[:hp_size]), jax.jit(jax.jacrev(of_hp))(flat[:hp_size])
    u, v = jnp.asarray(rng.standard_normal((T, N))), jnp.asarray(moving * rng.standard_normal(flat.size))
    whole = lambda flat: outputs(back(flat))
    left = float(jnp.vdot(u, jax.jit(lambda v: jax.jvp(whole, (flat,), (v,))[1])(v)))
    right = float(jnp.vdot(jax.jit(lambda u: jax.vjp(whole, flat)[1](u)[0])(u), v))
    return {
        "gradient": _relative(exact, quotient),
        "modes": _relative(forward, backward),
        "hessian": _relative(turn, turned),
        "adjoint": abs(left - right) / max(abs(left), abs(right)),
    }


def _relative(found: Any, expected: Any) -> float:
    found, expected = np.asarray(found), np.asarray(expected)
    return float(np.max(np.abs(found - expected)) / max(float(np.max(np.abs(expected))), SMALL))
