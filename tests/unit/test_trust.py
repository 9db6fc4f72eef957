"""Reports on hypergradients: a right one, a wrong one, a kink, an unfinished solve; and the curvature at an optimum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * RNG.normal(size=40) > 0.8, 1.0, -1.0)
PROBLEM = hj.Problem(hj.losses.Logistic(), hj.kernels.RBF())
FOLDS = hj.folds.stratified(Y, 2, seed=0)
HP = PROBLEM.init(X, Y)


def validation(hp, tol=1e-11):
    solutions = hj.cross_solve(PROBLEM, hp, X, Y, FOLDS, tol=tol)
    return jnp.mean(jax.nn.softplus(-Y * solutions.held_out(FOLDS))), solutions


def test_a_right_gradient_is_confirmed():
    report = hj.check_hypergradient(validation, HP)
    assert report.trusted and np.all(report.digits >= 6)
    assert report.names == ("['kernel']['gamma']", "['loss']['C']")
    assert set(report.codes) == {"OK"} and report.distance == np.inf
    assert "believe" in str(report)


def test_a_slope_below_the_rounding_of_the_differences_is_confirmed():
    """In float32 a number without effect moves f by rounding alone; a slope that is there and denied is still found."""
    hp, rows = {"a": jnp.float32(0.7), "b": jnp.float32(1.1)}, jnp.linspace(0.0, 1.0, 30, dtype=jnp.float32)

    def shifted(hp):
        return jax.nn.logsumexp(hp["a"] * rows + hp["b"]) - hp["b"]

    report = hj.check_hypergradient(shifted, hp)
    assert report.digits[1] < 3 and 0 < abs(report.central[1]) <= report.rounding, str(report)
    assert report.trusted and "too small for differences" in str(report)
    assert "flat" in hj.check_hypergradient(lambda b: shifted({"a": hp["a"], "b": b}), hp["b"]).advice()
    denied = hj.check_hypergradient(lambda hp: hp["a"] ** 2 + 1e-2 * jax.lax.stop_gradient(hp["b"]), hp)
    assert not denied.trusted and list(denied.agree()) == [True, False]


def test_forward_and_reverse_mode_may_differ_by_the_rounding_of_float32():
    """Sums of another order: not a wrong rule."""
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(20_000, 3)), jnp.float32)
    report = hj.check_hypergradient(lambda x: jnp.mean(jnp.sin(rows @ x)) + x[0], jnp.ones(3, jnp.float32))
    assert np.any(np.abs(report.forward - report.reverse) > 1e-6 * np.abs(report.reverse)), "nothing to tell apart"
    assert "differ" not in report.advice()


@jax.custom_jvp
def wrong(x):
    return x**3


wrong.defjvp(lambda primals, tangents: (wrong(primals[0]), 2.9 * primals[0] ** 2 * tangents[0]))


def test_a_wrong_rule_is_found():
    report = hj.check_hypergradient(lambda hp: wrong(hp["a"]) + hp["b"], {"a": jnp.asarray(2.0), "b": jnp.asarray(1.0)})
    assert not report.trusted
    assert report.digits[0] < 2 < 8 < report.digits[1]
    np.testing.assert_allclose(report.central, [24.0, 1.0], rtol=1e-8)  # along a direction of length |hp|
    assert "do not confirm" in report.advice()


def test_a_kink_is_named_with_both_slopes():
    report = hj.check_hypergradient(lambda hp: jnp.abs(hp - 1.0) + 2.0 * jnp.maximum(hp - 1.0, 0.0), jnp.asarray(1.0))
    assert report.kinked[0] and not report.trusted
    np.testing.assert_allclose(report.sides[0], [-1.0, 3.0], rtol=1e-6)
    assert "one-sided" in str(report) and "kink" in str(report)


def test_an_unfinished_solve_is_not_believed():
    def unfinished(hp):
        sols = hj.cross_solve(PROBLEM, hp, X, Y, FOLDS, solver=hj.solvers.ProxGrad(max_steps=1), tol=1e-10)
        return jnp.mean(jax.nn.softplus(-Y * jnp.sum(sols.outputs * FOLDS.test, axis=0))), sols

    report = hj.check_hypergradient(unfinished, {"loss": {"C": 50.0}, "kernel": {"gamma": 0.4}})
    assert "MAX_STEPS" in report.codes and "do not believe" in str(report)


def test_many_numbers_are_looked_at_along_random_directions():
    report = hj.check_hypergradient(lambda x: jnp.sum(jnp.sin(x) * jnp.arange(30.0)), jnp.linspace(0.1, 2.0, 30))
    assert len(report.names) == 8 and report.trusted


def test_bad_functions_are_refused():
    with pytest.raises(ValueError, match="must return a scalar"):
        hj.check_hypergradient(lambda x: x, jnp.ones(3))
    with pytest.raises(ValueError, match="floating-point"):
        hj.check_hypergradient(lambda x: x.sum(), jnp.arange(3))


@pytest.fixture(scope="module")
def result():
    return hj.tune(PROBLEM, X, Y, FOLDS, hj.criteria.LogLoss(), progress=False, tol=1e-8)


def test_the_hessian_is_that_of_differences(result):
    found = result.sensitivity()
    assert found.names == ("kernel.gamma", "loss.C") or found.names == ("loss.C", "kernel.gamma")

    def at(theta):
        return float(validation(result.task.coords.build(jnp.asarray(theta)))[0])

    theta = np.asarray(result.task.coords.read(result.hp))
    e = 1e-3 * np.eye(2)
    expected = [
        [(at(theta + a + b) - at(theta + a - b) - at(theta - a + b) + at(theta - a - b)) / 4e-6 for a in e] for b in e
    ]
    np.testing.assert_allclose(found.hessian, expected, rtol=2e-3, atol=1e-6)


def test_moves_cost_what_they_say(result):
    found = result.sensitivity(share=0.01)
    theta, centre = np.asarray(result.task.coords.read(result.hp)), found.objective
    for j in range(2):
        moved = theta.copy()
        moved[j] += found.alone[j]
        cost = float(validation(result.task.coords.build(jnp.asarray(moved)))[0]) - centre
        assert cost == pytest.approx(0.01 * centre, rel=0.5)
    assert np.all(found.together >= found.alone * 0.99)


def test_a_hyperparameter_without_effect_is_a_flat_direction():
    def shifted(o, y, hp):
        return jnp.mean(jax.nn.softplus(-y * o))

    kernel = hj.kernels.Weighted((hj.kernels.RBF(gamma=0.7), hj.kernels.RBF(gamma=0.7)))
    problem = hj.Problem(hj.losses.Logistic(), kernel)
    tuned = hj.tune(problem, X, Y, FOLDS, shifted, progress=False, hold=["kernel.kernels"], tol=1e-6)
    found = tuned.sensitivity()
    flat = found.flat
    assert flat and any({"kernel.beta[0]", "kernel.beta[1]"} <= set(direction) for direction in flat)
    with pytest.raises(ValueError, match="share="):
        tuned.sensitivity(share=2.0)
