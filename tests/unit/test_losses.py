"""Every loss that ships: its formula, its closed forms and the checks of its hyperparameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from hyperjax import domains, losses, prox

FLOAT = np.dtype(jnp.zeros(()).dtype)
TIGHT = 1e-9 if FLOAT == np.float64 else 2e-4
needs_x64 = pytest.mark.skipif(FLOAT != np.float64, reason="differences of differences need float64")


def _positive(x):
    return np.maximum(x, 0.0)


def _modified_huber(o, y, h):
    m = y * o
    return h["C"] * np.where(m >= -1, _positive(1 - m) ** 2, -4 * m)


def _weighted(o, y, h):
    return np.where(y > 0, h["C_pos"] * _positive(h["m_pos"] - y * o), h["C_neg"] * _positive(h["m_neg"] - y * o))


FORMULAS = {
    "Hinge": lambda o, y, h: h["C"] * _positive(1 - y * o),
    "SquaredHinge": lambda o, y, h: h["C"] * _positive(1 - y * o) ** 2,
    "SmoothHinge": lambda o, y, h: h["C"] * np.logaddexp(0, h["mu"] * (1 - y * o)) / h["mu"],
    "Logistic": lambda o, y, h: h["C"] * np.log(1 + np.exp(-y * o)),
    "ModifiedHuber": _modified_huber,
    "WeightedHinge": _weighted,
    "EpsilonInsensitive": lambda o, y, h: h["C"] * _positive(np.abs(o - y) - h["eps"]),
    "SquaredEpsilonInsensitive": lambda o, y, h: h["C"] * _positive(np.abs(o - y) - h["eps"]) ** 2,
    "Pinball": lambda o, y, h: h["C"] * (h["tau"] * _positive(y - o) + (1 - h["tau"]) * _positive(o - y)),
    "Squared": lambda o, y, h: h["C"] * (o - y) ** 2,
}
PLAIN = [loss for loss in losses.EXAMPLES if not isinstance(loss, losses.Wrapped)]
CLOSED = [loss for loss in PLAIN if isinstance(loss, losses.Piecewise)]


def _name(loss):
    return type(loss).__name__


def _twin(loss):
    """A loss with the same phi and nothing else, so that everything about it is automatic."""

    class Twin(losses.Loss):
        smooth = None

        def phi(self, o, y, hp):
            return type(loss).phi(loss, o, y, hp)

        def init(self, X, y):
            return loss.init(X, y)

    return Twin()


def _data(loss, rng, n=64):
    """Points, targets and step lengths that reach every piece and every kink (rounded to spread them)."""
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0) if loss.labels else rng.normal(size=n)
    arrays = (3.0 * rng.normal(size=n), y, rng.uniform(0.1, 2.5, size=n))
    hp = {name: jnp.asarray(value, FLOAT) for name, value in loss.init(None, None).items()}
    return (*(jnp.asarray(a, FLOAT) for a in arrays), hp)


def test_the_package_lists_every_loss():
    assert set(FORMULAS) | {"Grouped", "PerSample"} == {_name(loss) for loss in losses.EXAMPLES}
    assert all(hasattr(losses, name) for name in FORMULAS)


@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_phi_is_the_written_formula(loss, rng):
    o, y, _, hp = _data(loss, rng)
    host = {name: float(value) for name, value in hp.items()}
    expected = FORMULAS[_name(loss)](np.asarray(o, float), np.asarray(y, float), host)
    np.testing.assert_allclose(loss.phi(o, y, hp), expected, rtol=1e-12 if FLOAT == np.float64 else 1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_phi_is_convex(loss, rng):
    a, y, _, hp = _data(loss, rng)
    b = jnp.asarray(3.0 * rng.normal(size=a.shape), FLOAT)
    middle = loss.phi(0.5 * (a + b), y, hp)
    assert np.all(middle <= 0.5 * loss.phi(a, y, hp) + 0.5 * loss.phi(b, y, hp) + 1e-5)


@needs_x64
@pytest.mark.parametrize("loss", CLOSED, ids=_name)
def test_closed_prox_and_derivatives_equal_the_automatic_ones(loss, rng):
    v, y, ts, hp = _data(loss, rng)
    twin = _twin(loss)
    np.testing.assert_allclose(loss.prox(v, y, ts, hp), twin.prox(v, y, ts, hp), atol=1e-12)
    every = (0, 1, 2, 3)

    @jax.jit
    def derivatives(*args):
        return tuple(
            take(f, every)(*args)
            for take, f in ((jax.jacfwd, loss.prox), (jax.jacfwd, twin.prox), (jax.jacrev, twin.prox))
        )

    closed, automatic, backward = derivatives(v, y, ts, hp)
    for one, other, back in zip(*(jax.tree.leaves(t) for t in (closed, automatic, backward)), strict=True):
        np.testing.assert_allclose(one, other, atol=TIGHT)
        np.testing.assert_allclose(back, other, atol=TIGHT)


@needs_x64
@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_prox_derivatives_are_central_differences(loss, rng):
    v, y, ts, hp = _data(loss, rng, n=24)
    moving = {} if loss.labels else {"y": y}

    def value(v, ts, hp, moving):
        return jnp.sum(jnp.sin(loss.prox(v, moving.get("y", y), ts, hp)))

    step = 1e-6
    args = (v, ts, hp, moving)
    flat, rebuild = ravel_pytree(args)

    @jax.jit
    def report(x, direction):
        """The value, the gradient along the direction and the Hessian times it."""
        of_flat = lambda x: value(*rebuild(x))
        gradient, second = jax.jvp(jax.grad(of_flat), (x,), (direction,))
        return of_flat(x), gradient, second

    for _ in range(3):
        direction = jnp.asarray(rng.normal(size=flat.shape))
        _, gradient, second = report(flat, direction)
        up, down = report(flat + step * direction, direction), report(flat - step * direction, direction)
        np.testing.assert_allclose(gradient @ direction, (up[0] - down[0]) / (2 * step), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(second, (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_prox_minimises(loss, rng):
    v, y, ts, hp = _data(loss, rng)
    p = loss.prox(v, y, ts, hp)

    def objective(p):
        return ts * loss.phi(p, y, hp) + 0.5 * (p - v) ** 2

    for step in (1e-3, -1e-3, 0.1, -0.1):
        assert np.all(objective(p) <= objective(p + step) + 8 * np.finfo(FLOAT).eps * (1 + objective(p)))


@pytest.mark.parametrize("loss", losses.EXAMPLES, ids=_name)
def test_weight_zero_removes_the_sample(loss):
    n = 8
    y = jnp.asarray([1.0, -1.0] * 4, FLOAT)
    hp = loss.init(jnp.zeros((n, 2), FLOAT), y)
    v, none = jnp.linspace(-2.0, 2.5, n, dtype=FLOAT), jnp.zeros(n, FLOAT)
    np.testing.assert_array_equal(loss.prox(v, y, none, hp), v)
    slope = jax.jvp(lambda v: loss.prox(v, y, none, hp), (v,), (jnp.ones_like(v),))[1]
    np.testing.assert_array_equal(slope, np.ones(n))
    by_step = jax.jvp(lambda t: loss.prox(v, y, t, hp), (none,), (jnp.ones_like(v),))[1]
    np.testing.assert_allclose(by_step, -prox.slope(loss, v, y, hp), rtol=1e-6)
    lo, hi = loss.interval(0.3 * y, y, none, hp)
    assert np.all(np.isneginf(lo)) and np.all(np.isposinf(hi))


@needs_x64
@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_interval_holds_the_outputs_whose_slope_fits(loss, rng):
    o, y, s, hp = _data(loss, rng)
    d = prox.slope(loss, o, y, hp)
    if not isinstance(loss, losses.Piecewise):  # a saturated sigmoid cannot be inverted
        share = jnp.abs(d) / hp["C"]
        keep = np.flatnonzero((share > 1e-8) & (share < 1 - 1e-8))
        o, y, s, d = (a[keep] for a in (o, y, s, d))
    lo, hi = loss.interval(-s * d, y, s, hp)
    assert np.all(lo <= o + 1e-7) and np.all(hi >= o - 1e-7)
    for end, outside in ((lo, -1e-6), (hi, 1e-6)):
        found = np.isfinite(end)
        beyond = prox.slope(loss, jnp.where(found, end, 0.0) + outside, y, hp)
        assert np.all(((beyond - d) * np.sign(outside) > 0) | ~found)
    for closed, automatic in zip((lo, hi), _twin(loss).interval(-s * d, y, s, hp), strict=True):
        np.testing.assert_array_equal(np.isfinite(closed), np.isfinite(automatic))
        found = np.isfinite(closed)
        np.testing.assert_allclose(closed[found], automatic[found], atol=1e-7)


def test_hinge_intervals_are_exact_at_the_levels():
    y = jnp.asarray([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0], FLOAT)
    z = jnp.asarray([0.0, 1.4, 0.5, 0.0, -1.4, -0.5, -1e-9, 1.5], FLOAT)
    s = jnp.full(8, 0.7, FLOAT)
    lo, hi = losses.Hinge().interval(z, y, s, {"C": jnp.asarray(2.0, FLOAT)})
    inf = np.inf
    np.testing.assert_array_equal(lo, [1, -inf, 1, -inf, -1, -1, 1, -inf])
    np.testing.assert_array_equal(hi, [inf, 1, 1, -1, inf, -1, inf, 1])


def test_tube_intervals_are_exact_at_the_levels():
    z = jnp.asarray([0.0, 2.0, -2.0, 1.0, -1.0], FLOAT)
    y, s = jnp.full(5, 3.0, FLOAT), jnp.ones(5, FLOAT)
    hp = {"C": jnp.asarray(2.0, FLOAT), "eps": jnp.asarray(0.5, FLOAT)}
    lo, hi = losses.EpsilonInsensitive().interval(z, y, s, hp)
    np.testing.assert_array_equal(lo, [2.5, -np.inf, 3.5, 2.5, 3.5])
    np.testing.assert_array_equal(hi, [3.5, 2.5, np.inf, 2.5, 3.5])


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothHinge(mu=50.0)], ids=_name)
def test_sigmoid_intervals_open_at_the_ends(loss):
    y = jnp.asarray([1.0, 1.0, -1.0, -1.0, 1.0], FLOAT)
    z = jnp.asarray([0.0, 2.0, 0.0, -2.0, 1.0], FLOAT)
    hp = {"C": jnp.asarray(2.0, FLOAT), "mu": jnp.asarray(50.0, FLOAT)}
    lo, hi = loss.interval(z, y, jnp.ones(5, FLOAT), hp)
    np.testing.assert_array_equal(np.isposinf(hi), [True, False, False, True, False])
    np.testing.assert_array_equal(np.isneginf(lo), [False, True, True, False, False])
    assert not np.any(np.isnan(lo)) and not np.any(np.isnan(hi)) and np.all(lo <= hi)
    assert float(lo[4]) == float(hi[4]) == (0.0 if isinstance(loss, losses.Logistic) else 1.0)


@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_kinks_are_found(loss):
    kinked = _name(loss) in {"Hinge", "WeightedHinge", "EpsilonInsensitive", "Pinball"}
    assert prox.has_kinks(_twin(loss)) is kinked
    assert loss.smooth is not kinked
    assert isinstance(loss, losses.PiecewiseLinear) is kinked


def test_scale_is_the_slope_one_unit_away():
    y = jnp.asarray([1.0, -1.0], FLOAT)
    c = jnp.asarray(3.0, FLOAT)
    np.testing.assert_allclose(losses.Hinge().scale(y, {"C": c}), [3, 3])
    np.testing.assert_allclose(losses.SquaredHinge().scale(y, {"C": c}), [12, 12])
    np.testing.assert_allclose(losses.Squared().scale(y, {"C": c}), [6, 6])
    wide = {"C": c, "eps": jnp.asarray(5.0, FLOAT)}
    np.testing.assert_allclose(losses.EpsilonInsensitive().scale(y, wide), [3, 3])
    assert np.all(losses.SquaredEpsilonInsensitive().scale(y, wide) > 0)


class Ladder(losses.PiecewiseLinear):
    """Slopes -2, -0.5 and 1 with kinks at y - 1 and y: given by its pieces alone."""

    def kinks_and_slopes(self, y, hp):
        c = hp["C"] * jnp.ones_like(y)
        return (y - hp["gap"], y), (-2.0 * c, -0.5 * c, c)

    def init(self, X, y):
        return {"C": 1.5, "gap": 1.0}


def test_a_loss_given_by_its_pieces_gets_its_value(rng):
    o, y = jnp.asarray(2 * rng.normal(size=40), FLOAT), jnp.asarray(rng.normal(size=40), FLOAT)
    hp = {"C": jnp.asarray(1.5, FLOAT), "gap": jnp.asarray(1.0, FLOAT)}
    r = np.asarray(o - y, float)
    expected = 1.5 * np.where(r > 0, r, np.where(r > -1, -0.5 * r, 0.5 - 2.0 * (r + 1)))
    np.testing.assert_allclose(Ladder().phi(o, y, hp), expected, rtol=1e-5, atol=1e-5)
    ts = jnp.full(40, 0.4, FLOAT)
    twin = _twin(Ladder())
    np.testing.assert_allclose(Ladder().prox(o, y, ts, hp), twin.prox(o, y, ts, hp), atol=1e-5)
    closed, automatic = (jax.jit(jax.jacfwd(x.prox, argnums=3))(o, y, ts, hp) for x in (Ladder(), twin))
    for name in hp:
        np.testing.assert_allclose(closed[name], automatic[name], atol=TIGHT)


def test_groups_are_gathered_and_summed(rng):
    labels = np.array(["b", "a", "b", "c", "a"])
    loss = losses.Grouped(losses.SquaredEpsilonInsensitive(C=2.0), labels)
    assert loss.n_groups == 3
    o, y = jnp.asarray(rng.normal(size=5), FLOAT), jnp.asarray(rng.normal(size=5), FLOAT)
    hp = loss.init(jnp.zeros((5, 1), FLOAT), y)
    assert {name: leaf.shape for name, leaf in hp.items()} == {"C": (3,), "eps": (3,)}
    hp = {"C": jnp.asarray([1.0, 2.0, 3.0], FLOAT), "eps": jnp.asarray([0.0, 0.1, 0.2], FLOAT)}
    c, eps = np.array([2, 1, 2, 3, 1.0]), np.array([0.1, 0, 0.1, 0.2, 0])
    expected = c * _positive(np.abs(np.asarray(o - y)) - eps) ** 2
    np.testing.assert_allclose(loss.phi(o, y, hp), expected, rtol=1e-5, atol=1e-7)
    inner, inside = loss.expand(hp)
    assert type(inner) is losses.SquaredEpsilonInsensitive
    np.testing.assert_allclose(inside["C"], c)
    slope = jax.jit(jax.grad(lambda hp, loss: jnp.sum(loss.phi(o, y, hp))))(hp, loss)["C"]
    np.testing.assert_allclose(slope, np.bincount([1, 0, 1, 2, 0], expected / c), rtol=1e-4, atol=1e-6)
    tree = loss.domain_tree(hp)
    assert isinstance(tree["C"], domains.Positive) and isinstance(tree["eps"], domains.NonNegative)


def test_every_sample_its_own_cost():
    loss = losses.PerSample(losses.EpsilonInsensitive(C=2.0, eps=0.3))
    y = jnp.asarray([0.0, 1.0, 2.0], FLOAT)
    hp = loss.init(jnp.zeros((3, 1), FLOAT), y)
    np.testing.assert_array_equal(hp["C"], [2, 2, 2])
    assert hp["eps"] == 0.3 and loss.labels is False and loss.smooth is False
    hp = {**hp, "C": jnp.asarray([1.0, 2.0, 3.0], FLOAT)}
    np.testing.assert_allclose(loss.phi(y + 1.3, y, hp), [1, 2, 3], rtol=1e-6)
    inner, _ = loss.expand(hp)
    assert isinstance(inner, losses.PiecewiseLinear)
    with pytest.raises(ValueError, match="WeightedHinge has none"):
        losses.PerSample(losses.WeightedHinge()).init(None, y)


def test_wrappers_answer_for_the_loss_inside():
    loss = losses.Grouped(losses.SmoothHinge(), np.array([0, 1]))
    assert loss.labels is True and loss.smooth is True and loss.held == ("mu",)
    assert losses.PerSample(_twin(losses.Hinge())).smooth is False
    assert losses.PerSample(_twin(losses.Logistic())).smooth is True


def test_bad_hyperparameters_are_named():
    y = np.array([1.0, -1.0, 1.0])
    margins = {"C_pos": 1.0, "C_neg": 1.0, "m_pos": 0.5, "m_neg": -0.5}
    assert "m_pos + m_neg" in losses.WeightedHinge().problem_with(y, margins)
    assert losses.WeightedHinge().problem_with(y, {**margins, "m_neg": 0.0}) is None
    per_sample = losses.PerSample(losses.Hinge())
    assert "3 rows" in per_sample.problem_with(y, {"C": np.ones(2)})
    assert per_sample.problem_with(y, {"C": np.ones(3)}) is None
    grouped = losses.Grouped(losses.WeightedHinge(), np.array([5, 5, 9]))
    shaped = {name: np.full(2, value) for name, value in margins.items()}
    assert "m_pos + m_neg" in grouped.problem_with(y, shaped)
    assert "2 groups" in grouped.problem_with(y, {**shaped, "C_pos": np.ones(3)})
    assert "4 rows" in grouped.problem_with(np.ones(4), shaped)


@pytest.mark.parametrize("loss", PLAIN, ids=_name)
def test_float32_stays_float32(loss, rng):
    v, y, ts, hp = (jax.tree.map(lambda a: a.astype(jnp.float32), part) for part in _data(loss, rng))
    assert loss.phi(v, y, hp).dtype == jnp.float32
    for some in (loss, _twin(loss)):
        p, tangent = jax.jit(lambda v, hp, f=some.prox: jax.jvp(lambda v, hp: f(v, y, ts, hp), (v, hp), (v, hp)))(v, hp)
        assert p.dtype == tangent.dtype == jnp.float32
        assert np.all(np.isfinite(p)) and np.all(np.isfinite(tangent))
        np.testing.assert_allclose(p, loss.prox(v, y, ts, hp), atol=2e-5)
        assert all(end.dtype == jnp.float32 for end in some.interval(-ts, y, ts, hp))
    assert loss.scale(y, loss.init(None, None)).dtype == jnp.float32
