"""Hinge, bias, Gaussian kernel, five folds: hyperjax against five calls of LIBSVM."""

import multiprocessing

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.svm import SVC
from task import alternate, clock, draw, load, permuted, splits, standardised

import hyperjax as hj

PROBLEM = hj.Problem(loss=hj.losses.Hinge(), kernel=hj.kernels.RBF(), bias=True)
STEP = 1.1
TARGETS = {(1.0, "cold"): ">= 2", (1.0, "step"): ">= 3", (30.0, "cold"): ">= 1", (30.0, "step"): ">= 1"}


def values(C, gamma):
    return {"loss": {"C": jnp.float32(C)}, "kernel": {"gamma": jnp.float32(gamma)}}


def ours(hp, X, y, folds, init=None):
    """All folds, kernel matrix included; y and folds are host arrays already in float32."""
    return jax.block_until_ready(hj.cross_solve(PROBLEM, hp, X, y, folds, init=init))


def fit(arguments):
    X, y, C, gamma = arguments
    return SVC(C=C, gamma=gamma, cache_size=4000).fit(X, y)


def jobs(C, gamma, X, y, folds):
    return [(X[rows], y[rows], C, gamma) for rows in splits(folds)]


def coefficients(models, folds):
    """LIBSVM's z (T, n) and b (T,)."""
    z, b = np.zeros(folds.train.shape), np.zeros(len(models))
    for t, (rows, model) in enumerate(zip(splits(folds), models, strict=True)):
        z[t, rows[model.support_]], b[t] = model.dual_coef_[0], model.intercept_[0]
    return z, b


def quality(z, b, C, gamma, X, y, folds):
    """Primal and dual objective of every fold in float64; z is first put into its box, b as reported.

    max(primal) - dual is a bound only for a dual feasible point, so sum z = 0 is restored by the share of each row
    strictly inside its box.
    """
    primal, dual = [], []
    norms = np.sum(X * X, axis=1)
    for t, rows in enumerate(splits(folds)):
        signs, here = y[rows], np.clip(y[rows] * z[t, rows], 0.0, C)
        inside = (here > 0) & (here < C)
        for _ in range(3):
            here[inside] -= signs[inside] * (signs @ here) / max(inside.sum(), 1)
            here = np.clip(here, 0.0, C)
        coefficients = signs * here
        squares = norms[rows][:, None] + norms[rows][None, :] - 2.0 * X[rows] @ X[rows].T
        f = np.exp(-gamma * np.maximum(squares, 0.0)) @ coefficients
        half = 0.5 * coefficients @ f
        primal.append(half + C * np.maximum(1.0 - signs * (f + b[t]), 0.0).sum())
        dual.append(here.sum() - half)
    return np.array(primal), np.array(dual)


def compare(row, mine, theirs, C, gamma, X, y, folds):
    """Adds objectives and gaps to the row: the worst fold of this repeat."""
    own = quality(np.asarray(mine.z, np.float64), np.asarray(mine.b, np.float64), C, gamma, X, y, folds)
    peer = quality(*coefficients(theirs, folds), C, gamma, X, y, folds)
    excess = float(np.max((peer[1] - own[1]) / np.abs(peer[1])))
    gaps = [float(np.max((primal - dual) / primal)) for primal, dual in (own, peer)]
    row["objective_excess"] = max(excess, row.get("objective_excess", -np.inf))
    row["gap"], row["peer_gap"] = max(gaps[0], row.get("gap", 0.0)), max(gaps[1], row.get("peer_gap", 0.0))
    row["codes"] = sorted(set(row.get("codes", [])) | set(np.asarray(mine.code).tolist()))


def validation(hp, X, y, folds):
    o = hj.cross_decision(PROBLEM, hp, X, y, folds)
    return jnp.mean(jax.nn.softplus(-y * o))


def rows(folder, seed, repeats, quick):
    """Cold, after a 10 % step, and the hypergradient, for every data set, size and C."""
    for name in ("ijcnn1",) if quick else ("ijcnn1", "a9a"):
        X, y = load(folder, name)
        for size in (500,) if quick else (2000, 8000):
            sample, labels = draw(X, y, size, seed)
            sample = standardised(sample)
            yield from _size(name, size, sample, labels, seed, repeats, (1.0,) if quick else (1.0, 30.0))


def _size(name, size, X, y, seed, repeats, costs):
    gamma = 1.0 / X.shape[1]
    A, signs, folds = permuted(X, y, seed + 999)
    low = A.astype(np.float32), signs.astype(np.float32), folds
    compile_cold, first = clock(lambda: ours(values(1.0, gamma), *low))
    compile_step, _ = clock(lambda: ours(values(STEP, gamma), *low, init=first))
    value, both = jax.jit(validation), jax.jit(jax.value_and_grad(validation))
    compile_gradient, _ = clock(lambda: jax.block_until_ready(both(values(1.0, gamma), *low)))
    jax.block_until_ready(value(values(1.0, gamma), *low))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(fit, jobs(1.0, gamma, A[:200], signs[:200], hj.folds.stratified(signs[:200], 5, seed=0)))
        for C in costs:
            work = f"hinge RBF {name} {size} C={C:g}"
            cold = {"work": f"{work} cold", "target": TARGETS[C, "cold"], "compile": compile_cold}
            step = {"work": f"{work} 10 % step", "target": TARGETS[C, "step"], "compile": compile_step}
            gradient = {"work": f"{work} hypergradient", "target": "<= 0.25", "compile": compile_gradient}
            gradient["fraction"] = []
            for row in (cold, step, gradient):
                row.update(ours=[], peer=[], two_processes=[])
            for repeat in range(repeats):
                _repeat(repeat, (cold, step, gradient), (value, both), C, gamma, *permuted(X, y, seed + repeat), pool)
            for row in (cold, step):
                yield row
            gradient["ratio"] = float(np.median(gradient["ours"]) / np.median(cold["ours"]))
            yield gradient


def _repeat(repeat, table, functions, C, gamma, X, y, folds, pool):
    cold, step, gradient = table
    low = X.astype(np.float32), y.astype(np.float32), folds
    previous = None
    for row, (cost, width) in ((cold, (C, gamma)), (step, (STEP * C, STEP * gamma))):
        tasks = jobs(cost, width, X, y, folds)
        hp = values(cost, width)
        (mine_s, mine), (peer_s, peer) = alternate(
            repeat,
            lambda hp=hp, init=previous: ours(hp, *low, init=init),
            lambda tasks=tasks: [fit(task) for task in tasks],
        )
        two_s, _ = clock(lambda tasks=tasks: pool.map(fit, tasks, chunksize=1))
        row["ours"].append(mine_s)
        row["peer"].append(peer_s)
        row["two_processes"].append(two_s)
        compare(row, mine, peer, cost, width, X, y, folds)
        previous = mine
    value, both = functions
    hp = values(C, gamma)
    alone = np.median([clock(lambda: jax.block_until_ready(value(hp, *low)))[0] for _ in range(3)])
    together = np.median([clock(lambda: jax.block_until_ready(both(hp, *low)))[0] for _ in range(3)])
    gradient["ours"].append(float(together - alone))
    gradient["fraction"].append(float((together - alone) / alone))
