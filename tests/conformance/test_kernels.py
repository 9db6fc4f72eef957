"""What every kernel in `hyperjax.kernels.EXAMPLES` promises; the walk needs no list."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import hyperjax as hj

KERNELS = {type(kernel).__name__ + str(i): kernel for i, kernel in enumerate(hj.kernels.EXAMPLES)}
X = jnp.asarray(np.random.default_rng(1).uniform(0.1, 2.0, size=(9, 3)))
Z = jnp.asarray(np.random.default_rng(2).uniform(0.1, 2.0, size=(4, 3)))


def start(kernel):
    y = jnp.asarray(np.where(np.arange(9) % 2, 1.0, -1.0))
    return jax.tree.map(lambda v: jnp.asarray(v, float), kernel.init(X, y))


@pytest.mark.parametrize("name", KERNELS)
def test_matrix(name):
    """Symmetric, positive semidefinite to rounding, its diagonal and features those the kernel claims, and k(x, z)."""
    kernel = KERNELS[name]
    hp = start(kernel)
    K, cross = np.asarray(kernel.cross(hp, X, X)), np.asarray(kernel.cross(hp, X, Z))
    size = np.abs(K).max()
    np.testing.assert_allclose(K, K.T, atol=1e-13 * size)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * len(K) * size
    np.testing.assert_allclose(kernel.diagonal(hp, X), np.diag(K), rtol=1e-12)
    assert cross.shape == (9, 4)
    x, z = kernel.select(X)[2], kernel.select(Z)[3]
    np.testing.assert_allclose(kernel.k(x, z, hp), cross[2, 3], rtol=1e-12)
    features = kernel.features(hp, X)
    if features is not None:
        np.testing.assert_allclose(features @ features.T, K, rtol=1e-12, atol=1e-13 * size)


@pytest.mark.parametrize("name", KERNELS)
def test_gradient_in_hyperparameters_and_rows(name):
    """u'Kv along random directions = central differences."""
    kernel = KERNELS[name]
    theta, unravel = ravel_pytree({"hp": start(kernel), "X": X})
    rng = np.random.default_rng(3)
    u, v = jnp.asarray(rng.normal(size=9)), jnp.asarray(rng.normal(size=4))

    @jax.jit
    def form(theta):
        t = unravel(theta)
        return u @ kernel.cross(t["hp"], t["X"], Z) @ v

    gradient = np.asarray(jax.grad(form)(theta))
    along = jnp.asarray(rng.normal(size=theta.size))
    expected = (form(theta + 1e-5 * along) - form(theta - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(gradient @ along, expected, rtol=1e-6, atol=1e-8)
