"""A search over C as a process of its own: python -m experiments.speed.fresh {ours,peer} DATA LOSS SEED [--small]"""

import sys

import numpy as np


def main(who: str, name: str, loss: str, seed: str, *more: str) -> None:
    """Reads the set, scales and permutes it, searches, prints C; neither side imports what it does not need."""
    from experiments import common

    found = common.arrays(name)
    X, y = np.asarray(found["X"], np.float64), np.asarray(found["y"], np.float64)
    if more:
        X, y = X[:400], y[:400]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    order = np.random.default_rng(int(seed)).permutation(len(y))
    X, y = X[order], y[order]
    if who == "ours":
        import hyperjax as hj

        losses = {"squared hinge": hj.losses.SquaredHinge(), "logistic": hj.losses.Logistic()}
        problem = hj.Problem(losses[loss], hj.kernels.Linear(), bias="regularised")
        folds = hj.folds.stratified(y, 5, seed=int(seed))
        result = hj.tune(problem, X.astype(np.float32), y.astype(np.float32), folds, progress=False)
        print(float(result.hp["loss"]["C"]))
        return
    import contextlib
    import io

    import scipy.sparse
    from liblinear.liblinear import problem as structure
    from liblinear.liblinearutil import train

    with contextlib.redirect_stdout(io.StringIO()):
        kind = {"squared hinge": 2, "logistic": 0}[loss]
        best = train(structure(y, scipy.sparse.csr_matrix(X), bias=1), f"-C -s {kind} -v 5 -B 1 -q")[0]
    print(best)


if __name__ == "__main__":
    main(*sys.argv[1:])
