"""jit, vmap, scan and every kind of derivative of the core, alone and one inside the other."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import hyperjax as hj
from tests.transforms.common import FOLDS, HINGE, D, N, X, Y, differences, needs_x64, of_logs, softplus, values

pytestmark = needs_x64

AT = np.log([1.3, 0.35])
value_and_grad = jax.jit(jax.value_and_grad(of_logs))


def test_jit_changes_nothing():
    inside, grad = value_and_grad(AT)
    np.testing.assert_allclose(inside, of_logs(AT), rtol=1e-12)
    np.testing.assert_allclose(grad, differences(of_logs, AT), rtol=1e-6)


def test_forward_and_reverse_modes_and_both_hessians():
    np.testing.assert_allclose(jax.jit(jax.jacfwd(of_logs))(AT), jax.jit(jax.jacrev(of_logs))(AT), rtol=1e-10)
    slopes = differences(lambda theta: value_and_grad(theta)[1], AT)
    for name, hessian in (("jacfwd of jacrev", jax.hessian), ("jacrev of jacfwd", lambda f: jax.jacrev(jax.jacfwd(f)))):
        np.testing.assert_allclose(jax.jit(hessian(of_logs))(AT), slopes, rtol=1e-5, err_msg=name)


def test_vmap_over_hyperparameters_is_a_loop():
    grid = AT[None, :] + np.array([[0.0, 0.0], [1.0, -0.5], [-1.5, 0.3], [0.4, 0.9]])
    batch, grads = jax.jit(jax.vmap(jax.value_and_grad(of_logs)))(grid)
    for theta, value, grad in zip(grid, batch, grads, strict=True):
        alone, alone_grad = value_and_grad(theta)
        np.testing.assert_allclose(value, alone, rtol=1e-9)
        np.testing.assert_allclose(grad, alone_grad, rtol=1e-6, atol=1e-10)


def test_vmap_over_labels_is_a_loop():
    labels = np.stack([Y, np.where(X[:, 2] > 0, 1.0, -1.0), np.where(X[:, 1] + X[:, 0] > 0, 1.0, -1.0)])

    def one(y):
        return hj.solve(HINGE, values(), X, y, tol=1e-10).decision(X[:5])

    batch = jax.vmap(one)(labels)
    for y, outputs in zip(labels, batch, strict=True):
        np.testing.assert_allclose(outputs, one(y), atol=1e-8)


def test_scan_along_a_path_of_costs_with_warm_starts():
    costs = np.exp(np.linspace(-2.0, 2.0, 5))

    def path(log_gamma):
        def step(start, C):
            sols = hj.cross_solve(HINGE, values(C, jnp.exp(log_gamma)), X, Y, FOLDS, init=start, tol=1e-10)
            return (sols.z, sols.b), (softplus(sols.held_out(FOLDS), Y), sols.code)

        start = (jnp.zeros((3, N)), jnp.zeros((3,)))
        return lax.scan(step, start, costs)[1]

    losses, codes = jax.jit(path)(AT[1])
    assert np.isin(codes, (hj.Code.OK, hj.Code.BIAS_INTERVAL, hj.Code.DEGENERATE)).all()
    for C, loss in zip(costs, losses, strict=True):
        np.testing.assert_allclose(loss, value_and_grad(np.array([np.log(C), AT[1]]))[0], rtol=1e-8)
    slope = jax.jit(jax.grad(lambda log_gamma: jnp.sum(path(log_gamma)[0])))(AT[1])
    numeric = differences(lambda log_gamma: jnp.sum(path(log_gamma)[0]), AT[1])[0]
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)


def test_a_network_below_learns_through_the_solution():
    """X = tanh(inputs W): the gradient reaches W through K of training and held-out rows alike."""
    draw = np.random.default_rng(2)
    inputs = np.c_[X, draw.normal(size=(N, 2))]
    W = 0.6 * draw.normal(size=(5, D))

    def loss(W):
        return of_logs(AT, jnp.tanh(inputs @ W))

    grad = jax.jit(jax.grad(loss))(W)
    numeric = differences(jax.jit(loss), W).reshape(W.shape)
    np.testing.assert_allclose(grad, numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max())


def test_weights_and_new_rows_have_derivatives_under_jit():
    weights = np.random.default_rng(5).uniform(0.5, 1.5, N)
    rows = np.random.default_rng(6).normal(size=(4, D))

    @jax.jit
    def loss(weights, rows):
        return jnp.sum(jnp.sin(hj.solve(HINGE, values(), X, Y, weights=weights, tol=1e-10).decision(rows)))

    grads = jax.grad(loss, argnums=(0, 1))(weights, rows)
    numeric = differences(lambda w: loss(w, rows), weights), differences(lambda r: loss(weights, r), rows)
    for grad, expected in zip(grads, numeric, strict=True):
        np.testing.assert_allclose(np.ravel(grad), expected, rtol=1e-6, atol=1e-8)


def test_smooth_losses_compose_as_well():
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.Linear(), "regularised")

    def loss(log_C):
        hp = {"loss": {"C": jnp.exp(log_C)}, "kernel": {}}
        return softplus(hj.cross_decision(problem, hp, X, Y, FOLDS, tol=1e-11), Y)

    at = np.array([-1.0, 0.0, 1.5])
    first, second = jax.jit(jax.vmap(jax.grad(loss)))(at), jax.jit(jax.vmap(jax.grad(jax.grad(loss))))(at)
    many = jax.jit(jax.vmap(loss))
    np.testing.assert_allclose(first, (many(at + 1e-5) - many(at - 1e-5)) / 2e-5, rtol=1e-6)
    np.testing.assert_allclose(second, (many(at + 1e-3) - 2 * many(at) + many(at - 1e-3)) / 1e-6, rtol=1e-4)
