"""float32 on real rows: rare columns, whose standardised entries lie hundreds of deviations out."""

import jax
import numpy as np
import pytest

import hyperjax as hj
from tests.data import load, standardised


@pytest.mark.parametrize("seed", [0, 1])
def test_all_rows_of_a9a_in_float32(seed):
    """Five folds of a squared hinge, in the order of rows the seed gives: no fold fails, and the gaps say so."""
    found = load("a9a")
    order = np.random.default_rng(seed).permutation(len(found["y"]))
    X, y = standardised(found["X"])[order], np.asarray(found["y"], float)[order]
    folds = hj.folds.stratified(y, 5, seed=seed)
    problem = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.Linear(), bias="regularised")
    hp, rows, signs = jax.tree.map(np.float32, ({"loss": {"C": 1.0}, "kernel": {}}, X, y))
    solution = hj.cross_solve(problem, hp, rows, signs, folds).raise_if_failed()
    A = np.c_[X, np.ones(len(y))]
    for s, z in zip(np.asarray(folds.train), np.asarray(solution.z, float), strict=True):
        w = A.T @ z
        primal = 0.5 * w @ w + np.sum(s * np.maximum(1.0 - y * (A @ w), 0.0) ** 2)
        dual = np.sum(y * z) - 0.25 * z @ z - 0.5 * w @ w
        assert np.all(y * z >= 0.0) and primal - dual < 1e-4 * primal
