"""Every solver that `hyperjax.solvers` exports, on every problem it says it supports."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

SOLVERS = {
    name: getattr(hj.solvers, name)
    for name in hj.solvers.__all__
    if isinstance(getattr(hj.solvers, name), type)
    and issubclass(getattr(hj.solvers, name), hj.solvers.Solver)
    and getattr(hj.solvers, name) is not hj.solvers.Solver
}
STOCHASTIC = {"SGD": 0.02}
"""Methods that are not made for digits: how far, relative, their primal value may lie above the optimum."""
L, RBF, LINEAR = hj.losses, hj.kernels.RBF(gamma=0.4), hj.kernels.Linear()
PROBLEMS = {
    "hinge": (L.Hinge(C=1.2), RBF, True),
    "hinge_linear": (L.Hinge(C=0.5), LINEAR, "regularised"),
    "squared_hinge_linear": (L.SquaredHinge(C=0.4), LINEAR, False),
    "logistic": (L.Logistic(C=0.6), RBF, True),
    "epsilon_insensitive": (L.EpsilonInsensitive(C=0.8, eps=0.2), RBF, True),
    "squared": (L.Squared(C=0.4), LINEAR, "regularised"),
}
N, FOLDS = 24, 3


def data(labels):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 3))
    target = X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.normal(size=N)
    y = np.where(target > 0, 1.0, -1.0) if labels else target
    s = np.ones((FOLDS, N))
    for t in range(FOLDS):
        s[t, t::FOLDS] = 0.0
    return jnp.asarray(X), jnp.asarray(y), jnp.asarray(s)


def quick(f):
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


def primal(problem, hp, solution, y, s):
    """1/2 |f|^2_K + sum s phi(o), fold by fold; with a regularised bias o itself is the function."""
    b = 0.0 if problem.bias == "regularised" else np.asarray(solution.b)[:, None]
    o, z = np.asarray(solution.outputs), np.asarray(solution.z)
    losses = np.stack([problem.loss.phi(jnp.asarray(row), y, hp["loss"]) for row in o])
    return 0.5 * (z * (o - b)).sum(axis=1) + (np.asarray(s) * losses).sum(axis=1)


@pytest.fixture(scope="module")
def reference():
    """The solution of each problem by the solver that is picked for it, at 1e-11, once."""
    known = {}

    def of(name):
        if name not in known:
            problem = hj.Problem(*PROBLEMS[name])
            X, y, s = data(problem.loss.labels)
            hp = problem.init(X, y)
            run = quick(lambda X, y, s: hj.solve(problem, hp, X, y, weights=s, tol=1e-11))
            known[name] = run(X, y, s).raise_if_failed()
        return known[name]

    return of


def test_both_regimes_are_exported():
    assert {"Newton", "Decomposition"} <= set(SOLVERS)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", SOLVERS)
def test_solver_agrees_or_declines(method, name, reference):
    problem, solver = hj.Problem(*PROBLEMS[name]), SOLVERS[method]()
    X, y, s = data(problem.loss.labels)
    hp = problem.init(X, y)
    objection = solver.supports(problem.inner(hp, X, y, s))
    tol = 1e-2 if method in STOCHASTIC else 1e-8

    def run(X, y, s):
        return hj.solve(problem, hp, X, y, weights=s, tol=tol, solver=solver)

    if objection is not None:
        assert isinstance(objection, str)
        with pytest.raises(ValueError, match="solver="):
            run(X, y, s)
        return
    expected, found = reference(name), quick(run)(X, y, s)
    if method in STOCHASTIC:
        least, reached = (primal(problem, hp, solution, y, s) for solution in (expected, found))
        assert np.all(reached >= least - 1e-9)
        np.testing.assert_array_less(reached, (1.0 + STOCHASTIC[method]) * least)
        return
    np.testing.assert_allclose(found.outputs, expected.outputs, atol=1e-6)
    np.testing.assert_allclose(found.b, expected.b, atol=1e-6)
    assert np.all(np.asarray(found.kkt) <= tol)
