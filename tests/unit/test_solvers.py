"""Every solver against minimisers we did not write, on one small batch of two weighted folds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR, LinearSVC

import hyperjax as hj
from hyperjax.solvers import DCD, SGD, Decomposition, Newton, ProxGrad, Trust

pytestmark = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances")

N, D, GAMMA, C = 40, 3, 0.5, 2.0


class BareHinge(hj.losses.Loss):
    """A hinge that the library knows nothing of."""

    labels = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.maximum(1.0 - y * o, 0.0)

    def init(self, X, y):
        return {"C": C}


class KinkedAndCurved(BareHinge):
    """A kink with a parabola behind it."""

    def phi(self, o, y, hp):
        gap = jnp.maximum(1.0 - y * o, 0.0)
        return hp["C"] * (gap + 0.5 * gap * gap)


@functools.cache
def data():
    """X, labels, targets and the weights of two folds, some of them zero."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D))
    f = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=N)
    W = rng.uniform(0.5, 2.0, size=(2, N))
    W[0, :10] = 0.0
    W[1, 25:32] = 0.0
    return X, np.where(f > 0, 1.0, -1.0), f + 1.0, W


def setup(loss, kernel, bias):
    """The problem, its hyperparameters and the matching y."""
    X, labels, targets, _ = data()
    problem = hj.Problem(loss=loss, kernel=kernel, bias=bias)
    hp = problem.init(X, labels if loss.labels else targets)
    hp["loss"]["C"] = jnp.asarray(C)
    if "gamma" in hp["kernel"]:
        hp["kernel"]["gamma"] = jnp.asarray(GAMMA)
    if "eps" in hp["loss"]:
        hp["loss"]["eps"] = jnp.asarray(0.1)
    return problem, hp, labels if loss.labels else targets


def solve(loss, kernel, bias, solver, init=None, tol=1e-9):
    """The two weighted folds."""
    X, *_, W = data()
    problem, hp, y = setup(loss, kernel, bias)
    return hj.solve(problem, hp, X, y, weights=W, solver=solver, init=init, tol=tol)


