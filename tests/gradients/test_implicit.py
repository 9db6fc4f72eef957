"""The implicit derivative against central differences, forward against reverse: the file that sets the bar.

Every loss meets every kernel, every kind of bias meets both: a covering subset by default, the full cross with
HYPERJAX_FULL=1.  Hyperparameters stay a hundred steps away from any change of the active set, judged by
`Solution.distance` and by nothing else.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.gradients.probe import (
    FOLDS,
    QUICK,
    TOL,
    N,
    covering,
    data,
    difference,
    directions,
    one_sided,
    probe,
)

LOSSES = {
    "hinge": hj.losses.Hinge(C=1.2),
    "squared_hinge": hj.losses.SquaredHinge(C=0.8),
    "smooth_hinge": hj.losses.SmoothHinge(mu=4.0),
    "modified_huber": hj.losses.ModifiedHuber(C=0.6),
    "logistic": hj.losses.Logistic(C=2.0),
    "weighted_hinge": hj.losses.WeightedHinge(C_pos=1.3, C_neg=0.6, m_pos=1.2, m_neg=0.9),
    "epsilon_insensitive": hj.losses.EpsilonInsensitive(C=1.1, eps=0.3),
    "squared_epsilon_insensitive": hj.losses.SquaredEpsilonInsensitive(C=0.9, eps=0.2),
    "pinball": hj.losses.Pinball(C=1.1, tau=0.3),
    "squared": hj.losses.Squared(C=0.7),
}
KERNELS = {
    "linear": hj.kernels.Linear(),
    "rbf": hj.kernels.RBF(gamma=0.4),
    "ard": hj.kernels.ARD(gamma=0.3),
    "weighted": hj.kernels.Weighted([hj.kernels.Linear(), hj.kernels.RBF(gamma=0.8, columns=(1, 2))]),
}
BIASES = (True, False, "regularised")
FULL = os.environ.get("HYPERJAX_FULL") == "1"
AXES = (tuple(LOSSES), tuple(KERNELS), BIASES)
CASES = [(a, b, c) for a in LOSSES for b in KERNELS for c in BIASES] if FULL else covering(*AXES)
SECOND = CASES if FULL else [
    ("hinge", "rbf", True),
    ("logistic", "ard", False),
    ("squared_hinge", "weighted", "regularised"),
    ("epsilon_insensitive", "linear", True),
]  # fmt: skip


def problem_of(loss: str, kernel: str, bias: bool | str) -> hj.Problem:
    return hj.Problem(loss=LOSSES[loss], kernel=KERNELS[kernel], bias=bias)


def check_gradient(p):
    """dV in every hyperparameter, X, y and weights = central differences to 1e-6; a zero weight from above."""
    gradient = np.asarray(p.first(p.theta)["gradient"])
    for name, along in directions(p).items():
        expected = difference(p.value, p.theta, along)
        np.testing.assert_allclose(gradient @ along, expected, rtol=1e-6, atol=2e-10, err_msg=name)
    for i in np.flatnonzero(p.theta == 0.0):
        if i in p.parts["w"]:
            along = np.eye(p.theta.size)[i]
            np.testing.assert_allclose(gradient[i], one_sided(p.value, p.theta, along), rtol=1e-6, atol=1e-9)


def check_modes(p):
    """Forward = reverse, the adjoint identity, and the Hessian both ways = differences of gradients."""
    d = jax.tree.map(np.asarray, p.second(p.theta))
    np.testing.assert_allclose(d["forward"], d["reverse"], rtol=1e-10, atol=1e-12)
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=d["forward"].shape[0]), rng.normal(size=p.theta.size)
    np.testing.assert_allclose(u @ (d["forward"] @ v), (d["reverse"].T @ u) @ v, rtol=1e-10)

    size = np.abs(d["hessian"]).max()
    np.testing.assert_allclose(d["hessian"], d["hessian_reverse"], rtol=1e-10, atol=1e-12 * size)
    np.testing.assert_allclose(d["hessian"], d["hessian"].T, rtol=1e-8, atol=1e-9 * size)
    for name, along in directions(p).items():
        expected = difference(lambda v: p.first(v)["gradient"], p.theta, along)
        np.testing.assert_allclose(d["hessian"] @ along, expected, rtol=1e-5, atol=1e-6 * size, err_msg=name)
        outputs = difference(lambda v: p.first(v)["o"], p.theta, along)
        np.testing.assert_allclose(d["forward"] @ along, outputs, rtol=1e-6, atol=1e-9, err_msg=name)


def test_the_default_cases_cover_every_pair():
    cases = covering(*AXES)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert {(case[i], case[j]) for case in cases} == {(a, b) for a in AXES[i] for b in AXES[j]}
    assert len(cases) < len(LOSSES) * len(KERNELS) * len(BIASES) / 2
    assert {type(loss).__name__ for loss in LOSSES.values()} == {
        name for name in hj.losses.__all__ if name not in ("Loss", "EXAMPLES", "Grouped", "PerSample")
    } & {type(loss).__name__ for loss in hj.losses.EXAMPLES}


@pytest.mark.parametrize(("loss", "kernel", "bias"), CASES)
def test_gradient_is_the_central_difference(loss, kernel, bias):
    check_gradient(probe(problem_of(loss, kernel, bias), LOSSES[loss].labels, zero=True))


@pytest.mark.parametrize(("loss", "kernel", "bias"), SECOND)
def test_both_modes_and_both_hessians(loss, kernel, bias):
    check_modes(probe(problem_of(loss, kernel, bias), LOSSES[loss].labels))


class Softplus(hj.losses.Loss):
    """A user's loss, given by phi alone."""

    labels = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.logaddexp(0.0, hp["sharp"] * (0.5 - y * o))

    def init(self, X, y):
        return {"C": 0.8, "sharp": 1.5}


