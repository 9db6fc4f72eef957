"""What the two halves of the speed table share: data, the clock, alternating order."""

import time

import numpy as np

import hyperjax as hj


def load(folder, name):
    """X in float64, y in {-1, +1}: label 2 of connect4 against the rest, class labels as they are elsewhere."""
    with np.load(folder / f"{name}.npz") as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    return X, np.where(y == 2, 1.0, -1.0) if name == "connect4" else y.astype(np.float64)


def standardised(X):
    """Columns of mean 0 and variance 1; constant columns become 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def draw(X, y, rows, seed):
    """A stratified sample of `rows` rows, the same for every repeat; a repeat permutes it afresh."""
    generator = np.random.default_rng(seed)
    positive = round(rows * np.mean(y > 0))
    chosen = [
        generator.permutation(np.flatnonzero(keep))[:count]
        for keep, count in ((y > 0, positive), (y < 0, rows - positive))
    ]
    chosen = np.concatenate(chosen)
    return X[chosen], y[chosen]


def permuted(X, y, seed):
    """The rows in another order, in float32 as hyperjax gets them, with five stratified folds."""
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    return X, y, hj.folds.stratified(y, 5, seed=seed)


def splits(folds):
    """The training rows of every fold."""
    return [np.flatnonzero(weights > 0) for weights in np.asarray(folds.train)]


def clock(work):
    """(seconds, result) of a call that returns only when all is computed."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def alternate(repeat, ours, peer):
    """Both, in an order that changes with the repeat; two (seconds, result)."""
    if repeat % 2:
        second, first = clock(peer), clock(ours)
        return first, second
    return clock(ours), clock(peer)
