"""Whole searches over C of linear machines: hyperjax's tune against LIBLINEAR -C, both answers on the same folds."""

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

import hyperjax as hj
from experiments.speed import peers
from experiments.speed.linear_rows import KINDS, problem
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
    unit_rows,
)

MARGIN = 0.1
"""Points by which our answer may be worse."""
JUDGED = 2


def rows(name: str, small: bool = False) -> tuple[Any, np.ndarray]:
    """Standardised columns of a dense set, rows of length 1 of a sparse one (which stays CSR)."""
    X, y = load(name)
    if small:
        X, y = draw(X, y, 400, SEED)
    return (unit_rows(X) if scipy.sparse.issparse(X) else standardised(X)), y


def ours(loss: str, X: Any, y: Any, folds: Any, compilation: str = "full") -> Any:
    """From the default start to the tuned C and the model on all rows."""
    return hj.tune(problem(loss), X, y, folds, progress=False, compilation=compilation)


def theirs(loss: str, data: list[Any]) -> float:
    """LIBLINEAR's own search; its C."""
    from liblinear.liblinearutil import train

    with contextlib.redirect_stdout(io.StringIO()):
        return float(train(data[0], f"-C -s {KINDS[loss]} -v 5 -B 1 -q")[0])


def cv_error(loss: str, C: float, A: Any, y: np.ndarray, folds: Any) -> float:
    """CV error in per cent at C on our folds, by LIBLINEAR."""
    sparse = scipy.sparse.csr_matrix(A)
    models = peers.liblinear(peers.folded(sparse, y, folds), f"-s {KINDS[loss]} -c {C:.9g} -B 1 -e 0.001 -q")
    padded = scipy.sparse.hstack([sparse, np.ones((len(y), 1))]).tocsr()
    w, wrong = peers.weights(models), 0
    for t, train in enumerate(splits(folds)):
        held_out = np.setdiff1d(np.arange(len(y)), train)
        wrong += int(np.sum(y[held_out] * (padded[held_out] @ w[t]) <= 0))
    return 100.0 * wrong / len(y)


def search(options: Options, name: str, loss: str, sparse: bool) -> Iterator[dict[str, Any]]:
    """One row; `sparse` rows are handed over as CSR."""
    X, y = rows(name, options.small)
    A, signs, folds = permuted(X, y, WARM)
    compiling, _ = clock(lambda: ours(loss, *low(A, signs), folds))
    facts: dict[str, Any] = {"first": compiling, "memory": peak(), "C": [], "peer_C": []}
    facts |= {"score": [], "peer_score": [], "margin": MARGIN, "evaluations": []}

    def calls(A: Any, signs: Any, folds: Any) -> dict[str, Any]:
        data, prepared = (*low(A, signs), folds), peers.folded(scipy.sparse.csr_matrix(A), signs)
        return {"ours": lambda: ours(loss, *data), "LIBLINEAR -C": lambda: theirs(loss, prepared)}

    race, others = Race(options), calls(A, signs, folds)
    for repeat in range(options.repeats):
        A, signs, folds = permuted(X, y, SEED + repeat)
        found = race.round(repeat, calls(A, signs, folds), others)
        facts["C"].append(float(found["ours"].hp["loss"]["C"]))
        facts["evaluations"].append(found["ours"].n_evaluations)
        if "LIBLINEAR -C" in found:
            facts["peer_C"].append(found["LIBLINEAR -C"])
            if repeat < JUDGED:
                facts["score"].append(cv_error(loss, facts["C"][-1], A, signs, folds))
                facts["peer_score"].append(cv_error(loss, facts["peer_C"][-1], A, signs, folds))
        yield {"search": race.row("LIBLINEAR -C", **facts)}
