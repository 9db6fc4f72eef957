"""float32 on real rows: rare columns, whose standardised entries lie hundreds of deviations out."""

import jax
import jax.numpy as jnp
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


@pytest.mark.parametrize("bias", [True, "regularised"])
def test_gradients_through_sparse_rows_in_float32(bias):
    """Against float64, solved tightly, at a C whose system has a condition that eats half of float32's digits."""
    found = load("pcmac")
    X, y = found["X"].tocsr().astype(float), np.where(np.asarray(found["y"]) == found["y"][0], 1.0, -1.0)
    X = X.multiply(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)) + 1e-30)).tocsr()
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.Linear(), bias=bias)
    folds = hj.folds.stratified(y, 3, seed=0)

    def slope(dtype, tol):
        rows, signs = hj.sparse.matrix(X.astype(dtype)), jnp.asarray(y, dtype)

        def value(C):
            hp = {"loss": {"C": C}, "kernel": {}}
            return jnp.mean(jax.nn.softplus(-signs * hj.cross_decision(problem, hp, rows, signs, folds, tol=tol)))

        return float(jax.grad(value)(jnp.asarray(100.0, dtype)))

    assert slope(np.float32, None) == pytest.approx(slope(np.float64, 1e-10), rel=1e-2)


def test_a_grid_in_float32_loses_no_point_to_rounding():
    """At C = 1,000 outputs are rounded by more than 1e-3, LIBSVM's tolerance."""
    found = load("pima")
    X, y = np.asarray(found["X"], float), np.where(np.asarray(found["y"]) > 0, 1.0, -1.0)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    table = [
        hj.methods.grid(
            hj.Problem(), X, y.astype(np.float32), 5, progress=False, compilation="quick",
            values={"loss.C": [1.0, 1e3], "kernel.gamma": [1e-2]}, **more,
        )
        for more in ({}, {"inner_tol": 1e-3})
    ]  # fmt: skip
    ours, kept = (result.history.to_dict()["value"] for result in table)
    assert np.all(np.isfinite(ours))
    assert np.isfinite(kept[0]) and not np.isfinite(kept[1])


def test_a_kernel_on_more_rows_than_sixteen_thousand():
    """More support vectors than any small working set holds: the search went through all of them, 1,024 at a time."""
    from sklearn.svm import SVC

    found = load("ijcnn1")
    order = np.random.default_rng(0).permutation(len(found["y"]))[:17_000]
    X, y = standardised(found["X"])[order].astype(np.float32), np.asarray(found["y"], np.float32)[order]
    hp = {"loss": {"C": np.float32(1.0)}, "kernel": {"gamma": np.float32(1.0 / X.shape[1])}}
    solution = hj.solve(hj.Problem(), hp, X, y).raise_if_failed()
    assert int(solution.iterations) <= 10
    peer = SVC(C=1.0, gamma=1.0 / X.shape[1], cache_size=2000).fit(X, y)
    z, rows = np.zeros(len(y)), peer.support_
    z[rows] = peer.dual_coef_[0]

    def dual(z):
        from sklearn.metrics.pairwise import rbf_kernel

        on = np.flatnonzero(z)
        return y[on] @ z[on] - 0.5 * z[on] @ rbf_kernel(X[on].astype(float), gamma=1.0 / X.shape[1]) @ z[on]

    assert dual(np.asarray(solution.z, float)) >= dual(z) * (1.0 - 1e-6)
