"""Squared hinge and logistic, linear, five folds, all rows standardised: hyperjax against LIBLINEAR's primal."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train
from task import alternate, clock, draw, load, permuted, splits, standardised

import hyperjax as hj

CASES = (("squared hinge", hj.losses.SquaredHinge(), 2), ("logistic", hj.losses.Logistic(), 0))


def ours(model, C, X, y, folds):
    """All folds at once; X in float32 on the host, as a user has it."""
    hp = {"loss": {"C": jnp.float32(C)}, "kernel": {}}
    return jax.block_until_ready(hj.cross_solve(model, hp, X, y, folds))


def theirs(tasks, option):
    """One call of train a fold on rows in CSR form; building LIBLINEAR's own structure is not timed."""
    with contextlib.redirect_stdout(io.StringIO()):
        return [train(task, option) for task in tasks]


def weights(models):
    """w with the bias as its last entry, (T, d + 1), for the label +1."""
    out = []
    for model in models:
        w, b = model.get_decfun()
        out.append(np.r_[w, b] * (1.0 if model.get_labels()[0] == 1 else -1.0))
    return np.array(out)


def objective(name, w, C, A, y, folds):
    """Primal value of every fold in float64; A has its column of ones."""
    total = []
    for t, rows in enumerate(splits(folds)):
        margins = y[rows] * (A[rows] @ w[t])
        loss = np.maximum(1.0 - margins, 0.0) ** 2 if name == "squared hinge" else np.logaddexp(0.0, -margins)
        total.append(0.5 * w[t] @ w[t] + C * loss.sum())
    return np.array(total)


def dual(name, w, C, A, y, folds):
    """Dual value at the coefficients z = -C phi'(o) that the weights imply: with it comes a duality gap."""
    total = []
    for t, rows in enumerate(splits(folds)):
        margins = y[rows] * (A[rows] @ w[t])
        if name == "squared hinge":
            alpha = 2.0 * C * np.maximum(1.0 - margins, 0.0)
            gain = np.sum(alpha - alpha**2 / (4.0 * C))
        else:
            q = np.clip(1.0 / (1.0 + np.exp(margins)), 1e-300, 1.0 - 1e-16)
            alpha = C * q
            gain = -C * np.sum(q * np.log(q) + (1.0 - q) * np.log1p(-q))
        v = A[rows].T @ (y[rows] * alpha)
        total.append(gain - 0.5 * v @ v)
    return np.array(total)


def rows(folder, seed, repeats, quick):
    """One row a data set and loss, C = 1, bias as one more weight (-B 1)."""
    for name in ("ijcnn1",) if quick else ("a9a", "ijcnn1", "connect4"):
        X, y = load(folder, name)
        X = standardised(X)
        if quick:
            X, y = draw(X, y, 5000, seed)
        for label, loss, kind in CASES:
            yield _row(f"{label} linear {name} {len(y)}", label, loss, f"-s {kind} -c 1 -B 1 -q", X, y, seed, repeats)


def _row(work, label, loss, arguments, X, y, seed, repeats):
    model, C = hj.Problem(loss=loss, kernel=hj.kernels.Linear(), bias="regularised"), 1.0
    A, signs, folds = permuted(X, y, seed + 999)
    row = {"work": work, "target": ">= 6", "ours": [], "peer": []}
    row["compile"], _ = clock(lambda: ours(model, C, A.astype(np.float32), signs.astype(np.float32), folds))
    option = parameter(arguments)
    for repeat in range(repeats):
        A, signs, folds = permuted(X, y, seed + repeat)
        low, signs_low, sparse = A.astype(np.float32), signs.astype(np.float32), scipy.sparse.csr_matrix(A)
        tasks = [problem(signs[rows], sparse[rows], bias=1) for rows in splits(folds)]
        (mine_s, mine), (peer_s, peer) = alternate(
            repeat,
            lambda data=(low, signs_low, folds): ours(model, C, *data),
            lambda tasks=tasks: theirs(tasks, option),
        )
        row["ours"].append(mine_s)
        row["peer"].append(peer_s)
        padded = np.c_[A, np.ones(len(A))]
        own_w, peer_w = np.asarray(mine.z, np.float64) @ padded, weights(peer)
        own, other = (objective(label, w, C, padded, signs, folds) for w in (own_w, peer_w))
        excess = float(np.max((own - other) / other))
        row["objective_excess"] = max(excess, row.get("objective_excess", -np.inf))
        for key, w, primal in (("gap", own_w, own), ("peer_gap", peer_w, other)):
            gap = float(np.max((primal - dual(label, w, C, padded, signs, folds)) / primal))
            row[key] = max(gap, row.get(key, 0.0))
        row["codes"] = sorted(set(row.get("codes", [])) | set(np.asarray(mine.code).tolist()))
    return row