def gram(linear, bias):
    """The kernel matrix by its formula."""
    X = data()[0]
    K = X @ X.T if linear else np.exp(-GAMMA * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    return K + 1.0 if bias == "regularised" else K


PHI = {
    hj.losses.Logistic: lambda o, y: (C * np.logaddexp(0, -y * o), -C * y / (1 + np.exp(y * o))),
    hj.losses.SquaredHinge: lambda o, y: (
        C * np.maximum(1 - y * o, 0) ** 2,
        -2 * C * y * np.maximum(1 - y * o, 0),
    ),
    hj.losses.Squared: lambda o, y: (C * (o - y) ** 2, 2 * C * (o - y)),
}


@functools.cache
def primal_oracle(kind, linear, bias):
    """Outputs and objectives of the primal in K's square-root features, by SciPy."""
    _, labels, targets, W = data()
    y = labels if kind.labels else targets
    value, vector = np.linalg.eigh(gram(linear, bias))
    features = vector[:, value > 1e-12] * np.sqrt(value[value > 1e-12])
    with_bias = bias is True
    if with_bias:
        features = np.c_[features, np.ones(N)]
    ridge = np.ones(features.shape[1])
    ridge[-1] = 0.0 if with_bias else 1.0
    outputs, objectives = [], []
    for s in W:

        def objective(w, s=s):
            o = features @ w
            loss, slope = PHI[kind](o, y)
            return 0.5 * np.sum(ridge * w * w) + s @ loss, ridge * w + features.T @ (s * slope)

        options = {"gtol": 1e-9, "maxiter": 5000}
        found = minimize(objective, np.zeros(features.shape[1]), jac=True, method="BFGS", options=options)
        assert np.max(np.abs(found.jac)) < 1e-6
        outputs.append(features @ found.x)
        objectives.append(found.fun)
    return np.array(outputs), np.array(objectives)


def primal(sol, loss_values, linear, bias):
    """The primal value of a solution, by its formula."""
    z = np.asarray(sol.z)
    return 0.5 * np.einsum("ti,ij,tj->t", z, gram(linear, bias), z) + np.sum(data()[3] * loss_values, axis=1)


@pytest.mark.parametrize(
    ("kind", "linear", "bias", "solvers"),
    [
        (hj.losses.Logistic, False, True, (Newton(), Trust())),
        (hj.losses.Logistic, False, False, (DCD(), Trust())),
        (hj.losses.SquaredHinge, True, True, (Newton(), Trust())),
        (hj.losses.SquaredHinge, True, "regularised", (DCD(), Trust(), ProxGrad())),
        (hj.losses.Squared, False, "regularised", (Newton(), DCD(), Trust())),
    ],
)
def test_smooth_losses_reach_the_minimum_scipy_finds(kind, linear, bias, solvers):
    kernel = hj.kernels.Linear() if linear else hj.kernels.RBF()
    o, best = primal_oracle(kind, linear, bias)
    _, labels, targets, W = data()
    for solver in solvers:
        sol = solve(kind(), kernel, bias, solver).raise_if_failed()
        np.testing.assert_allclose(sol.outputs, o, atol=2e-6, err_msg=type(solver).__name__)
        value = primal(sol, PHI[kind](np.asarray(sol.outputs), labels if kind.labels else targets)[0], linear, bias)
        np.testing.assert_allclose(value, best, rtol=1e-9)
        assert np.all(np.asarray(sol.z)[W == 0] == 0.0)


@functools.cache
def svc_outputs(linear, bias):
    """The hinge by LIBSVM (bias) or LIBLINEAR (constant feature or none)."""
    X, y, _, W = data()
    out = []
    for s in W:
        if bias is True:
            # LIBSVM drops rows of weight 0 from a precomputed kernel without renumbering the others
            model = SVC(C=C, kernel="linear" if linear else "rbf", gamma=GAMMA, tol=1e-9)
            out.append(model.fit(X[s > 0], y[s > 0], sample_weight=s[s > 0]).decision_function(X))
        else:
            rows = np.c_[X, np.ones(N)] if bias == "regularised" else X
            model = LinearSVC(C=C, loss="hinge", tol=1e-10, max_iter=1_000_000, fit_intercept=False)
            out.append(model.fit(rows, y, sample_weight=s).decision_function(rows))
    return np.array(out)


@pytest.mark.parametrize(
    ("linear", "bias", "solvers"),
    [
        (False, True, (Decomposition(), ProxGrad())),
        (True, True, (Decomposition(), ProxGrad())),
        (True, "regularised", (Decomposition(), DCD(), ProxGrad())),
        (True, False, (Decomposition(), DCD())),
    ],
)
def test_the_hinge_reaches_what_libsvm_and_liblinear_find(linear, bias, solvers):
    kernel = hj.kernels.Linear() if linear else hj.kernels.RBF()
    for solver in solvers:
        sol = solve(hj.losses.Hinge(), kernel, bias, solver).raise_if_failed()
        np.testing.assert_allclose(sol.outputs, svc_outputs(linear, bias), atol=1e-6, err_msg=type(solver).__name__)
        assert np.all(np.asarray(sol.z)[data()[3] == 0] == 0.0)
        assert np.all(np.abs(np.asarray(sol.z)) <= data()[3] * C * (1 + 1e-12))


def test_a_bare_hinge_is_solved_by_default_as_libsvm_solves_it():
    sol = solve(BareHinge(), hj.kernels.RBF(), True, None)
    assert np.all(np.asarray(sol.kkt) <= 1e-9)
    np.testing.assert_allclose(sol.outputs, svc_outputs(False, True), atol=1e-6)


def test_the_tube_of_regression_reaches_what_libsvm_finds():
    X, _, y, W = data()
    models = [SVR(C=C, epsilon=0.1, gamma=GAMMA, tol=1e-9) for _ in W]
    o = np.array([m.fit(X[s > 0], y[s > 0], sample_weight=s[s > 0]).predict(X) for m, s in zip(models, W, strict=True)])
    sol = solve(hj.losses.EpsilonInsensitive(), hj.kernels.RBF(), True, ProxGrad()).raise_if_failed()
    np.testing.assert_allclose(sol.outputs, o, atol=1e-6)


def test_a_kinked_and_curved_loss_is_optimal_by_its_own_subgradients():
    """-z = s phi'(o) off the kink and between the two slopes on it, at C over six decades with and without bias."""
    X, y, _, W = data()
    for bias in (True, False):
        problem, hp, _ = setup(KinkedAndCurved(), hj.kernels.RBF(), bias)
        for c in (1e-3, 1.0, 1e3) if bias is True else (1.0,):
            hp["loss"]["C"] = jnp.asarray(c)
            sol = hj.solve(problem, hp, X, y, weights=W)
            assert np.all(np.asarray(sol.kkt) <= 1e-8)
            z, b = np.asarray(sol.z), np.asarray(sol.b)
            o = z @ gram(False, bias) + (b[:, None] if bias is True else 0.0)
            m, alpha, near = y * o, z * y, 1e-6
            assert np.all(alpha[m > 1 + near] <= 1e-6 * c)
            assert np.all((alpha >= -1e-6 * c) & (alpha <= W * c * (1 + np.maximum(1 - m, 0) + near)))
            below = m < 1 - near
            np.testing.assert_allclose(alpha[below], (W * c * (2 - m))[below], rtol=1e-5)
            if bias is True:
                np.testing.assert_allclose(np.sum(z, axis=1), 0.0, atol=1e-8 * c * N)


def test_a_bias_far_away_is_found_when_no_sample_is_curved():
    """C so small that all coefficients stay at their bounds: the median, far from the start at 0."""
    X, _, y, _ = data()
    problem, hp, _ = setup(hj.losses.EpsilonInsensitive(), hj.kernels.RBF(), True)
    hp["loss"]["C"] = jnp.asarray(1e-6)
    sol = hj.solve(problem, hp, X, y + 1000.0, weights=data()[3], solver=ProxGrad(), tol=1e-8).raise_if_failed()
    for b, s in zip(np.asarray(sol.b), data()[3], strict=True):
        grid = np.concatenate([y + 1000.1, y + 999.9])
        best = min(s @ np.maximum(np.abs(y + 1000.0 - g) - 0.1, 0) for g in grid)
        np.testing.assert_allclose(s @ np.maximum(np.abs(y + 1000.0 - b) - 0.1, 0), best, rtol=1e-6)


def test_coefficients_of_a_loose_solve_are_feasible():
    """A Newton step on (F) leaves no free coefficient outside the range its kink allows."""
    for seed in range(30):
        problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF(), bias=bool(seed % 2))
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(24, 2))
        y = np.where(X[:, 0] + rng.normal(size=24) > 0, 1.0, -1.0)
        hp = {"loss": {"C": 1.0}, "kernel": {"gamma": 0.7}}
        share = y * np.asarray(hj.solve(problem, hp, X, y, solver=ProxGrad(), tol=1e-2).z)
        assert np.all((share >= 0.0) & (share <= 1.0)) and np.any(share > 0.0)


