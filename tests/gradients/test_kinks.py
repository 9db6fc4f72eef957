"""Derivatives at kinks: rows planted exactly on them, slopes against one-sided differences of the objective."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

N, TESTED = 6, 4
CRITERION = hj.criteria.LogLoss()
PROBLEM = hj.Problem(hj.losses.PerSample(hj.losses.Hinge()), hj.kernels.Precomputed(), bias=False)


def planted(seed=3):
    """K, y, hp and folds: six rows with margin 1, the first three with their coefficient at its bound C_i as well."""
    rng = np.random.default_rng(seed)
    K = 0.15 * rng.normal(size=(N + TESTED, N + TESTED))
    K = 0.5 * (K + K.T)
    y = np.where(np.arange(N + TESTED) % 2 == 0, 1.0, -1.0)
    alpha = rng.uniform(0.4, 1.0, N)
    z = alpha * y[:N]
    inner = K[:N, :N] - np.diag(np.diag(K)[:N])
    K[np.arange(N), np.arange(N)] = (y[:N] - inner @ z) / z
    K[np.arange(N, N + TESTED), np.arange(N, N + TESTED)] = 2.0
    C = np.append(np.where(np.arange(N) < 3, alpha, 2.0 * alpha), np.ones(TESTED))
    train = np.append(np.ones(N), np.zeros(TESTED))[None]
    return K, y, {"loss": {"C": jnp.asarray(C)}, "kernel": {}}, hj.Folds(jnp.asarray(train), jnp.asarray(1.0 - train))


K, Y, HP, FOLDS = planted()
C = np.asarray(HP["loss"]["C"])


@jax.jit
def objective(C):
    return CRITERION(hj.cross_decision(PROBLEM, {"loss": {"C": C}, "kernel": {}}, K, Y, FOLDS, tol=1e-12), Y, FOLDS)


def one_sided(direction, h=1e-5):
    coarse, fine = ((float(objective(jnp.asarray(C + t * direction))) - float(objective(C))) / t for t in (h, h / 2))
    return 2.0 * fine - coarse


@pytest.fixture(scope="module")
def found():
    return hj.subdifferential(PROBLEM, HP, K, Y, FOLDS, CRITERION, tol=1e-12)


def random_directions(count, seed=0):
    directions = np.random.default_rng(seed).normal(size=(count, N + TESTED))
    directions[:, N:] = 0.0
    return directions


def test_slopes_to_every_side_are_those_of_differences():
    """Six directions and their opposites: the rows at their kinks choose their sides anew for each."""
    gradient = np.asarray(jax.grad(objective)(jnp.asarray(C)))
    missed = 0
    for direction in np.concatenate([random_directions(6), -random_directions(6)]):
        moved = {"loss": {"C": direction}, "kernel": {}}
        slope = hj.directional_derivative(PROBLEM, HP, moved, K, Y, FOLDS, CRITERION, tol=1e-12)
        assert slope == pytest.approx(one_sided(direction), abs=1e-7)
        missed += abs(slope - gradient @ direction) > 1e-3
    assert missed >= 6  # one gradient could not have told


def test_every_side_has_its_gradient(found):
    """Eight assignments of three rows, each the gradient of the objective a little away, where it is smooth."""
    assert found.rows and {row for _, row in found.rows} == {0, 1, 2} and found.beyond == 0
    assert found.gradients.shape == (8, N + TESTED) and np.max(found.distances) < 1e-10
    nearby = jax.jit(jax.grad(objective))
    seen = set()
    for direction in random_directions(40, seed=1):
        there = np.asarray(nearby(jnp.asarray(C + 1e-7 * direction)))
        gap = np.max(np.abs(found.gradients - there), axis=1)
        assert np.min(gap) < 1e-5
        seen.add(int(np.argmin(gap)))
    assert len(seen) >= 6


def test_the_least_element_is_the_nearest_point_of_the_hull(found):
    from scipy.optimize import minimize

    G = found.gradients
    fit = minimize(
        lambda p: float(np.sum((p @ G) ** 2)), np.full(8, 1 / 8), jac=lambda p: 2.0 * G @ (p @ G), method="SLSQP",
        bounds=[(0.0, 1.0)] * 8, constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0}, options={"ftol": 1e-15},
    )  # fmt: skip
    assert found.norm == pytest.approx(float(np.linalg.norm(fit.x @ G)), abs=1e-6)
    np.testing.assert_allclose(np.asarray(found.least["loss"]["C"]), fit.x @ G, atol=1e-5)
    np.testing.assert_allclose(found.gradient["loss"]["C"], jax.grad(objective)(jnp.asarray(C)), atol=1e-9)
    assert "3 samples on their kinks" in str(found)


def test_away_from_kinks_there_is_one_gradient():
    hp = {"loss": {"C": jnp.asarray(np.append(3.0 * C[:3], C[3:]) + 0.1)}, "kernel": {}}
    only = hj.subdifferential(PROBLEM, hp, K, Y, FOLDS, CRITERION, tol=1e-12)
    assert only.rows == () and only.gradients.shape == (1, N + TESTED)
    np.testing.assert_array_equal(only.least["loss"]["C"], only.gradient["loss"]["C"])
    wide = hj.subdifferential(PROBLEM, HP, K, Y, FOLDS, CRITERION, tol=1e-12, width=1e3)
    assert wide.beyond == N - 5 and len(wide.gradients) == 32  # the nearest five


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="width="):
        hj.subdifferential(PROBLEM, HP, K, Y, FOLDS, CRITERION, width=-1.0)
    with pytest.raises(ValueError, match="direction must be a tree like hp"):
        hj.directional_derivative(PROBLEM, HP, C, K, Y, FOLDS, CRITERION)
