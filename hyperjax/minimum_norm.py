"""The element of least norm of a polytope: the steepest descent direction of a function with kinks.

Problem
    minimise |base + columns p|  over p >= 0, where the p of one block sum to no more than 1.  A block of one column is
    an interval [0, 1], a block of two a triangle; columns g_k - g_0 in one block span the convex hull of g_0, g_1, ..;
    columns in no block (number -1) span a cone.
Iteration
    Active set: the column that promises most joins, the least-squares problem on the columns that take part is solved
    with its sums kept, and columns that turn negative on the way leave.
Stops when
    no column promises a decrease beyond rounding.
Source
    Wolfe, Finding the nearest point in a polytope (1976); Lawson & Hanson, Solving least squares problems, chapter 23.
"""

import numpy as np

__all__ = ["minimum_norm"]

ROUNDING = 1e-13


def minimum_norm(base: np.ndarray, columns: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(p, base + columns p) of least norm; base (m,), columns (m, k), blocks (k,) with -1 for columns without a cap."""
    base, columns, blocks = np.asarray(base, float), np.asarray(columns, float), np.asarray(blocks, int)
    names, own = np.unique(blocks, return_inverse=True)
    # what a block does not use up is the weight of one more column of zeros: with it every block sums to 1
    slack = np.flatnonzero(names >= 0)
    G = np.hstack([columns, np.zeros((len(base), len(slack)))])
    block = np.where(np.append(blocks, names[slack]) >= 0, np.append(own, slack), -1)
    x = np.append(np.zeros(len(blocks)), np.ones(len(slack)))
    inside = x > 0
    scale = ROUNDING * (np.linalg.norm(base) + np.linalg.norm(G, axis=0).max(initial=0.0))
    goal = scale * np.linalg.norm(G, axis=0)
    refused: set[int] = set()
    for _ in range(20 * len(x) + 20):
        slope = G.T @ (base + G @ x)
        level = np.bincount(block[block >= 0], (x * slope)[block >= 0], minlength=len(names) + 1)
        promise = np.where(inside, 0.0, slope - np.where(block >= 0, level[block], 0.0))
        promise[list(refused)] = 0.0
        entering = int(np.argmin(promise)) if len(promise) else -1
        if entering < 0 or promise[entering] >= -goal[entering] - goal.max() * ROUNDING:
            break
        inside[entering] = True
        before = np.linalg.norm(base + G @ x)
        x, inside = _settle(base, G, block, x, inside)
        # a column that leaves again at once, or brings nothing, would come back for ever
        if np.linalg.norm(base + G @ x) >= before:
            refused.add(entering)
        else:
            refused.clear()
    p = x[: len(blocks)]
    return p, base + columns @ p


def _settle(
    base: np.ndarray, G: np.ndarray, block: np.ndarray, x: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares point of the columns inside, dropping those that turn negative on the way there."""
    inside = inside.copy()
    while True:
        target = _least_squares(base, G, block, np.flatnonzero(inside))
        falling = inside & (target <= 0.0)
        if not falling.any():
            return target, inside
        room = x[falling] / np.maximum(x[falling] - target[falling], np.finfo(float).tiny)
        share = min(1.0, float(room.min()))
        x = np.where(inside, np.maximum(x + share * (target - x), 0.0), 0.0)
        gone = np.flatnonzero(falling)[room <= share * (1.0 + 1e-12)]
        x[gone], inside[gone] = 0.0, False


def _least_squares(base: np.ndarray, G: np.ndarray, block: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The minimiser over the columns of `index` with every block's sum kept at 1; its sign is free."""
    pivots = {int(block[j]): int(j) for j in index[::-1] if block[j] >= 0}
    free = [int(j) for j in index if pivots.get(int(block[j])) != j]
    start = base + sum((G[:, j] for j in pivots.values()), np.zeros_like(base))
    out = np.zeros(G.shape[1])
    for j in pivots.values():
        out[j] = 1.0
    if not free:
        return out
    moves = np.stack([G[:, j] - (G[:, pivots[int(block[j])]] if block[j] >= 0 else 0.0) for j in free], axis=1)
    size = np.linalg.norm(moves, axis=0)
    size = np.where(size > 0, size, 1.0)
    y = np.linalg.lstsq(moves / size, -start, rcond=None)[0] / size
    for j, value in zip(free, y, strict=True):
        out[j] = value
        if block[j] >= 0:
            out[pivots[int(block[j])]] -= value
    return out
