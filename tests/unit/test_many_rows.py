"""Linear models on many rows of few columns: folds that share factors, kinked losses in the space of the columns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import hyperjax as hj
from hyperjax.operators import DIRECT_SIZES
from hyperjax.operators.feature_space import MANY
from hyperjax.problem import Inner
from hyperjax.solvers.newton import _furthest

pytestmark = [
    pytest.mark.no_extras,
    pytest.mark.skipif(not jax.config.jax_enable_x64, reason="compares at float64 tolerances"),
]

N = MANY + 3
KINKED = DIRECT_SIZES[-1] + 40


class Uneven(hj.losses.Loss):
    """A logistic loss with a cost a row that is no hyperparameter but lies in the loss itself."""

    smooth = True
    labels = True
    cost: jax.Array

    def phi(self, o, y, hp):
        return hp["C"] * self.cost * jnp.logaddexp(0.0, -y * o)

    def init(self, X, y):
        return {"C": 0.7}


def logistic(margins):
    return np.logaddexp(0.0, -margins), -expit(-margins)


def squared_hinge(margins):
    slack = np.maximum(1.0 - margins, 0.0)
    return slack**2, -2.0 * slack


def primal(x, X, y, cost, loss):
    """Value and gradient with an unregularised bias, x = (w, b)."""
    A = np.c_[X, np.ones(len(y))]
    values, slopes = loss(y * (A @ x))
    gradient = A.T @ (cost * y * slopes)
    gradient[:-1] += x[:-1]
    return 0.5 * x[:-1] @ x[:-1] + np.sum(cost * values), gradient


def minimum(X, y, cost, loss):
    """The primal value that SciPy reaches."""
    start, options = np.zeros(X.shape[1] + 1), {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 100000, "maxfun": 100000}
    return minimize(primal, start, (X, y, cost, loss), jac=True, method="L-BFGS-B", options=options).fun


def test_a_loss_with_a_number_a_row():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    y = np.where(X[:, 0] + rng.normal(size=N) > 0, 1.0, -1.0)
    cost = rng.uniform(0.5, 2.0, size=N)
    problem = hj.Problem(Uneven(jnp.asarray(cost)), hj.kernels.Linear(), bias=True)
    solution = hj.solve(problem, problem.init(X, y), X, y)
    x = np.r_[X.T @ np.asarray(solution.z), float(solution.b)]
    assert int(solution.code) == hj.Code.OK
    best = minimum(X, y, 0.7 * cost, logistic)
    np.testing.assert_allclose(primal(x, X, y, 0.7 * cost, logistic)[0], best, rtol=1e-9)
    assert int(solution.iterations) <= 12


@pytest.mark.parametrize("name", ["squared hinge", "logistic"])
def test_folds_that_share_factors_end_where_each_would_alone(name):
    """Columns that only some folds see, rows far out, and a fold that weighs its rows a thousand times less."""
    loss, oracle = {
        "squared hinge": (hj.losses.SquaredHinge(), squared_hinge),
        "logistic": (hj.losses.Logistic(), logistic),
    }[name]
    rng = np.random.default_rng(8)
    rare = (rng.random((N, 6)) < 4.0 / N) * 60.0
    # two columns that are the same, and one that is seen in the first fold's test rows alone
    rare[:, 1] = rare[:, 0]
    rare[:, 2] = 0.0
    rare[:3, 2] = 40.0
    X = np.c_[rng.normal(size=(N, 5)), rare]
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    train = np.ones((4, N))
    train[0, : N // 3] = train[1, N // 3 : 2 * N // 3] = 0.0
    train[2], train[3] = 1e-3, rng.random(N) < 0.01
    problem = hj.Problem(loss, hj.kernels.Linear(), bias=True)
    hp = {"loss": {"C": 3.0}, "kernel": {}}
    solution = hj.solve(problem, hp, X, y, weights=train)
    assert not any(hj.Code(int(code)).failed for code in solution.code)
    for weights, z, b in zip(train, np.asarray(solution.z), np.asarray(solution.b), strict=True):
        value, gradient = primal(np.r_[X.T @ z, b], X, y, 3.0 * weights, oracle)
        np.testing.assert_allclose(value, minimum(X, y, 3.0 * weights, oracle), rtol=1e-8)
        assert np.max(np.abs(gradient)) < 1e-6 * (1.0 + np.sum(weights))


@pytest.mark.parametrize(
    ("name", "bias"), [("hinge", True), ("known by phi alone", True), ("pinball", "regularised")]
)
def test_kinked_losses_close_the_gap(name, bias):
    """Primal and dual value of what was returned, by NumPy, for hinges and for regression."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(KINKED, 4)) * np.array([1.0, 0.3, 3.0, 1.0])
    X[:4] *= 50.0
    noisy = X[:, 0] - 0.2 * X[:, 2] + 0.7 * rng.normal(size=KINKED)
    y = noisy if name == "pinball" else np.where(noisy > 0, 1.0, -1.0)
    loss, hp = {
        "hinge": (hj.losses.Hinge(), {"C": 0.7}),
        "known by phi alone": (Bent(), {"C": 0.7}),
        "pinball": (hj.losses.Pinball(), {"C": 0.7, "tau": 0.3}),
    }[name]
    folds = np.ones((2, KINKED))
    folds[0, ::5] = 0.0
    problem = hj.Problem(loss, hj.kernels.Linear(), bias=bias)
    solution = hj.solve(problem, {"loss": hp, "kernel": {}}, X, y, weights=folds)
    assert not any(hj.Code(int(code)).failed for code in solution.code)
    A = np.c_[X, np.ones(KINKED)] if bias == "regularised" else X
    for s, z, b in zip(folds, np.asarray(solution.z), np.asarray(solution.b), strict=True):
        w = A.T @ z
        o = A @ w + (b if bias is True else 0.0)
        if name == "pinball":
            low, high = -0.7 * 0.7 * s, 0.3 * 0.7 * s
            values, linear = np.where(y > o, 0.3, -0.7) * (y - o), np.sum(y * z)
        else:
            low, high = np.where(y > 0, 0.0, -0.7 * s), np.where(y > 0, 0.7 * s, 0.0)
            values, linear = np.maximum(1.0 - y * o, 0.0), np.sum(y * z)
        assert np.all(z >= low - 1e-12) and np.all(z <= high + 1e-12)
        if bias is True:
            assert abs(np.sum(z)) < 1e-7
        value = 0.5 * w @ w + 0.7 * np.sum(s * values)
        np.testing.assert_allclose(value, linear - 0.5 * w @ w, rtol=1e-8)