class Cauchy(hj.kernels.Kernel):
    """A user's kernel, given by k alone."""

    def k(self, x, z, hp):
        return 1.0 / (1.0 + hp["gamma"] * jnp.sum((x - z) ** 2))

    def init(self, X, y):
        return {"gamma": 0.6}


def bare(x, z):
    return jnp.exp(-0.3 * jnp.sum((x - z) ** 2))


GROUPS = np.arange(N) % 3
K = hj.kernels
MORE = {
    "grouped": (hj.losses.Grouped(hj.losses.SquaredEpsilonInsensitive(eps=0.2), GROUPS), K.Linear(), "regularised"),
    "grouped_hinge": (hj.losses.Grouped(hj.losses.WeightedHinge(), GROUPS), K.RBF(gamma=0.4), True),
    "per_sample": (hj.losses.PerSample(hj.losses.Hinge()), K.RBF(gamma=0.4), True),
    "phi_and_k_alone": (Softplus(), Cauchy(), True),
    "callable": (hj.losses.Hinge(), bare, True),
    "sum_of_scaled_and_polynomial": (
        hj.losses.Logistic(),
        K.Sum([K.Scaled(K.Linear(), 0.7), K.Polynomial(gamma=0.2, coef0=1.0, degree=2.0)]),
        True,
    ),
    "product": (hj.losses.SquaredHinge(), K.Product([K.RBF(gamma=0.4), K.Laplacian(gamma=0.2, columns=(0,))]), False),
}


@pytest.mark.parametrize("name", MORE)
def test_wrapped_losses_users_parts_and_composite_kernels(name):
    loss, kernel, bias = MORE[name]
    check_gradient(probe(hj.Problem(loss=loss, kernel=kernel, bias=bias), loss.labels))


def test_chi_squared_histograms():
    check_gradient(probe(hj.Problem(hj.losses.Hinge(), K.ExpChi2(gamma=0.5), True), positive=True))


def test_precomputed_kernel_matrix():
    """Here X is K: moves along symmetric directions."""
    X, y = data(labels=True)
    gram = X @ X.T + np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    p = probe(hj.Problem(hj.losses.Hinge(), K.Precomputed(), True), X=gram)
    gradient = np.asarray(p.first(p.theta)["gradient"])
    along = np.zeros(p.theta.size)
    move = np.random.default_rng(2).normal(size=(N, N))
    along[p.parts["X"]] = (move + move.T).ravel() / 10
    np.testing.assert_allclose(gradient @ along, difference(p.value, p.theta, along), rtol=1e-6)


def test_public_transforms_on_the_public_call():
    """jacfwd = jacrev of cross_decision, as a user writes them."""
    X, y = data(labels=True)
    problem = hj.Problem(hj.losses.Hinge(), K.RBF(gamma=0.4), True)
    folds = hj.folds.stratified(y, FOLDS, seed=1)
    hp = problem.init(X, y)

    def outputs(hp):
        return hj.cross_decision(problem, hp, X, y, folds, tol=TOL)

    both = jax.jit(lambda hp: (jax.jacfwd(outputs)(hp), jax.jacrev(outputs)(hp)), compiler_options=QUICK)
    forward, reverse = both(hp)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), forward, reverse)


def test_decision_moves_with_new_rows():
    X, y = data(labels=True)
    problem = hj.Problem(hj.losses.Hinge(C=1.2), K.RBF(gamma=0.4), True)
    new = np.random.default_rng(5).normal(size=(5, 3))

    def value(move, c):
        hp = {"loss": {"C": c}, "kernel": {"gamma": jnp.asarray(0.4)}}
        solution = hj.solve(problem, hp, X, y, tol=TOL)
        return jnp.sum(jnp.tanh(solution.decision(jnp.asarray(new) + move)))

    at = np.random.default_rng(6).normal(size=(5, 3)) * 0.1
    value_and_grad = jax.jit(jax.value_and_grad(value, argnums=(0, 1)), compiler_options=QUICK)
    _, (move, cost) = value_and_grad(jnp.asarray(at), jnp.asarray(1.2))
    along = np.random.default_rng(4).normal(size=(5, 3))
    expected = difference(lambda a: value_and_grad(jnp.asarray(a), jnp.asarray(1.2))[0], at, along)
    np.testing.assert_allclose(np.sum(np.asarray(move) * along), expected, rtol=1e-6)
    cost_at = np.asarray(1.2)
    expected = difference(lambda c: value_and_grad(jnp.asarray(at), jnp.asarray(c))[0], cost_at, cost_at)
    np.testing.assert_allclose(1.2 * cost, expected, rtol=1e-6)
