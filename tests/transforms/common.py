"""One small task for the whole folder: shapes stay the same, so that one compilation serves many tests."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.layers.source import ROOT

N, D, T = 36, 3, 3
needs_x64 = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="differences need 64 bits")

_draw = np.random.default_rng(11)
X = _draw.normal(size=(N, D))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * _draw.normal(size=N) > 0.3, 1.0, -1.0)
FOLDS = hj.folds.stratified(Y, T, seed=0)
HINGE = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), bias=True)


def values(C=1.0, gamma=0.4):
    """Hyperparameters of HINGE."""
    return {"loss": {"C": jnp.asarray(C, float)}, "kernel": {"gamma": jnp.asarray(gamma, float)}}


def softplus(o, y):
    """The smooth validation loss."""
    return jnp.mean(jnp.logaddexp(0.0, -y * o))


def validation(hp, X=X, y=Y, folds=FOLDS, problem=HINGE):
    """The cross-validated loss at hp."""
    return softplus(hj.cross_decision(problem, hp, X, y, folds, tol=1e-10), y)


def of_logs(theta, X=X):
    """The same of (log C, log gamma)."""
    return validation(values(*jnp.exp(theta)), X)


def differences(f, x, step=1e-5):
    """Central differences of f, scalar or array, in every entry of x, along the last axis."""
    x = np.asarray(x)
    columns = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = step
        e = e.reshape(x.shape)
        columns.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step))
    return np.stack(columns, axis=-1)


def run(code, **environment):
    """A fresh interpreter; its standard output, or a failure that shows what it said."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