class Bent(hj.losses.Loss):
    """The hinge, as somebody would write it."""

    labels = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.maximum(1.0 - y * o, 0.0)

    def init(self, X, y):
        return {"C": 1.0}


def test_the_derivative_of_a_hinge_on_many_rows():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(KINKED, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=KINKED) > 0, 1.0, -1.0)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), bias=True)

    def value(C):
        return jnp.mean(jnp.tanh(y * hj.solve(problem, {"loss": {"C": C}, "kernel": {}}, X, y).outputs))

    at, step = 1e-3, 1e-9
    central = (value(at + step) - value(at - step)) / (2.0 * step)
    np.testing.assert_allclose(jax.grad(value)(at), central, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 7, 9])
@pytest.mark.parametrize("loss", [hj.losses.SquaredHinge(), hj.losses.Hinge()])
def test_few_rows_far_out_in_float32(n, loss):
    """Rounding is asked for on fewer rows than it is added up in parts of."""
    X = (300.0 * np.random.default_rng(1).normal(size=(n, 1))).astype(np.float32)
    y = np.where(np.arange(n) % 2, 1.0, -1.0).astype(np.float32)
    problem = hj.Problem(loss, hj.kernels.Linear(), bias=True)
    assert not hj.Code(int(hj.solve(problem, problem.init(X, y), X, y).code)).failed


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 100.0])
def test_first_rows_that_are_unlike_the_rest(scale, loss):
    """Far from the solution the first rows are looked at alone: here they say nothing, or more than all others."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(2 * N, 4)) * np.where(np.arange(2 * N) < N // 3, scale, 1.0)[:, None]
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=2 * N) > 0, 1.0, -1.0)
    kind = hj.losses.Logistic() if loss is logistic else hj.losses.SquaredHinge()
    problem, hp = hj.Problem(kind, hj.kernels.Linear()), {"loss": {"C": 0.3}, "kernel": {}}
    found = hj.solve(problem, hp, X, y)
    z, b = np.asarray(found.z), float(found.b)
    value, _ = primal(np.r_[z @ X, b], X, y, 0.3, loss)
    assert found.code == hj.Code.OK and value == pytest.approx(minimum(X, y, 0.3, loss), rel=1e-9)
    _, slopes = loss(y * (X @ (z @ X) + b))
    np.testing.assert_allclose(z, -0.3 * y * slopes, atol=1e-7)


def test_a_violation_counts_all_rows_unless_the_first_are_far_off():
    phi, w = jnp.asarray(np.r_[np.full(N - 1, 2.0), 7.0])[:, None], jnp.asarray([[1.0], [-3.0]])
    inner = Inner(None, {}, None, None, jnp.ones((2, N)), False)  # nothing but the weights and the limit is asked for
    everywhere, first = [7.0, 21.0], [2.0, 6.0]
    for tol, limit, expected in ((1e-3, 0.0, first), (0.021, 0.0, everywhere), (1e-3, 2.5, everywhere)):
        found = _furthest(inner.replace(limit=limit), phi, w, jnp.asarray(tol))
        np.testing.assert_allclose(found, expected, err_msg=f"{tol}, {limit}")
    out = inner.replace(s=inner.s.at[:, -1].set(0.0))
    np.testing.assert_allclose(_furthest(out, phi, w, jnp.asarray(1.0)), first)


def test_rows_far_out_end_at_the_rounding_of_float32():
    """Rare columns with entries of a hundred and more, as standardised one-hot columns have them."""
    rng = np.random.default_rng(5)
    X = np.c_[rng.normal(size=(N, 5)), (rng.random((N, 5)) < 6.0 / N) * 150.0]
    y = np.where(X[:, 0] + rng.normal(size=N) > 0, 1.0, -1.0)
    train = np.ones((3, N))
    train[0, ::3] = train[1, 1::3] = train[2, 2::3] = 0.0
    problem = hj.Problem(hj.losses.SquaredHinge(), hj.kernels.Linear(), bias="regularised")
    single = jax.tree.map(np.float32, ({"loss": {"C": 1.0}, "kernel": {}}, X, y, train))
    solution = hj.solve(problem, *single[:3], weights=single[3])
    assert not any(hj.Code(int(code)).failed for code in solution.code)
    A = np.c_[X, np.ones(N)]
    for s, z in zip(train, np.asarray(solution.z, float), strict=True):
        w = A.T @ z
        primal = 0.5 * w @ w + np.sum(s * np.maximum(1.0 - y * (A @ w), 0.0) ** 2)
        seen = s > 0
        dual = np.sum(y * z) - 0.25 * np.sum(z[seen] ** 2 / s[seen]) - 0.5 * w @ w
        assert np.all(y * z >= 0.0) and primal - dual < 1e-4 * primal
