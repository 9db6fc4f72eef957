"""C and gamma of SVC, and C, eps and gamma of SVR: tune against grid, random halving and TPE over LIBSVM."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import hyperjax as hj
from experiments import common
from experiments.speed import peers
from experiments.speed.task import SEED, WARM, Options, Race, clock, load, low, peak, permuted

NAMES = {"svc": {"C": ("loss", "C"), "gamma": ("kernel", "gamma")}}
NAMES["svr"] = NAMES["svc"] | {"epsilon": ("loss", "eps")}
MARGIN = 0.5
"""Points of CV score by which our answer may be worse than a peer's."""
JUDGED = 2
"""Repeats whose answers are scored."""
TEST = 5000
"""Test rows at most."""
LOSSES = {"svc": hj.losses.Hinge(), "svr": hj.losses.EpsilonInsensitive()}


def sample(kind: str, name: str, size: int) -> tuple[np.ndarray, ...]:
    """(X, y, X_test, y_test): columns standardised by the training rows, and for regression the target too."""
    found = common.arrays(name)
    if kind == "svc":
        X, y = load(name)
    else:
        X, y = np.asarray(found["X"], np.float64), np.asarray(found["y"], np.float64)
    order = np.random.default_rng(SEED).permutation(len(y))
    if name == "splice":  # its training rows are too few to divide
        test = np.asarray(found["X_test"], np.float64), np.asarray(found["y_test"], np.float64)
    else:
        test = X[order[size : size + TEST]], y[order[size : size + TEST]]
    X, y = X[order[:size]], y[order[:size]]
    if kind == "svr":
        y, test = (y - y.mean()) / y.std(), (test[0], (test[1] - y.mean()) / y.std())
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return (X - mean) / spread, y, (test[0] - mean) / spread, test[1]


def ours(kind: str, compilation: str, X: Any, y: Any, folds: Any) -> dict[str, float]:
    """What tune finds from its default start."""
    result = hj.tune(hj.Problem(LOSSES[kind], hj.kernels.RBF()), X, y, folds, progress=False, compilation=compilation)
    found = {name: float(result.hp[group][inside]) for name, (group, inside) in NAMES[kind].items()}
    return found | {"evaluations": result.n_evaluations}


def search(options: Options, kind: str, name: str, size: int) -> Iterator[dict[str, Any]]:
    """One row a peer; every answer is scored by LIBSVM on the same folds."""
    X, y, *test = sample(kind, name, 150 if options.small else size)
    A, labels, folds = permuted(X, y, WARM)
    first, _ = clock(lambda: ours(kind, "auto", *low(A, labels), folds))
    memory = peak()
    full, _ = clock(lambda: ours(kind, "full", *low(A, labels), folds))
    peers.tpe(kind, A, labels, folds, 1, SEED)  # the peers' two workers start
    every, trials = (7, 3) if options.small else (1, 50)

    def calls(seed: int, A: Any, labels: Any, folds: Any) -> dict[str, Any]:
        data, given = (*low(A, labels), folds), (kind, A, labels, folds)
        return {
            "ours": lambda: ours(kind, "full", *data),
            "grid": lambda: peers.grid(*given, every),
            "tpe": lambda: peers.tpe(*given, trials, seed),
            "halving": lambda: peers.halving(*given, seed),
        }

    race, answers, scores, tests = Race(options), {}, {}, {}
    others = calls(WARM, A, labels, folds)
    for repeat in range(options.repeats):
        A, labels, folds = permuted(X, y, SEED + repeat)
        given = (kind, A, labels, folds)
        for who, answer in race.round(repeat, calls(repeat, A, labels, folds), others).items():
            answers.setdefault(who, []).append(answer)
            if repeat >= JUDGED:
                continue
            values = {key: max(answer[key], 1e-12) for key in NAMES[kind]}
            scores.setdefault(who, []).append(peers.cv_score(*given, values))
            tests.setdefault(who, []).append(peers.score(kind, A, labels, *test, values))
        yield _rows(race, answers, scores, tests, full, first, memory)


def _rows(race: Race, answers: Any, scores: Any, tests: Any, full: float, first: float, memory: int) -> dict[str, Any]:
    """The rows of what has been measured so far."""
    common_facts = {
        "memory": memory,
        "answers": answers["ours"],
    }
    out = {}
    for peer in ("grid", "tpe", "halving"):
        if peer in scores:
            # a slow peer has not seen every order of the rows: only those that both have are compared
            both = {"score": scores["ours"][: len(scores[peer])], "test": tests["ours"][: len(scores[peer])]}
            theirs = {"peer_score": scores[peer], "peer_answers": answers[peer], "peer_test": tests[peer]}
            out[peer] = race.row(peer, **common_facts, **both, **theirs, margin=MARGIN, first=full)
    if "tpe" in scores:
        out["first"] = {"ours": [first], "theirs": race.seconds["tpe"], "memory": memory}
    return out
