"""What rounding a solve is granted, against random signs drawn in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.solvers.loop import granted

N = 60


@pytest.fixture
def sample():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(N, 3)), np.where(rng.random(N) < 0.5, 1.0, -1.0)
    z = 1e9 * y * rng.random(N)
    return X, y, z, rng


def grant(X, y, z, limit, worst):
    hp = {"loss": {"C": jnp.asarray(1e9)}, "kernel": {"gamma": jnp.asarray(0.4)}}
    inner = hj.Problem().inner(hp, jnp.asarray(X), jnp.asarray(y), jnp.ones((1, N)))
    inner = inner.replace(limit=jnp.asarray(limit))
    return float(granted(inner, jnp.asarray(z[None]), jnp.zeros(1), jnp.asarray(1e-12), jnp.asarray([worst]))[0])


@pytest.mark.skipif(jnp.result_type(float) != jnp.float64, reason="sizes are those of float64")
def test_it_is_the_mean_over_signs_of_a_stored_product(sample):
    X, y, z, rng = sample
    K = np.exp(-0.4 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    sums = (rng.choice([-1.0, 1.0], size=(20000, N)) * z) @ K
    root = np.abs(z).sum() / np.sqrt(z @ z)
    expected = 0.5 * np.finfo(float).eps * root * np.sqrt(np.mean(sums**2))
    assert grant(X, y, z, 1.0, 1e-6) == pytest.approx(expected, rel=0.03)


def test_nothing_is_granted_without_a_limit_or_far_from_it(sample):
    X, y, z, _ = sample
    assert grant(X, y, z, 0.0, 1e-6) == pytest.approx(1e-12)
    assert grant(X, y, z, 1e-3, 1e-2) == pytest.approx(1e-12)


@pytest.mark.parametrize(("loss", "grows"), [(hj.losses.Hinge(), True), (hj.losses.Logistic(), False)])
def test_coefficients_grow_with_C_where_they_sit_at_bounds(loss, grows):
    growth = [hj.Problem(loss).growth({"C": jnp.asarray(C)}, jnp.asarray([1.0, -1.0])) for C in (1.0, 3.0)]
    np.testing.assert_allclose(growth[1] / growth[0], 3.0 if grows else 1.0, rtol=1e-6)