@pytest.mark.parametrize(
    ("loss", "bias", "solver"),
    [
        (hj.losses.Logistic(), True, Newton()),
        (hj.losses.Logistic(), True, Trust()),
        (hj.losses.Hinge(), True, Decomposition()),
        (hj.losses.Hinge(), True, ProxGrad()),
        (hj.losses.Hinge(), "regularised", DCD()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_warm_start_at_the_solution_takes_at_most_one_step(loss, bias, solver):
    cold = solve(loss, hj.kernels.RBF(), bias, solver, tol=1e-8)
    warm = solve(loss, hj.kernels.RBF(), bias, solver, init=(cold.z, cold.b), tol=1e-8)
    assert np.all(np.asarray(cold.iterations) > 1)
    assert np.all(np.asarray(warm.iterations) <= 1)
    assert np.all(np.asarray(warm.kkt) <= 1e-8)
    np.testing.assert_allclose(warm.outputs, cold.outputs, atol=1e-6)


def test_newton_arrives_from_far_away():
    """kkt may grow for many steps while the primal falls: that is no standstill."""
    X, y, _, W = data()
    problem = hj.Problem(hj.losses.SmoothHinge(), hj.kernels.RBF(), bias=True)
    hp = {"loss": {"C": 1e3, "mu": 1e3}, "kernel": {"gamma": GAMMA}}
    direction = np.random.default_rng(1).normal(size=(2, N))
    outputs = []
    for size in (0.0, 1e2, 1e4):
        init = (size * direction, np.full(2, 0.1 * size))
        sol = hj.solve(problem, hp, X, y, weights=W, init=init).raise_if_failed()
        assert np.all(np.asarray(sol.iterations) > 15)
        outputs.append(sol.outputs)
    np.testing.assert_allclose(outputs[1:], [outputs[0]] * 2, atol=1e-6)


def test_sgd_comes_close_and_closer_with_more_epochs():
    y = data()[1]
    for loss, bias in ((hj.losses.SquaredHinge(), True), (hj.losses.SquaredHinge(), "regularised")):
        linear, kernel = True, hj.kernels.Linear()
        _, best = primal_oracle(type(loss), linear, bias)
        excess = []
        for epochs in (10, 1000):
            sol = solve(loss, kernel, bias, SGD(epochs=epochs, batch=2))
            assert np.all(np.asarray(sol.z)[data()[3] == 0] == 0.0)
            value = primal(sol, PHI[type(loss)](np.asarray(sol.outputs), y)[0], linear, bias)
            excess.append(np.max(value / best - 1.0))
        assert -1e-9 <= excess[1] < 0.01
        assert excess[1] < 0.5 * excess[0]


def test_a_warm_start_of_sgd_is_never_worse():
    exact = solve(hj.losses.Hinge(), hj.kernels.RBF(), True, None)
    warm = solve(hj.losses.Hinge(), hj.kernels.RBF(), True, SGD(epochs=5), init=(exact.z, exact.b))
    assert np.all(np.asarray(warm.iterations) == 0)
    np.testing.assert_array_equal(warm.z, exact.z)


def test_seeds_reproduce_every_bit_and_different_seeds_differ():
    for loss, bias, make in (
        (hj.losses.Hinge(), "regularised", lambda seed: DCD(seed=seed, max_steps=5)),
        (hj.losses.Hinge(), True, lambda seed: SGD(seed=seed, epochs=5)),
    ):
        one, again, other = (solve(loss, hj.kernels.RBF(), bias, make(seed)).z for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        assert np.any(np.asarray(one) != np.asarray(other))


def test_what_a_solver_cannot_handle_it_says():
    hinge, rbf = hj.losses.Hinge(), hj.kernels.RBF()
    for loss, bias, solver, words in (
        (hinge, True, Newton(), "Hinge has kinks"),
        (hinge, True, Trust(), "Hinge has kinks"),
        (hj.losses.Logistic(), True, Decomposition(), "not a hyperjax.losses.PiecewiseLinear"),
        (hinge, True, DCD(), 'use bias="regularised"'),
    ):
        with pytest.raises(ValueError, match=words):
            solve(loss, rbf, bias, solver)


def test_options_change_what_happens():
    def steps(loss, bias, solver):
        return np.asarray(solve(loss, hj.kernels.RBF(), bias, solver).iterations)

    logistic, hinge = hj.losses.Logistic(), hj.losses.Hinge()
    for loss, bias, kind, option in (
        (logistic, True, Newton, "max_steps"),
        (logistic, True, Trust, "max_steps"),
        (hinge, True, ProxGrad, "max_steps"),
        (hinge, "regularised", DCD, "max_steps"),
        (hinge, True, SGD, "epochs"),
    ):
        assert np.all(steps(loss, bias, kind(**{option: 2})) == 2)
    assert np.any(steps(logistic, True, Trust(max_products=1)) != steps(logistic, True, Trust()))
    few, many = (solve(hinge, hj.kernels.RBF(), True, SGD(epochs=3, batch=m)).z for m in (2, 20))
    assert np.any(np.asarray(few) != np.asarray(many))


def test_a_tube_is_left_to_short_passes_of_smo():
    """A pass ends where coefficients want to the tube's other side: many are needed, and they are cheap.

    Steps are counted with a budget that ends after the first passes and with the usual one; Newton steps take the rest.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=300)
    problem = hj.Problem(hj.losses.EpsilonInsensitive(), hj.kernels.RBF())
    hp = {"loss": {"C": 30.0, "eps": 0.1}, "kernel": {"gamma": 0.3}}
    usual, short = (hj.solve(problem, hp, X, y, solver=solver) for solver in (Decomposition(), Decomposition(passes=1)))
    assert int(usual.code) == int(short.code) == 0
    np.testing.assert_allclose(usual.outputs, short.outputs, atol=1e-8)
    assert int(usual.iterations) < 0.25 * int(short.iterations)
