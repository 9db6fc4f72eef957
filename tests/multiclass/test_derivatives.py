"""Hypergradients of the multi-class machine: central differences, forward against reverse, JAX's transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras
needs_x64 = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="differences need 64 bits")

N, D, K = 21, 3, 3
PROBLEM = hj.multiclass.CrammerSinger(K, hj.kernels.RBF())
_draw = np.random.default_rng(4)
LABELS = np.arange(N) % K
X = _draw.normal(size=(N, D)) + 1.2 * np.eye(K)[LABELS]
NEW, NEW_LABELS = _draw.normal(size=(9, D)), _draw.integers(K, size=9)
WEIGHTS = _draw.uniform(0.5, 1.5, N)
AT = np.log([1.3, 0.4])


def fit(theta, X=X, weights=WEIGHTS, labels=LABELS, tol=1e-12):
    hp = {"loss": {"C": jnp.exp(theta[0])}, "kernel": {"gamma": jnp.exp(theta[1])}}
    return hj.multiclass.solve(PROBLEM, hp, X, labels, weights, tol=tol)


def loss(theta, X=X, weights=WEIGHTS, rows=NEW, labels=LABELS):
    """A smooth function of the outputs at other rows and of those at the training rows."""
    found = fit(theta, X, weights, labels)
    new = jax.nn.log_softmax(found.decision(rows))
    return -jnp.mean(jnp.take_along_axis(new, jnp.asarray(NEW_LABELS)[:, None], axis=1)) + 0.1 * jnp.sum(
        jnp.sin(found.outputs)
    )


VALUE = jax.jit(loss)
GRADIENT = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))
ARGUMENTS = (AT, X, WEIGHTS, NEW)


def differences(f, x, step=1e-5):
    x = np.asarray(x, float)
    out = np.zeros(x.size)
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = step
        out[i] = (f(x + e.reshape(x.shape)) - f(x - e.reshape(x.shape))) / (2 * step)
    return out.reshape(x.shape)


@needs_x64
def test_reverse_mode_equals_central_differences():
    found = fit(AT)
    assert found.converged and found.distance > 1e-3 and 3 <= found.n_free < N
    gradients = GRADIENT(*ARGUMENTS)
    for i, (name, at) in enumerate(zip(("hp", "X", "weights", "rows"), ARGUMENTS, strict=True)):
        numeric = differences(lambda v, i=i: VALUE(*ARGUMENTS[:i], v, *ARGUMENTS[i + 1 :]), at)
        assert np.abs(numeric).max() > 1e-4
        tolerance = 1e-6 * np.abs(numeric).max()
        np.testing.assert_allclose(gradients[i], numeric, rtol=1e-6, atol=tolerance, err_msg=name)


@needs_x64
def test_forward_mode_equals_reverse_mode_and_the_hessian_is_symmetric():
    forward = jax.jit(jax.jacfwd(loss))(AT)
    np.testing.assert_allclose(forward, GRADIENT(*ARGUMENTS)[0], rtol=1e-9)
    second = np.asarray(jax.jit(jax.jacfwd(jax.grad(loss)))(AT))
    numeric = np.stack([differences(lambda a, i=i: GRADIENT(a, *ARGUMENTS[1:])[0][i], AT) for i in range(2)])
    np.testing.assert_allclose(second, numeric, rtol=1e-5)
    np.testing.assert_allclose(second, second.T, rtol=1e-7)


@needs_x64
def test_a_removed_sample_is_absent_and_its_weight_has_a_derivative():
    weights = WEIGHTS.copy()
    weights[[2, 7]] = 0.0
    kept = np.flatnonzero(weights)
    whole = fit(AT, weights=weights)
    part = hj.multiclass.solve(PROBLEM, whole.hp, X[kept], LABELS[kept], weights[kept], tol=1e-12)
    np.testing.assert_allclose(whole.z[kept], part.z, atol=1e-10)
    np.testing.assert_array_equal(whole.z[np.array([2, 7])], 0.0)
    np.testing.assert_allclose(whole.decision(NEW), part.decision(NEW), atol=1e-10)
    slope = GRADIENT(AT, X, weights, NEW)[2]
    h, e = 1e-5, np.eye(N)
    for i in (2, 7):
        ahead = [float(VALUE(AT, X, weights + a * h * e[i], NEW)) for a in (0, 1, 2)]
        np.testing.assert_allclose(slope[i], (-3 * ahead[0] + 4 * ahead[1] - ahead[2]) / (2 * h), rtol=1e-5, atol=1e-9)


@needs_x64
def test_vmap_over_tasks_and_scan_over_costs_equal_loops():
    draw = np.random.default_rng(1)
    tasks = X[None] + 0.1 * draw.normal(size=(3, N, D))
    labels = np.stack([LABELS, np.roll(LABELS, 1), LABELS])
    one = jax.value_and_grad(lambda X, labels: loss(AT, X, labels=labels))
    values, slopes = jax.jit(jax.vmap(one))(tasks, labels)
    single = jax.jit(one)
    for task, label, value, slope in zip(tasks, labels, values, slopes, strict=True):
        expected, expected_slope = single(task, label)
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-6, atol=1e-9)

    def path(log_gamma):
        def step(total, log_C):
            value = loss(jnp.stack([log_C, log_gamma]))
            return total + value, value

        return jax.lax.scan(step, jnp.zeros(()), jnp.asarray([-1.0, 0.0, 1.0]))

    (_, values), slope = jax.jit(jax.value_and_grad(path, has_aux=True))(AT[1])
    at = [np.array([log_C, AT[1]]) for log_C in (-1.0, 0.0, 1.0)]
    np.testing.assert_allclose(values, [float(VALUE(a, *ARGUMENTS[1:])) for a in at], rtol=1e-9)
    np.testing.assert_allclose(slope, sum(GRADIENT(a, *ARGUMENTS[1:])[0][1] for a in at), rtol=1e-7)
