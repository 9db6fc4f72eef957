"""hypergradient_info: the explicit adjoint equals the rule, and its error bound sees an unfinished solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

ROWS = np.arange(1, 31)
X = np.c_[np.sin(1.3 * ROWS), np.cos(2.1 * ROWS + 0.5)]
Y = np.sign(X[:, 0] - 0.6 * X[:, 1] + 1.5 * np.sin(0.37 * ROWS**2))
FOLDS = hj.folds.stratified(Y, 3, seed=0)
CRITERION = hj.criteria.SmoothError()


def problem_at(loss, bias, C):
    problem = hj.Problem(loss=loss, kernel=hj.kernels.ARD(), bias=bias)
    hp = problem.init(X, Y)
    hp["loss"]["C"] = jnp.asarray(C)
    return problem, hp


@pytest.mark.parametrize("bias", [True, False, "regularised"])
@pytest.mark.parametrize("loss, C", [(hj.losses.Hinge(), 1.0), (hj.losses.Hinge(), 0.03), (hj.losses.Logistic(), 1.0)])
def test_equals_the_rule(loss, bias, C):
    problem, hp = problem_at(loss, bias, C)

    def f(hp):
        return CRITERION(hj.cross_decision(problem, hp, X, Y, FOLDS, tol=1e-12), Y, FOLDS)

    value, grad = jax.jit(jax.value_and_grad(f))(hp)
    same, explicit, info = hj.hypergradient_info(problem, hp, X, Y, FOLDS, CRITERION, tol=1e-12)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    size = max(float(jnp.max(jnp.abs(g))) for g in jax.tree.leaves(grad))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12 * size), grad, explicit)
    assert np.all(info.adjoint_residual < 1e-10)
    assert all(np.all(b <= 1e-9 * (1.0 + size)) for b in jax.tree.leaves(info.error_bound))


def test_bound_covers_a_loose_solve():
    problem, hp = problem_at(hj.losses.Logistic(), True, 1.0)
    _, exact, _ = hj.hypergradient_info(problem, hp, X, Y, FOLDS, CRITERION, tol=1e-13)
    loose = hj.solvers.ProxGrad()
    _, grad, info = hj.hypergradient_info(problem, hp, X, Y, FOLDS, CRITERION, solver=loose, tol=3e-2)
    assert np.max(info.solution.kkt) > 1e-5
    errors = jax.tree.map(lambda a, b: jnp.abs(a - b), grad, exact)
    worst = max(float(jnp.max(e)) for e in jax.tree.leaves(errors))
    assert worst > 1e-8
    jax.tree.map(lambda e, bound: np.testing.assert_array_less(e, 1.5 * bound + 1e-12), errors, info.error_bound)


def test_a_plain_callable_and_repeats():
    problem, hp = problem_at(hj.losses.Hinge(), True, 1.0)
    folds = hj.folds.stratified(Y, 3, seed=0, repeats=2)

    def criterion(o, y):
        return jnp.mean(jax.nn.softplus(-y[None, :] * o))

    def f(hp):
        return criterion(hj.cross_decision(problem, hp, X, Y, folds, tol=1e-12), jnp.asarray(Y))

    _, explicit, _ = hj.hypergradient_info(problem, hp, X, Y, folds, criterion, tol=1e-12)
    grad = jax.jit(jax.grad(f))(hp)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-14), grad, explicit)
