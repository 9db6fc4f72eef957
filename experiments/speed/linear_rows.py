"""Linear machines, five folds at one C, all rows: hyperjax against LIBLINEAR on CSR input."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import hyperjax as hj
from experiments.speed import peers
from experiments.speed.task import (
    SEED,
    WARM,
    Options,
    Race,
    clock,
    draw,
    load,
    low,
    peak,
    permuted,
    splits,
    standardised,
    worst,
)

LOSSES = {"squared hinge": hj.losses.SquaredHinge(), "logistic": hj.losses.Logistic(), "hinge": hj.losses.Hinge()}
KINDS = {"squared hinge": 2, "logistic": 0, "hinge": 3}
"""LIBLINEAR's -s: two primal solvers, and the dual one of the hinge."""
TOLERANCES = (0.3, 0.1, 0.03, 0.01, 0.003)
C = 1.0
JUDGED = 2
"""Repeats whose objectives are computed."""


def problem(loss: str) -> hj.Problem:
    """LIBLINEAR's own: the bias is one more weight."""
    return hj.Problem(loss=LOSSES[loss], kernel=hj.kernels.Linear(), bias="regularised")


def ours(model: hj.Problem, tol: float | None, X: Any, y: Any, folds: Any) -> Any:
    """All folds at once; X in float32 on the host, as a user has it."""
    hp = {"loss": {"C": jnp.float32(C)}, "kernel": {}}
    return jax.block_until_ready(hj.cross_solve(model, hp, X, y, folds, tol=tol))


def point(options: Options, name: str, loss: str) -> Iterator[dict[str, Any]]:
    """C = 1, bias as one more weight (-B 1)."""
    X, y = load(name)
    X = standardised(X)
    if options.small:
        X, y = draw(X, y, 500, SEED)
    model = problem(loss)
    arguments = f"-s {KINDS[loss]} -c {C:g} -B 1 -q"
    A, signs, folds = permuted(X, y, WARM)
    compiling, _ = clock(lambda: ours(model, None, *low(A, signs), folds))
    facts: dict[str, Any] = {"first": compiling, "memory": peak()}
    tol = same_gap(facts, model, arguments, A, signs, folds) if loss == "hinge" else None

    def calls(A: Any, signs: Any, folds: Any) -> dict[str, Any]:
        data, theirs = (*low(A, signs), folds), peers.folded(scipy.sparse.csr_matrix(A), signs, folds)
        return {"ours": lambda: ours(model, tol, *data), "LIBLINEAR": lambda: peers.liblinear(theirs, arguments)}

    race, others = Race(options), calls(A, signs, folds)
    for repeat in range(options.repeats):
        A, signs, folds = permuted(X, y, SEED + repeat)
        found = race.round(repeat, calls(A, signs, folds), others)
        if "LIBLINEAR" in found and repeat < JUDGED:
            judge(facts, loss, found["ours"], found["LIBLINEAR"], A, signs, folds)
        yield {"fit": race.row("LIBLINEAR", **facts)}


def same_gap(facts: dict[str, Any], model: hj.Problem, arguments: str, A: Any, signs: Any, folds: Any) -> float | None:
    """The loosest tolerance whose gaps are well below LIBLINEAR's in the first fold, on rows that are not timed.

    None: the default, where none of them is good enough.
    """
    data, first = (*low(A, signs), folds), jax.tree.map(lambda weights: np.asarray(weights)[:1], folds)
    theirs = peers.weights(peers.liblinear(peers.folded(scipy.sparse.csr_matrix(A), signs, first), arguments))
    padded = np.c_[A, np.ones(len(A))]
    best = dual("hinge", np.asarray(ours(model, None, *data).z, np.float64), padded, signs, folds)
    limit = np.max(gaps("hinge", theirs, best[:1], padded, signs, first))
    for tol in TOLERANCES:
        w = np.asarray(ours(model, tol, *data).z, np.float64) @ padded
        if np.max(gaps("hinge", w, best, padded, signs, folds)) <= 0.7 * limit:
            facts["tol"] = tol
            return tol
    return None


def judge(facts: dict[str, Any], loss: str, mine: Any, theirs: list[Any], A: Any, signs: Any, folds: Any) -> None:
    """Objectives and gaps of both in float64: the worst fold so far.

    The gap is to the best dual value known: of our coefficients, and of those that the peer's weights imply, which the
    hinge's do not.
    """
    padded = np.c_[A, np.ones(len(A))]
    z = np.asarray(mine.z, np.float64)
    w, other = z @ padded, peers.weights(theirs)
    own, peer = (objective(loss, each, padded, signs, folds) for each in (w, other))
    bound = dual(loss, z, padded, signs, folds)
    if loss != "hinge":
        bound = np.maximum(bound, implied(loss, other, padded, signs, folds))
    worst(
        facts,
        objective_excess=np.max((own - peer) / peer),
        gap=np.max((own - bound) / own),
        peer_gap=np.max((peer - bound) / peer),
    )
    facts["objective"], facts["peer_objective"] = own.tolist(), peer.tolist()
    facts["codes"] = sorted(set(facts.get("codes", [])) | set(np.asarray(mine.code).tolist()))


def gaps(loss: str, w: np.ndarray, bound: np.ndarray, A: Any, y: Any, folds: Any) -> np.ndarray:
    primal = objective(loss, w, A, y, folds)
    return (primal - bound) / primal


def objective(loss: str, w: np.ndarray, A: np.ndarray, y: np.ndarray, folds: Any) -> np.ndarray:
    """Primal value of every fold; A has its column of ones."""
    total = []
    for t, rows in enumerate(splits(folds)):
        margins = y[rows] * (A[rows] @ w[t])
        slack = np.maximum(1.0 - margins, 0.0)
        values = {"squared hinge": slack**2, "hinge": slack}.get(loss)
        values = np.logaddexp(0.0, -margins) if values is None else values
        total.append(0.5 * w[t] @ w[t] + C * values.sum())
    return np.array(total)


def dual(loss: str, z: np.ndarray, A: np.ndarray, y: np.ndarray, folds: Any) -> np.ndarray:
    """Dual value of every fold at the coefficients z, put into their box."""
    return np.array([dual_of(loss, y[rows] * z[t, rows], A[rows], y[rows]) for t, rows in enumerate(splits(folds))])


def implied(loss: str, w: np.ndarray, A: np.ndarray, y: np.ndarray, folds: Any) -> np.ndarray:
    """Dual value at the coefficients z = -C phi'(o) of smooth losses."""
    total = []
    for t, rows in enumerate(splits(folds)):
        margins = y[rows] * (A[rows] @ w[t])
        slack = 2.0 * np.maximum(1.0 - margins, 0.0)
        alpha = C * (slack if loss == "squared hinge" else 1.0 / (1.0 + np.exp(margins)))
        total.append(dual_of(loss, alpha, A[rows], y[rows]))
    return np.array(total)


def dual_of(loss: str, alpha: np.ndarray, A: np.ndarray, y: np.ndarray) -> float:
    """Dual value at alpha = y z of one fold's rows."""
    alpha = np.maximum(alpha, 0.0) if loss == "squared hinge" else np.clip(alpha, 0.0, C)
    if loss == "squared hinge":
        gain = np.sum(alpha - alpha**2 / (4.0 * C))
    elif loss == "hinge":
        gain = np.sum(alpha)
    else:
        q = np.clip(alpha / C, 1e-300, 1.0 - 1e-16)
        gain = -C * np.sum(q * np.log(q) + (1.0 - q) * np.log1p(-q))
    v = A.T @ (y * alpha)
    return gain - 0.5 * v @ v
