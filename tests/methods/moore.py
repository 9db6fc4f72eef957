"""R30 for the two methods of Moore, Bergeron & Bennett, and the paper's formulas once more in plain NumPy."""

import numpy as np

import hyperjax as hj
from tests.gradients.r30 import R30, TARGETS, I

SINGLE = (I <= 20).astype(float)[None, :]
"""One split: rows 1..20 train, 21..30 validate."""
THREE = np.stack([I % 3 != t for t in range(3)]).astype(float)
HALVES = (I > 15).astype(int)
TUBE = hj.losses.SquaredEpsilonInsensitive()
LINEAR = hj.kernels.Linear()
ONE = hj.Problem(TUBE, LINEAR, False)
TWO = hj.Problem(hj.losses.Grouped(TUBE, HALVES), LINEAR, False)


def tube(r, eps):
    return np.sign(r) * np.maximum(np.abs(r) - eps, 0.0)


def fold(w, C, eps, groups, rows, y=TARGETS):
    """G of the rows one fold trains on, "sum" normalisation, C as the paper counts it."""
    return w + R30[rows].T @ (C[groups[rows]] * tube(R30[rows] @ w - y[rows], eps[groups[rows]]))


def penalised(W, C, eps, groups, folds, nu, y=TARGETS):
    """V + nu sum |G|^2, and V."""
    V, penalty = 0.0, 0.0
    tested = sum(int((train == 0).sum()) for train in folds)
    for w, train in zip(W, folds, strict=True):
        rows = np.flatnonzero(train == 0)
        V += ((R30[rows] @ w - y[rows]) ** 2).sum() / tested
        penalty += (fold(w, C, eps, groups, np.flatnonzero(train), y) ** 2).sum()
    return V + nu * penalty, V


def solved(C, eps, groups, train, y=TARGETS):
    """The weights of one fold by plain Newton steps on the active rows, from scratch."""
    rows, w = np.flatnonzero(train), np.zeros(2)
    X, c = R30[rows], C[groups[rows]]
    for _ in range(100):
        active = np.abs(X @ w - y[rows]) > eps[groups[rows]]
        A = np.eye(2) + (X * (c * active)[:, None]).T @ X
        move = -np.linalg.solve(A, fold(w, C, eps, groups, rows, y))
        w, last = w + (move if np.linalg.norm(move) < 1.0 else 0.5 * move), move
        if np.linalg.norm(last) < 1e-14:
            break
    return w
