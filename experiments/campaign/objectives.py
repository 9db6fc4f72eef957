"""Objective values against LIBSVM and LIBLINEAR (as scikit-learn ships them) on real data, in float64.

Classification: dual objective of the hinge with RBF kernel (gamma = 1/d) and bias, no lower than LIBSVM's (tol 1e-6)
by more than 1e-8 relative; primal objective of the squared hinge, linear with a regularised bias, no higher than
LIBLINEAR's (-e 1e-6 -B 1).  Regression: the same against SVR and LinearSVR.  Objectives are computed here, by numpy.
"""

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hyperjax as hj

CLASSIFICATION = {"pima": None, "heart": None, "ionosphere": None, "splice": None, "a9a": 2000, "ijcnn1": 2000}
REGRESSION = {"abalone": 2000, "housing": None, "esol": None}
COSTS = (1e-3, 1.0, 1e3)
SLACK = 1e-8
EPS = 0.1


def suite(show: bool = True) -> list[dict[str, Any]]:
    """One row a data set, cost and peer."""
    rows = []
    for names, peers in ((CLASSIFICATION, (_svc, _linear_svc)), (REGRESSION, (_svr, _linear_svr))):
        for name, limit in names.items():
            X, y = _read(name, limit, names is CLASSIFICATION)
            for C in COSTS:
                for peer in peers:
                    begin = time.perf_counter()
                    row = {"data": name, "rows": len(y), "columns": X.shape[1], "C": C, "peer": peer.__name__[1:]}
                    row.update(peer(X, y, C))
                    row["verdict"] = "good" if row["excess"] <= SLACK and row["code"] in GOOD else "failed"
                    row["reason"] = "" if row["verdict"] == "good" else f"{row['code']}, excess {row['excess']:.1e}"
                    rows.append({**row, "seconds": time.perf_counter() - begin})
                    if show:
                        print(rows[-1], flush=True)
    return rows


GOOD = ("OK", "BIAS_INTERVAL", "DEGENERATE")


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many comparisons hold, and the largest relative excess over the peer's objective."""
    good = sum(row["verdict"] == "good" for row in rows)
    return {"comparisons": len(rows), "good": good, "worst_excess": max((row["excess"] for row in rows), default=0.0)}


def _read(name: str, limit: int | None, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    folder = os.environ.get("HYPERJAX_DATA")
    if not folder:
        raise SystemExit("set HYPERJAX_DATA to the folder that holds the data sets")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    if "X" not in arrays:
        import scipy.sparse

        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        arrays["X"] = scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"])).toarray()
    X, y = arrays["X"][:limit].astype(np.float64), arrays["y"][:limit].astype(np.float64)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if classes:
        return X, np.where(y == y.max(), 1.0, -1.0)
    return X, (y - y.mean()) / y.std()


def _ours(problem: hj.Problem, hp: dict[str, Any], X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, str]:
    solution = hj.solve(problem, hp, X, y)
    return np.asarray(solution.z), float(solution.b), hj.Code(int(solution.code)).name


def _quiet(estimator: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer's own step limit; its objective is compared as it is
        return estimator.fit(X, y)


def _rbf(X: np.ndarray) -> np.ndarray:
    squares = np.sum(X * X, axis=1)
    return np.exp(-np.maximum(squares[:, None] + squares[None, :] - 2.0 * X @ X.T, 0.0) / X.shape[1])


def _svc(X: np.ndarray, y: np.ndarray, C: float) -> dict[str, Any]:
    """Dual of the hinge: sum y z - z'Kz / 2, to be maximised."""
    from sklearn.svm import SVC

    problem = hj.Problem(loss=hj.losses.Hinge(), kernel=hj.kernels.RBF(), bias=True)
    z, _, code = _ours(problem, {"loss": {"C": C}, "kernel": {"gamma": 1.0 / X.shape[1]}}, X, y)
    peer = _quiet(SVC(C=C, kernel="rbf", gamma=1.0 / X.shape[1], tol=1e-6, cache_size=1000), X, y)
    K = _rbf(X)
    theirs = _spread(peer, len(y))
    return _compare(-(y @ z - 0.5 * z @ K @ z), -(y @ theirs - 0.5 * theirs @ K @ theirs), code)


def _svr(X: np.ndarray, y: np.ndarray, C: float) -> dict[str, Any]:
    """Dual of the tube: y'z - eps |z|_1 - z'Kz / 2, to be maximised."""
    from sklearn.svm import SVR

    problem = hj.Problem(loss=hj.losses.EpsilonInsensitive(), kernel=hj.kernels.RBF(), bias=True)
    z, _, code = _ours(problem, {"loss": {"C": C, "eps": EPS}, "kernel": {"gamma": 1.0 / X.shape[1]}}, X, y)
    peer = _quiet(SVR(C=C, epsilon=EPS, gamma=1.0 / X.shape[1], tol=1e-6, cache_size=1000), X, y)
    K = _rbf(X)
    theirs = _spread(peer, len(y))
    duals = [0.5 * a @ K @ a + EPS * np.abs(a).sum() - y @ a for a in (z, theirs)]
    return _compare(*duals, code)


def _spread(peer: Any, n: int) -> np.ndarray:
    z = np.zeros(n)
    z[peer.support_] = peer.dual_coef_[0]
    return z


def _linear_svc(X: np.ndarray, y: np.ndarray, C: float) -> dict[str, Any]:
    """Primal of the squared hinge: (|w|^2 + b^2) / 2 + C sum (1 - m)_+^2, to be minimised."""
    from sklearn.svm import LinearSVC

    problem = hj.Problem(loss=hj.losses.SquaredHinge(), kernel=hj.kernels.Linear(), bias="regularised")
    z, b, code = _ours(problem, {"loss": {"C": C}, "kernel": {}}, X, y)
    peer = _quiet(LinearSVC(C=C, dual=False, tol=1e-6, intercept_scaling=1.0, max_iter=10000), X, y)

    def primal(w: np.ndarray, b: float) -> float:
        return 0.5 * (w @ w + b * b) + C * float(np.sum(np.maximum(1.0 - y * (X @ w + b), 0.0) ** 2))

    return _compare(primal(X.T @ z, b), primal(peer.coef_[0], float(peer.intercept_[0])), code)


def _linear_svr(X: np.ndarray, y: np.ndarray, C: float) -> dict[str, Any]:
    """Primal of the squared tube: (|w|^2 + b^2) / 2 + C sum (|r| - eps)_+^2, to be minimised."""
    from sklearn.svm import LinearSVR

    problem = hj.Problem(loss=hj.losses.SquaredEpsilonInsensitive(), kernel=hj.kernels.Linear(), bias="regularised")
    z, b, code = _ours(problem, {"loss": {"C": C, "eps": EPS}, "kernel": {}}, X, y)
    loss = {"loss": "squared_epsilon_insensitive", "dual": False, "epsilon": EPS}
    peer = _quiet(LinearSVR(C=C, tol=1e-6, intercept_scaling=1.0, max_iter=10000, **loss), X, y)

    def primal(w: np.ndarray, b: float) -> float:
        return 0.5 * (w @ w + b * b) + C * float(np.sum(np.maximum(np.abs(X @ w + b - y) - EPS, 0.0) ** 2))

    return _compare(primal(X.T @ z, b), primal(peer.coef_, float(peer.intercept_[0])), code)


def _compare(ours: float, theirs: float, code: str) -> dict[str, Any]:
    """Values to be minimised; `excess` is how much larger ours is, relative to the peer's."""
    return {"ours": ours, "theirs": theirs, "excess": (ours - theirs) / abs(theirs), "code": code}
