"""Prediction: in blocks, over support vectors only where that pays, the same numbers either way."""

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj


def test_rows_without_a_coefficient_change_nothing():
    rng = np.random.default_rng(0)
    n, m = 2500, 7000
    X, new = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    z = np.where(rng.random((2, n)) < 0.1, rng.normal(size=(2, n)), 0.0)
    problem = hj.Problem()
    hp = {"loss": {"C": jnp.asarray(1.0)}, "kernel": {"gamma": jnp.asarray(0.7)}}
    facts = {name: jnp.zeros(2) for name in ("kkt", "gap", "distance")}
    counts = {name: jnp.zeros(2, int) for name in ("code", "iterations", "n_free", "degenerate")}
    b = jnp.asarray([0.3, -0.2])
    solution = hj.Solution(problem, hp, jnp.asarray(X), jnp.asarray(z), b, jnp.asarray(z), **facts, **counts)
    found = np.asarray(solution.decision(new))
    some = rng.permutation(m)[:50]
    distance = ((new[some, None, :] - X[None]) ** 2).sum(-1)
    np.testing.assert_allclose(found[:, some], z @ np.exp(-0.7 * distance).T + np.asarray(b)[:, None], atol=1e-10)
    traced = jax.jit(lambda rows: solution.decision(rows))(jnp.asarray(new))
    np.testing.assert_allclose(found, traced, atol=1e-10)
