"""The least-norm element of intervals, triangles, hulls and cones, against SciPy and its optimality conditions."""

import numpy as np
import pytest
import scipy.optimize

from hyperjax.minimum_norm import minimum_norm

pytestmark = pytest.mark.no_extras


def test_one_interval():
    p, vector = minimum_norm(np.array([1.0, 0.0]), np.array([[-2.0], [0.0]]), np.array([0]))
    np.testing.assert_allclose(p, [0.5], atol=1e-14)
    np.testing.assert_allclose(vector, 0.0, atol=1e-14)


def test_nothing_to_choose():
    p, vector = minimum_norm(np.array([1.0, 2.0]), np.zeros((2, 0)), np.zeros(0, int))
    assert p.shape == (0,)
    np.testing.assert_array_equal(vector, [1.0, 2.0])


def test_intervals_and_cone_against_bounded_least_squares(rng):
    for _ in range(30):
        m, k = rng.integers(1, 7, 2)
        base, columns = rng.normal(size=m), rng.normal(size=(m, k))
        open_ = rng.random(k) < 0.3
        blocks = np.where(open_, -1, np.arange(k))
        high = np.where(open_, np.inf, 1.0)
        wanted = scipy.optimize.lsq_linear(columns, -base, (np.zeros(k), high), method="bvls", tol=1e-14)
        _, vector = minimum_norm(base, columns, blocks)
        np.testing.assert_allclose(vector, base + columns @ wanted.x, atol=1e-9)


def test_hull_and_triangles_meet_the_conditions_of_the_optimum(rng):
    """v is the least element of a convex set exactly if no element has a smaller product with v."""
    for trial in range(60):
        m, k = rng.integers(1, 7, 2)
        base, columns = rng.normal(size=m), rng.normal(size=(m, k))
        blocks = rng.integers(-1, 2, k)
        if trial % 3 == 0 and k > 1:
            columns[:, 1] = columns[:, 0]
        p, vector = minimum_norm(base, columns, blocks)
        slope = columns.T @ vector
        assert np.all(p >= 0) and np.allclose(base + columns @ p, vector)
        for block in (0, 1):
            own = blocks == block
            assert p[own].sum() <= 1.0 + 1e-12
            assert slope[own] @ p[own] <= min(0.0, slope[own].min(initial=0.0)) + 1e-12
        cone = blocks == -1
        assert np.all(slope[cone] >= -1e-11) and abs(slope[cone] @ p[cone]) < 1e-11


def test_hull_against_slsqp(rng):
    for _ in range(5):
        points = rng.normal(size=(3, 5)) + 1.0
        _, vector = minimum_norm(points[:, 0], points[:, 1:] - points[:, :1], np.zeros(4, int))
        wanted = scipy.optimize.minimize(
            lambda q, points=points: np.sum((points @ q) ** 2), np.full(5, 0.2), bounds=[(0.0, 1.0)] * 5,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0}, tol=1e-14,
        )  # fmt: skip
        assert vector @ vector <= wanted.fun + 1e-10
