"""Losses that hardly bend at any sample leave the bias all but free: it is found, or the code says that it is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

import hyperjax as hj
from tests.gradients.r30 import LABELS, R30

pytestmark = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances")

ROWS = np.concatenate([np.flatnonzero(LABELS == label)[:8] for label in (1.0, -1.0)])
X, Y = R30[ROWS], LABELS[ROWS]
PROBLEM = hj.Problem(hj.losses.SmoothHinge(), hj.kernels.RBF(), bias=True)


@jax.jit
def fit(mu, C, b):
    hp = {"loss": {"C": C, "mu": mu}, "kernel": {"gamma": jnp.asarray(1.0)}}
    return hj.solve(PROBLEM, hp, jnp.asarray(X), jnp.asarray(Y), init=(jnp.zeros(len(Y)), b))


def bias_of(mu, z):
    """The b at which the slopes balance, given f = K z: of two balanced classes only the distances from 1 count."""
    f = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2)) @ z
    return brentq(lambda b: np.sum(Y * expit(-mu * (1 - Y * (f + b)))), -1.0, 1.0, xtol=1e-15)


@pytest.mark.parametrize("start", [0.0, 0.4, -3.0])
def test_the_bias_of_balanced_saturated_classes_does_not_depend_on_the_start(start):
    """h is about 1e-8 C at every sample: |sum z| <= 1e-8 sum C would hold for every b between -0.05 and 0.05."""
    solution = fit(20.0, 0.0128, start)
    assert hj.Code(int(solution.code)) is hj.Code.OK
    np.testing.assert_allclose(solution.b, bias_of(20.0, np.asarray(solution.z)), atol=1e-8)


def test_what_rounding_hides_is_not_called_solved():
    """At mu = 30 the curvatures are 1e-12 C: kkt is of the size of the error that is left in b."""
    for start in (0.0, 0.4, -3.0):
        solution = fit(30.0, 0.0128, start)
        error = abs(float(solution.b) - bias_of(30.0, np.asarray(solution.z)))
        assert hj.Code(int(solution.code)) is hj.Code.MAX_STEPS
        assert error <= 5.0 * float(solution.kkt) < 1e-3


def test_without_any_curvature_the_bias_is_the_midpoint_of_its_interval():
    assert [hj.Code(int(fit(100.0, 0.0128, b).code)) for b in (0.0, 0.4)] == [hj.Code.BIAS_INTERVAL] * 2
    np.testing.assert_allclose(fit(100.0, 0.0128, 0.4).b, fit(100.0, 0.0128, 0.0).b, atol=1e-12)
