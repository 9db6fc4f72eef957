"""Second derivatives where a weight is exactly 0: the sample has no curvature there, but is about to get some."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.gradients.probe import QUICK, one_sided

N, ABSENT = 14, 3
_draw = np.random.default_rng(0)
X = _draw.normal(size=(N, 2))
TARGET = X[:, 0] + 0.3 * _draw.normal(size=N)


@pytest.mark.parametrize(
    ("loss", "kernel", "bias"),
    [
        (hj.losses.Squared(), hj.kernels.RBF(gamma=0.5), True),
        (hj.losses.Logistic(), hj.kernels.Linear(), "regularised"),
    ],
)
def test_hessian_at_a_weight_of_zero(loss, kernel, bias):
    problem = hj.Problem(loss, kernel, bias)
    y = np.sign(TARGET) if loss.labels else TARGET
    own = problem.init(X, y)

    def value(at):
        weights = jnp.ones(N).at[ABSENT].set(at[0])
        hp = {"loss": {"C": at[1]}, "kernel": own["kernel"]}
        return jnp.sum(jnp.sin(hj.solve(problem, hp, X, y, weights=weights, tol=1e-13).outputs[:6]))

    at = jnp.asarray([0.0, 1.3])
    gradient = jax.jit(jax.grad(value), compiler_options=QUICK)
    forward, reverse = jax.jit(
        lambda at: (jax.jacfwd(jax.grad(value))(at), jax.jacrev(jax.grad(value))(at)), compiler_options=QUICK
    )(at)
    expected = np.stack([one_sided(gradient, np.asarray(at), along, 1e-4) for along in np.eye(2)], axis=1)
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(reverse, forward, rtol=1e-10, atol=1e-12)
