"""The automatic prox, interval and kink probe, for losses that have phi and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperjax import losses, prox

FLOAT = np.dtype(jnp.zeros(()).dtype)
TIGHT = 1e-9 if FLOAT == np.float64 else 2e-4
needs_x64 = pytest.mark.skipif(FLOAT != np.float64, reason="needs float64 resolution")


class Tube(losses.Loss):
    """C |o - y| outside a tube of half width eps, plus a little curvature: kinks that move with y and eps."""

    def phi(self, o, y, hp):
        r = jnp.abs(o - y)
        return hp["C"] * jnp.maximum(r - hp["eps"], 0.0) + 0.5 * hp["bend"] * (o - y) ** 2

    def init(self, X, y):
        return {"C": 1.0, "eps": 0.5, "bend": 0.3}


class Exponential(losses.Loss):
    """exp(-y o): its slope overflows."""

    def phi(self, o, y, hp):
        return hp["C"] * jnp.exp(-y * o)

    def init(self, X, y):
        return {"C": 1.0}


class SmoothExponential(Exponential):
    """The same, declared differentiable."""

    smooth = True


class Naive(losses.Loss):
    """The logistic loss as one writes it first: NaN slopes far out."""

    def phi(self, o, y, hp):
        return hp["C"] * jnp.log(1.0 + jnp.exp(-y * o))

    def init(self, X, y):
        return {"C": 1.0}


class SteepLogistic(losses.Loss):
    """Differentiable, but looks like a kink from afar."""

    def phi(self, o, y, hp):
        return hp["C"] * jnp.logaddexp(1e3 * (1.0 - y * o), 0.0) / 1e3

    def init(self, X, y):
        return {"C": 1.0}


class SmallKink(losses.Loss):
    """A small kink on a strongly curved loss."""

    def phi(self, o, y, hp):
        return hp["C"] * (o**4 + 0.1 * jnp.abs(o - 0.12345))

    def init(self, X, y):
        return {"C": 1.0}


class Scaled(losses.Loss):
    """A hinge whose kink is a field of the loss and whose power is an integer hyperparameter."""

    kink: float = 1.0

    def phi(self, o, y, hp):
        return hp["C"] * jnp.maximum(self.kink - y * o, 0.0) * hp["times"].astype(o.dtype)

    def init(self, X, y):
        return {"C": 1.0, "times": jnp.asarray(2)}


def _array(*values):
    return jnp.asarray(values, FLOAT)


def _tube_hp():
    return {"C": _array(1.0)[0], "eps": _array(0.5)[0], "bend": _array(0.3)[0]}


def test_slope_and_curvature():
    o, y = _array(-1.0, 0.2, 2.0), _array(1.0, -1.0, 1.0)
    hp = {"C": _array(2.0)[0]}
    np.testing.assert_allclose(prox.slope(Exponential(), o, y, hp), -2 * y * np.exp(-y * o), rtol=1e-6)
    np.testing.assert_allclose(prox.curvature(Exponential(), o, y, hp), 2 * np.exp(-y * o), rtol=1e-6)


def _tube_prox_by_hand(v, y, ts, C, eps, bend):
    """Solve each of the five cases of the tube and keep the one that is consistent."""
    r = v - y
    q = 1.0 + ts * bend
    size = np.abs(r)
    inner = size / q
    outer = (size - ts * C) / q
    return y + np.sign(r) * np.where(inner <= eps, inner, np.where(outer >= eps, outer, eps))


def test_prox_of_a_kinked_loss_by_hand(rng):
    v, y = 3.0 * rng.normal(size=200), rng.normal(size=200)
    ts = rng.uniform(0.0, 3.0, size=200)
    expected = _tube_prox_by_hand(v, y, ts, 1.0, 0.5, 0.3)
    p = prox.prox(Tube(), *(jnp.asarray(a, FLOAT) for a in (v, y, ts)), _tube_hp())
    np.testing.assert_allclose(p, expected, atol=1e-13 if FLOAT == np.float64 else 3e-6)
    assert np.any(np.isclose(np.abs(expected - y), 0.5)) and np.any(np.abs(expected - y) < 0.4)


@needs_x64
def test_derivatives_of_every_order_by_hand(rng):
    n = 60
    v, y = jnp.asarray(2.0 * rng.normal(size=n)), jnp.asarray(rng.normal(size=n))
    ts, hp = jnp.asarray(rng.uniform(0.2, 2.0, size=n)), _tube_hp()

    def by_hand(v, y, ts, hp):
        r, q = v - y, 1.0 + ts * hp["bend"]
        outer = (jnp.abs(r) - ts * hp["C"]) / q
        size = jnp.where(jnp.abs(r) / q <= hp["eps"], jnp.abs(r) / q, jnp.where(outer >= hp["eps"], outer, hp["eps"]))
        return y + jnp.sign(r) * size

    every = (0, 1, 2, 3)
    automatic = lambda *args: prox.prox(Tube(), *args)
    for take in (lambda f: jax.jacfwd(f, every), lambda f: jax.jacrev(f, every)):
        for one, other in zip(
            *(jax.tree.leaves(jax.jit(take(f))(v, y, ts, hp)) for f in (automatic, by_hand)), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-9)
    total = [jax.jit(jax.hessian(lambda *args, f=f: jnp.sum(jnp.sin(f(*args))), every)) for f in (automatic, by_hand)]
    for one, other in zip(*(jax.tree.leaves(f(v, y, ts, hp)) for f in total), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


@needs_x64
def test_a_kink_whose_place_is_a_nonlinear_function():
    """|e^o - a| kinks at log a: first and second derivative of the place, and none in v."""

    class Root(losses.Loss):
        def phi(self, o, y, hp):
            return jnp.abs(jnp.exp(o) - hp["a"]) * hp["C"]

    # exp(o) - a below the kink is concave, but the proximal objective stays convex for small ts.
    a = jnp.asarray(2.0)
    v, y, ts = _array(0.7), _array(1.0), _array(0.1)
    place = lambda a, v: prox.prox(Root(), v, y, ts, {"a": a, "C": 1.0})[0]
    np.testing.assert_allclose(place(a, v), np.log(2.0), rtol=1e-14)
    gradient = jax.jit(jax.grad(place, argnums=(0, 1)))(a, v)
    np.testing.assert_allclose(gradient[0], 0.5, rtol=1e-9)
    np.testing.assert_allclose(gradient[1], [0.0])
    np.testing.assert_allclose(jax.jit(jax.hessian(place))(a, v), -0.25, rtol=1e-6)


@needs_x64
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothHinge(mu=100.0)], ids=lambda x: type(x).__name__)
def test_hessians_of_smooth_losses_are_differences_of_gradients(loss, rng):
    y = jnp.asarray(np.where(rng.random(12) < 0.5, -1.0, 1.0))
    v, ts = jnp.asarray(rng.normal(size=12)), jnp.asarray(rng.uniform(0.1, 2.0, size=12))
    hp = jax.tree.map(jnp.asarray, loss.init(None, None))
    value = lambda hp: jnp.sum(loss.prox(v, y, ts, hp) ** 2)
    hessian, gradient = jax.jit(jax.hessian(value))(hp), jax.jit(jax.grad(value))
    for name, leaf in hp.items():
        step = 1e-5 * leaf
        up, down = gradient({**hp, name: leaf + step}), gradient({**hp, name: leaf - step})
        for other in hp:
            np.testing.assert_allclose(
                hessian[other][name], (up[other] - down[other]) / (2 * step), rtol=1e-5, atol=1e-9
            )


@needs_x64
@pytest.mark.parametrize("mu", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("cost", [1e-8, 1.0, 1e8])
def test_smooth_search_meets_the_optimality_condition(mu, cost, rng):
    loss = losses.SmoothHinge()
    v, y = jnp.asarray(10.0 * rng.normal(size=100)), jnp.asarray(np.sign(rng.normal(size=100)))
    ts, hp = jnp.full(100, 1.0), {"C": cost, "mu": mu}
    p = loss.prox(v, y, ts, hp)
    # The condition changes sign within a few floats of p.
    width = 8 * np.finfo(float).eps * (np.abs(v) + np.abs(p) + cost)
    width = np.minimum(width, 1e-12 + 8 * np.finfo(float).eps * np.maximum(np.abs(p), 1.0) + width / (1 + cost * mu))
    noise = 8 * np.finfo(float).eps * (np.abs(v) + np.abs(p) + cost)
    below = (p - width - v) + prox.slope(loss, p - width, y, hp)
    above = (p + width - v) + prox.slope(loss, p + width, y, hp)
    assert np.all(below <= noise) and np.all(above >= -noise)
    slope = jax.jvp(lambda v: loss.prox(v, y, ts, hp), (v,), (jnp.ones_like(v),))[1]
    assert np.all((slope >= 0) & (slope <= 1))


def test_smooth_search_is_short(monkeypatch, rng):
    monkeypatch.setattr(prox, "NEWTON_STEPS", 12)
    y = jnp.asarray(np.sign(rng.normal(size=200)), FLOAT)
    v, ts = jnp.asarray(5.0 * rng.normal(size=200), FLOAT), jnp.asarray(rng.uniform(0.0, 4.0, size=200), FLOAT)
    for loss in (losses.Logistic(), losses.SmoothHinge()):
        hp = {name: jnp.asarray(leaf, FLOAT) for name, leaf in loss.init(None, None).items()}
        p = loss.prox(v, y, ts, hp)
        np.testing.assert_allclose(p + ts * prox.slope(loss, p, y, hp), v, atol=1e-13 if FLOAT == np.float64 else 1e-5)


@pytest.mark.parametrize("loss", [Exponential(), SmoothExponential()], ids=lambda x: type(x).__name__)
def test_overflowing_slopes_are_bracketed(loss):
    v, y = _array(-2000.0, -100.0, -3.0, 0.0, 5.0), _array(1.0, 1.0, 1.0, 1.0, 1.0)
    ts, hp = jnp.ones_like(v), {"C": _array(1.0)[0]}
    p = np.asarray(prox.prox(loss, v, y, ts, hp), float)
    assert np.all(np.isfinite(p)) and np.all(p >= np.asarray(v))
    np.testing.assert_allclose(p - np.exp(-p), v, rtol=1e-10 if FLOAT == np.float64 else 1e-4, atol=1e-6)


def test_undefined_slopes_beyond_the_solution_do_no_harm():
    v, y = _array(-40.0, 0.5, 60.0), _array(1.0, -1.0, 1.0)
    ts, hp = jnp.ones_like(v), {"C": _array(900.0)[0]}
    stable = losses.Logistic().prox(v, y, ts, hp)
    np.testing.assert_allclose(prox.prox(Naive(), v, y, ts, hp), stable, rtol=1e-4)


def test_fields_of_the_loss_and_integers_pass_through():
    v, y, ts = _array(0.9, -3.0, 4.0), _array(1.0, 1.0, 1.0), _array(0.5, 0.5, 0.5)
    hp = {"C": _array(1.0)[0], "times": jnp.asarray(2)}
    place = lambda kink, hp: prox.prox(Scaled(kink=kink), v, y, ts, hp)
    kink = _array(1.25)[0]
    np.testing.assert_allclose(place(kink, hp), [1.25, -2.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(place)(kink, hp), [1.0, 0.0, 0.0], atol=TIGHT)
    np.testing.assert_allclose(jax.jacrev(place)(kink, hp), [1.0, 0.0, 0.0], atol=TIGHT)
    by_cost = jax.jacrev(lambda c: place(kink, {**hp, "C": c}))(hp["C"])
    np.testing.assert_allclose(by_cost, [0.0, 1.0, 0.0], atol=TIGHT)
    both = jax.grad(lambda hp: jnp.sum(place(kink, hp)), allow_int=True)(hp)
    assert both["times"].dtype == jax.dtypes.float0


def test_batches_equal_loops(rng):
    v = jnp.asarray(rng.normal(size=(3, 5)), FLOAT)
    y, ts = jnp.asarray(rng.normal(size=5), FLOAT), jnp.asarray(rng.uniform(0.1, 1.0, size=(3, 5)), FLOAT)
    hp = {**_tube_hp(), "C": jnp.asarray([0.5, 1.0, 2.0], FLOAT)}
    axes = {"C": 0, "eps": None, "bend": None}
    for loss in (Tube(), losses.SmoothHinge()):
        hp = {**hp, "mu": _array(5.0)[0]} if "mu" not in hp else hp
        both = {name: axes.get(name) for name in hp}

        def slope(v, ts, hp, loss=loss):
            return jax.jvp(lambda v, hp: prox.prox(loss, v, y, ts, hp), (v, hp), (jnp.ones_like(v), hp))

        batch = jax.jit(jax.vmap(slope, in_axes=(0, 0, both)))(v, ts, hp)
        for t in range(3):
            one = slope(v[t], ts[t], {**hp, "C": hp["C"][t]})
            np.testing.assert_allclose(batch[0][t], one[0], rtol=1e-6)
            np.testing.assert_allclose(batch[1][t], one[1], rtol=1e-4, atol=1e-6)


def test_a_cost_for_every_sample_has_a_diagonal_jacobian(rng):
    y, v = jnp.asarray(rng.normal(size=4), FLOAT), jnp.asarray(9.0 + rng.normal(size=4), FLOAT)
    ts, hp = jnp.full(4, 0.25, FLOAT), {**_tube_hp(), "C": jnp.ones(4, FLOAT)}
    jacobian = jax.jacrev(lambda c: prox.prox(Tube(), v, y, ts, {**hp, "C": c}))(hp["C"])
    np.testing.assert_allclose(jacobian, -0.25 / (1 + 0.25 * 0.3) * np.eye(4), atol=TIGHT)


def test_interval_brackets_the_subdifferential():
    y, s = jnp.zeros(6, FLOAT), jnp.ones(6, FLOAT)
    hp = {**_tube_hp(), "bend": _array(0.0)[0]}
    lo, hi = prox.interval(Tube(), _array(0.0, 0.5, 1.0, -1.0, 7.0, -0.2), y, s, hp)
    np.testing.assert_allclose(lo, [-0.5, -0.5, -np.inf, 0.5, -np.inf, 0.5], rtol=1e-6)
    np.testing.assert_allclose(hi, [0.5, -0.5, -0.5, np.inf, -0.5, 0.5], rtol=1e-6)
    assert np.all(lo <= hi)
    lo, hi = prox.interval(Exponential(), _array(-1.0, 0.0, 0.5, 2.0), jnp.ones(4, FLOAT), jnp.ones(4, FLOAT), hp)
    assert np.all(np.isposinf(hi[:2])) and not np.any(np.isnan(lo))
    np.testing.assert_allclose(lo[2:], -np.log([0.5, 2.0]), rtol=1e-5)
    np.testing.assert_allclose(hi[2:], -np.log([0.5, 2.0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "kinked"),
    [(Tube(), True), (Exponential(), False), (SmallKink(), True), (Scaled(), True), (SteepLogistic(), False)],
    ids=lambda x: type(x).__name__,
)
def test_kinks_are_told_from_steepness(loss, kinked):
    assert prox.has_kinks(loss) is kinked


def test_what_cannot_be_probed_counts_as_kinked():
    assert jax.jit(lambda kink: jnp.asarray(prox.has_kinks(Scaled(kink=kink))))(1.0)

    class NoInit(losses.Loss):
        def phi(self, o, y, hp):
            return o**2

    assert prox.has_kinks(NoInit()) is True
    assert jax.jit(lambda x: x + (0.0 if prox.has_kinks(Exponential()) else 1.0))(0.0) == 1.0
