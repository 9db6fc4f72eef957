"""What every loss in `hyperjax.losses.EXAMPLES` promises; the walk needs no list."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax import prox as automatic

N = 8
LOSSES = hj.losses.EXAMPLES
KINDS = {type(loss).__name__ + str(i): loss for i, loss in enumerate(LOSSES)}


def data(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    y = np.where(np.arange(N) % 2, 1.0, -1.0) if loss.labels else rng.normal(size=N)
    return jnp.asarray(X), jnp.asarray(y)


def inside(loss):
    """The loss and hyperparameters the solvers see, and y."""
    X, y = data(loss)
    hp = jax.tree.map(lambda v: jnp.asarray(v, float), loss.init(X, y))
    return *loss.expand(hp), y


def test_every_loss_has_an_example():
    concrete = {
        name
        for name in hj.losses.__all__
        if isinstance(getattr(hj.losses, name), type) and hasattr(getattr(hj.losses, name), "init")
    } - {"Loss", "Wrapped", "Piecewise", "PiecewiseLinear"}
    assert concrete <= {type(loss).__name__ for loss in LOSSES}


@pytest.mark.parametrize("name", KINDS)
def test_convex_on_a_grid(name):
    loss, hp, y = inside(KINDS[name])
    grid = np.linspace(-6.0, 6.0, 1201)
    values = np.asarray(jax.vmap(lambda o: loss.phi(jnp.full_like(y, o), y, hp))(jnp.asarray(grid)))
    assert values.min() >= 0.0
    assert np.diff(values, n=2, axis=0).min() >= -1e-12 * np.abs(values).max()


@pytest.mark.parametrize("name", KINDS)
def test_closed_prox_is_the_automatic_one(name):
    """Values and slopes at random points; ts = 0 gives the identity."""
    loss, hp, y = inside(KINDS[name])
    rng = np.random.default_rng(2)
    v = jnp.asarray(rng.uniform(-4.0, 4.0, size=(60, N)))
    ts = jnp.asarray(rng.choice([0.0, 1e-3, 0.3, 5.0], size=(60, N)))

    def slopes(prox):
        both = jax.vmap(lambda v, ts: jax.jvp(lambda v: prox(v, ts), (v,), (jnp.ones_like(v),)))
        return jax.jit(both)(v, ts)

    closed, slope = slopes(lambda v, ts: loss.prox(v, y, ts, hp))
    found, by_search = slopes(lambda v, ts: automatic.prox(loss, v, y, ts, hp))
    np.testing.assert_allclose(closed, found, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slope, by_search, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(closed)[np.asarray(ts) == 0.0], np.asarray(v)[np.asarray(ts) == 0.0])


def without(loss, hp, row):
    """Loss and hyperparameters of the rows that are left."""
    keep = np.arange(N) != row
    if isinstance(loss, hj.losses.Grouped):
        return loss.replace(groups=np.asarray(loss.groups)[keep]), hp
    if isinstance(loss, hj.losses.PerSample):
        return loss, hp | {"C": hp["C"][keep]}
    return loss, hp


ONE_EACH = {type(loss).__name__: loss for loss in reversed(LOSSES)}


@pytest.mark.parametrize("name", ONE_EACH)
def test_weight_zero_is_absence(name):
    """Outputs, and their gradient in every hyperparameter, are those of the problem without the row."""
    loss, row = ONE_EACH[name], 5
    X, y = data(loss)
    new = jnp.asarray(np.random.default_rng(3).normal(size=(4, 3)))
    keep = np.arange(N) != row
    kernel = hj.kernels.RBF(gamma=0.5)
    hp = hj.Problem(loss, kernel, True).init(X, y)

    def value(hp, weights, loss, X, y):
        o = hj.solve(hj.Problem(loss, kernel, True), hp, X, y, weights=weights, tol=1e-12).decision(new)
        return jnp.sum(jnp.tanh(o)), o

    def run(*arguments):
        f = jax.value_and_grad(value, has_aux=True)
        return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})(*arguments)

    (_, there), gradient = run(hp, jnp.asarray(np.where(keep, 1.0, 0.0)), loss, X, y)
    loss_left, hp_left = without(loss, hp["loss"], row)
    (_, absent), expected = run(hp | {"loss": hp_left}, jnp.ones(N - 1), loss_left, X[keep], y[keep])
    np.testing.assert_allclose(there, absent, atol=1e-9)
    if isinstance(loss, hj.losses.PerSample):
        np.testing.assert_allclose(gradient["loss"]["C"][row], 0.0, atol=1e-12)
        gradient["loss"]["C"] = gradient["loss"]["C"][keep]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9), gradient, expected)
