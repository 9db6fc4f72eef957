"""Episodes in the style of MetaOptNet: hyperjax's multi-class layer against the same QPs through qpax.

    python experiments/speed/episodes.py [--quick] [--output FILE]

Eight episodes of 5-way 5-shot on scikit-learn's digits, 64 -> 32 features by one tanh layer, the dual of Crammer and
Singer with C = 1 on the features, batched by vmap; value and gradient in the layer's weights, in float64.  qpax solves
to 1e-8 and differentiates at its relaxation 1e-8, hyperjax solves to 1e-8.  Every repeat draws new episodes; who goes
first alternates.
"""

import argparse
import functools
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj

WAYS, SHOTS, QUERIES, COST, TOL = 5, 5, 6, 1.0, 1e-8
LABELS, ASKED = np.repeat(np.arange(WAYS), SHOTS), np.repeat(np.arange(WAYS), QUERIES)


def episodes(count, seed):
    """Support rows (count, 25, 64) and query rows (count, 30, 64), classes in the order of LABELS and ASKED."""
    from sklearn.datasets import load_digits

    X, digits = load_digits(return_X_y=True)
    draw, support, query = np.random.default_rng(seed), [], []
    for _ in range(count):
        rows = [draw.permutation(np.flatnonzero(digits == c)) for c in draw.permutation(10)[:WAYS]]
        support.append(np.concatenate([X[r[:SHOTS]] for r in rows]) / 16.0)
        query.append(np.concatenate([X[r[SHOTS : SHOTS + QUERIES]] for r in rows]) / 16.0)
    return np.stack(support), np.stack(query)


def judged(outputs):
    """The cross-entropy of the query rows."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(5.0 * outputs), jnp.asarray(ASKED)[:, None], axis=1)
    return -jnp.mean(chosen)


def by_hyperjax(support, query):
    """Loss and coefficients of one episode."""
    problem = hj.multiclass.CrammerSinger(WAYS)
    hp = {"loss": {"C": jnp.asarray(COST, support.dtype)}, "kernel": {}}
    found = hj.multiclass.solve(problem, hp, support, LABELS, tol=TOL)
    return judged(found.decision(query)), found.z


def by_qpax(support, query):
    """The same from the QP  1/2 tr Z'KZ + <Z, d>  with  Z 1 = 0,  Z <= C own class."""
    import qpax

    n, dtype = len(LABELS), support.dtype
    own = np.eye(WAYS)[LABELS]
    z = qpax.solve_qp_primal(
        jnp.kron(support @ support.T, jnp.eye(WAYS, dtype=dtype)),
        jnp.asarray(1.0 - own, dtype).ravel(),
        jnp.asarray(np.kron(np.eye(n), np.ones((1, WAYS))), dtype),
        jnp.zeros(n, dtype),
        jnp.eye(n * WAYS, dtype=dtype),
        jnp.asarray(COST * own, dtype).ravel(),
        solver_tol=TOL,
        target_kappa=TOL,
    ).reshape(n, WAYS)
    return judged(query @ (support.T @ z)), z


def step(solve):
    """The jitted value, coefficients and gradient of a batch of episodes."""

    def loss(W, support, query):
        values, z = jax.vmap(lambda a, b: solve(jnp.tanh(a @ W), jnp.tanh(b @ W)))(support, query)
        return jnp.mean(values), z

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


def violation(W, support, Z):
    """How far coefficients are from optimal: the worst (F) of a batch, by NumPy."""
    features, own = np.tanh(support @ np.asarray(W)), np.eye(WAYS)[LABELS]
    worst = 0.0
    for X, z in zip(features, np.asarray(Z), strict=True):
        outputs = X @ (X.T @ z)
        v = outputs - z / COST + 1.0
        ordered = -np.sort(-v, axis=1)
        taken = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, WAYS + 1)
        last = np.sum(ordered > taken, axis=1) - 1
        projected = np.maximum(v - taken[np.arange(len(v)), last][:, None], 0.0)
        worst = max(worst, np.abs(z / COST - own + projected).max())
    return float(worst)


def clock(work):
    begun = time.perf_counter()
    found = jax.block_until_ready(work())
    return time.perf_counter() - begun, found


def measure(count, repeats):
    """One row of the table."""
    W = jnp.asarray(np.random.default_rng(0).normal(size=(64, 32)) / 8.0)
    sides = {"ours": step(by_hyperjax), "peer": step(by_qpax)}
    first = [jnp.asarray(a) for a in episodes(count, 1000)]
    row = {"work": f"{count} episodes, {WAYS}-way {SHOTS}-shot, value and gradient", "target": 2.0}
    row["compile"] = {name: clock(functools.partial(run, W, *first))[0] for name, run in sides.items()}
    row |= {"ours": [], "peer": [], "violation": {"ours": 0.0, "peer": 0.0}, "gradients_differ": 0.0}
    for repeat in range(repeats):
        data = [jnp.asarray(a) for a in episodes(count, repeat)]
        slopes = {}
        for name in ("ours", "peer") if repeat % 2 else ("peer", "ours"):
            seconds, ((_, z), slopes[name]) = clock(functools.partial(sides[name], W, *data))
            row[name].append(seconds)
            row["violation"][name] = max(row["violation"][name], violation(W, np.asarray(data[0]), z))
        size = float(jnp.abs(slopes["ours"]).max())
        apart = float(jnp.abs(slopes["ours"] - slopes["peer"]).max()) / size
        row["gradients_differ"] = max(row["gradients_differ"], apart)
    return row | {"ratio": float(np.median(row["peer"]) / np.median(row["ours"]))}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two episodes, two repeats: does it run?")
    parser.add_argument("--output", type=Path, default=None, help="default: episodes.json; none with --quick")
    options = parser.parse_args(argv)
    output = options.output or (None if options.quick else Path(__file__).with_suffix(".json"))
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        row = measure(2 if options.quick else 8, 2 if options.quick else 5)
    finally:
        jax.config.update("jax_enable_x64", before)
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    settings = {
        "versions": {name: importlib.metadata.version(name) for name in ("jax", "numpy", "qpax", "scikit-learn")}
        | {"python": sys.version.split()[0]},
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip(),
        "cores": os.cpu_count(),
        "load_before": list(os.getloadavg()),
        "quick": options.quick,
        "dtype": "float64",
    }
    print(json.dumps(row, indent=1))
    if output:
        output.write_text(json.dumps({"settings": settings, "rows": [row]}, indent=1) + "\n")
    return row


if __name__ == "__main__":
    main()
