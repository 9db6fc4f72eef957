"""The annotations of the inner rooms are no decoration: a call that breaks one fails in the tests (conftest.py)."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import hyperjax as hj
from hyperjax.operators import bordered_solve
from hyperjax.solvers.loop import violation


def test_swapped_axes_do_not_get_through():
    X, y = np.eye(6), np.where(np.arange(6) % 2, 1.0, -1.0)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    inner = problem.inner(problem.init(X, y), jnp.asarray(X), jnp.asarray(y), jnp.ones((2, 6)))
    ones = jnp.ones((2, 6))
    assert inner.op.matmul(ones).shape == (2, 6)
    with pytest.raises(TypeCheckError):
        inner.op.matmul(jnp.ones(6))
    with pytest.raises(TypeCheckError):
        violation(inner, ones, ones, ones.T)
    with pytest.raises(TypeCheckError):
        bordered_solve(inner.op, ones, ones.T, ones, jnp.zeros(2), True, False)
