"""The bordered system (B) against a dense solve by NumPy, and its transpose whatever part of it moves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperjax.operators import Features, bordered_solve

pytestmark = [
    pytest.mark.no_extras,
    pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances"),
]

T, N = 2, 12


@functools.cache
def system():
    """Two folds with kinks (P = 0), linear pieces (P = 1) and curved samples between them."""
    rng = np.random.default_rng(3)
    Phi = rng.normal(size=(N, 20))
    P = rng.choice([0.0, 0.3, 0.999, 1.0], size=(T, N))
    P[:, 0], P[:, 1] = 0.0, 1.0
    return Phi, P, rng.uniform(0.5, 2.0, size=(T, N)), rng.normal(size=(T, N)), rng.normal(size=T)


def dense(fold, border):
    """dz and db by one (N + 1) x (N + 1) solve of the equations as they are stated."""
    Phi, P, t, g, total = system()
    gap = np.diag(1.0 - P[fold])
    A = np.zeros((N + 1, N + 1))
    A[:N, :N] = gap @ Phi @ Phi.T + np.diag(t[fold] * P[fold])
    A[N, N] = 1.0
    if border:
        A[:N, N], A[N, :N], A[N, N] = 1.0 - P[fold], 1.0, 0.0
    return np.linalg.solve(A, np.append(g[fold], total[fold] if border else 0.0))


def solve(g, total, border):
    Phi, P, t, *_ = system()
    return bordered_solve(Features(jnp.asarray(Phi)), jnp.asarray(P), jnp.asarray(t), g, total, border, False)


@pytest.mark.parametrize("border", [True, False])
def test_it_solves_the_equations_as_they_are_stated(border):
    *_, g, total = system()
    dz, db = solve(jnp.asarray(g), jnp.asarray(total), border)
    for fold in range(T):
        expected = dense(fold, border)
        np.testing.assert_allclose(dz[fold], expected[:N], atol=1e-10)
        np.testing.assert_allclose(db[fold], expected[N], atol=1e-10)


@pytest.mark.parametrize("moving", ["g", "total"])
def test_reverse_mode_where_one_right_hand_side_stands_still(moving):
    """<u, J v> = <J' u, v>: JAX hands the part that does not move to the rule as a symbolic zero."""
    *_, g, total = map(jnp.asarray, system())
    f = (lambda x: solve(x, total, True)) if moving == "g" else (lambda x: solve(g, x, True))
    x = g if moving == "g" else total
    rng = np.random.default_rng(4)
    v = jnp.asarray(rng.normal(size=x.shape))
    u = jnp.asarray(rng.normal(size=(T, N))), jnp.asarray(rng.normal(size=T))
    _, forward = jax.jvp(f, (x,), (v,))
    backward = jax.vjp(f, x)[1](u)[0]
    paired = jnp.vdot(u[0], forward[0]) + jnp.vdot(u[1], forward[1])
    np.testing.assert_allclose(jnp.vdot(backward, v), paired, rtol=1e-10)
