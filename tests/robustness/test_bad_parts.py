"""A user's own losses, kernels and criteria, wrong in the ways people get them wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.robustness.given import FOLDS, PROBLEM, N, X, Y, hp, refused, refused_everywhere, with_entry

K, L = hj.kernels, hj.losses


class Summed(L.Loss):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.sum(jnp.maximum(1.0 - y * o, 0.0))

    def init(self, X, y):
        return {"C": 1.0}


class Broken(Summed):
    def phi(self, o, y, hp):
        return hp["C"] * jnp.ones(3) * o


def test_losses_that_are_not_elementwise():
    refused_everywhere("phi of Summed", "shape (12,)", "returned shape ()", problem=hj.Problem(Summed()))
    refused_everywhere("phi of Broken fails on 12 outputs", "elementwise", problem=hj.Problem(Broken()))
    inside = hj.Problem(L.Grouped(Broken(), np.arange(N) % 2))
    refused_everywhere("phi of Broken", problem=inside, hp=hp(C=np.ones(2)))


class Crooked(K.Kernel):
    def k(self, x, z, hp):
        return x[0] * z[1]


class Negative(K.Kernel):
    def k(self, x, z, hp):
        return -hp["scale"] * jnp.sum(x * z)

    def init(self, X, y):
        return {"scale": 2.0}


def nothing(x, z):
    return None


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Crooked(), ["the kernel Crooked is not symmetric", "differ by", "/2"]),
        (Negative(), ["the kernel Negative is far from positive semidefinite", "eigenvalue -", "change"]),
        (lambda x, z: -jnp.sum(x * z), ["positive semidefinite", "first 8 rows"]),
        (nothing, ["the kernel nothing must return a scalar", "NoneType"]),
        (lambda x, z: "k", ["fails on two rows", "jax.numpy", "str"]),
        (lambda: 1.0, ["fails on two rows", "2 were given"]),
        (lambda x, z: float(x[0]), ["fails on two rows", "jax.numpy"]),
        (lambda x, z: jax.lax.complex(x @ z, x @ z), ["complex", "real part"]),
        (K.Sum([K.RBF(), Crooked()]), ["kernels[1]: the kernel Crooked is not symmetric"]),
    ],
)
def test_formulas_that_are_no_kernels(kernel, words):
    problem = hj.Problem(L.Hinge(), kernel)
    refused_everywhere("X, hp['kernel']", *words, problem=problem, hp=problem.init(X, Y))


def test_parts_inside_parts():
    anything = {"loss": {"C": 1.0}, "kernel": {}}
    for kernel, words in (
        (K.Sum(["rbf"]), ["kernel.kernels[0] is a str", "RBF()"]),
        (K.Product([K.RBF(), K.Linear]), ["kernel.kernels[1] is the class Linear", "instance of it"]),
        (K.Sum(K.RBF()), ["kernel.kernels is a RBF", "list"]),
        (K.Scaled("rbf"), ["kernel.kernel is a str", "RBF()"]),
        (K.RBF(columns=()), ["columns=()", "at least one"]),
    ):
        refused_everywhere(*words, problem=hj.Problem(kernel=kernel), hp=hp() if kernel.columns == () else anything)
    refused_everywhere("loss.loss is a str", "Hinge()", problem=hj.Problem(L.PerSample("hinge")))
    refused_everywhere("loss.loss is the class Hinge", problem=hj.Problem(L.Grouped(L.Hinge, np.arange(N) % 2)))
    refused_everywhere("PerSample", "several", problem=hj.Problem(L.PerSample(L.Grouped(L.Hinge(), np.arange(N) % 2))))
    beyond = hj.Problem(L.Grouped(L.Hinge(), np.arange(N) % 4, n_groups=3))
    refused_everywhere("groups", "n_groups = 3", "0 to 3", problem=beyond, hp=hp(C=np.ones(3)))


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        (None, ["criterion is None", "instance"]),
        ("auc", ["criterion is 'auc'", "instance"]),
        (hj.criteria.SmoothError, ["criterion is the class SmoothError", "instance"]),
        (lambda o: jnp.sum(o), ["criterion must be callable as criterion(o, y)"]),
        (lambda o, y: o, ["criterion returned", "12", "one real number"]),
        (lambda o, y: jax.lax.complex(jnp.sum(o), jnp.sum(o)), ["criterion returned", "complex", "one real number"]),
        (lambda o, y: None, ["criterion returned None", "one real number"]),
    ],
)
def test_criteria(criterion, words):
    refused(lambda: hj.hypergradient_info(PROBLEM, hp(), X, Y, FOLDS, criterion), *words)


def test_an_explicit_adjoint_checks_its_data_as_the_others_do():
    good = {"hp": hp(), "X": X, "y": Y, "folds": FOLDS}
    for words, bad in (
        (["X holds 1 NaN"], {"X": np.where(np.arange(3 * N).reshape(N, 3) == 5, np.nan, X)}),
        (["y holds one class only"], {"y": np.ones(N)}),
        (["hp['loss']['C'] is -1.0", "positive"], {"hp": hp(C=-1)}),
        (["X has shape (12,)", "two dimensions"], {"X": X[:, 0]}),
        (["fold", "at least 2", "found 1"], {"folds": 1}),
    ):
        given = {**good, **bad}
        refused(lambda g=given: hj.hypergradient_info(PROBLEM, **g, criterion=hj.criteria.SmoothError()), *words)


def test_lengths_of_time_are_no_numbers():
    for name, values in (("X", X), ("y", Y), ("weights", np.ones(N))):
        refused_everywhere(name, "timedelta64", "convert", **{name: np.full(values.shape, np.timedelta64(1, "s"))})


def test_what_only_shows_in_the_values_is_a_code_under_jit():
    """A matrix that is not symmetric, negative histograms, weights beta that are all 0."""
    gram = X @ X.T + np.eye(N)
    crooked = np.array(gram)
    crooked[0, 1] += 1.0
    weighted = K.Weighted([K.RBF(gamma=1.0), K.ExpChi2(gamma=1.0)])
    inside = {"kernels": [{"gamma": 1.0}, {"gamma": 1.0}]}
    for kernel, good, bad in (
        (K.Precomputed(), (gram, {}), (crooked, {})),
        (weighted, (abs(X), {"beta": np.full(2, 0.5), **inside}), (X, {"beta": np.full(2, 0.5), **inside})),
        (weighted, (abs(X), {"beta": np.full(2, 0.5), **inside}), (abs(X), {"beta": np.zeros(2), **inside})),
    ):
        problem = hj.Problem(L.Logistic(), K.Scaled(kernel))

        @jax.jit
        def solved(X, own, problem=problem):
            given = {"loss": {"C": jnp.asarray(1.0)}, "kernel": {"scale": jnp.asarray(1.0), "kernel": own}}
            return hj.cross_solve(problem, given, X, Y, FOLDS).code, hj.cross_decision(problem, given, X, Y, FOLDS)

        code, outputs = solved(good[0], jax.tree.map(jnp.asarray, good[1]))
        assert not any(hj.Code(int(c)).failed for c in code) and np.all(np.isfinite(outputs))
        code, outputs = solved(bad[0], jax.tree.map(jnp.asarray, bad[1]))
        assert all(hj.Code(int(c)) is hj.Code.NONFINITE for c in code) and np.all(np.isnan(outputs))


def test_traced_folds_that_leak_give_no_outputs():
    """A row that two folds test, or that trained the fold that tests it, has no held-out output."""

    @jax.jit
    def outputs(train, test):
        return hj.cross_decision(PROBLEM, jax.tree.map(jnp.asarray, hp()), X, Y, hj.Folds(train, test))

    train, test = np.asarray(FOLDS.train), np.asarray(FOLDS.test)
    fine = np.asarray(outputs(train, test))
    assert np.all(np.isfinite(fine))
    row = int(np.flatnonzero(test[0])[0])
    without = with_entry(train, (1, row), 0.0)
    for folds in ((without, with_entry(test, (1, row), 1.0)), (with_entry(train, (0, row), 1e-3), test)):
        found = outputs(*folds)
        assert np.isnan(found[row]) and np.isfinite(np.delete(np.asarray(found), row)).all()


def test_a_traced_tolerance_that_bounds_nothing_fails():
    given = jax.tree.map(jnp.asarray, hp())
    code = jax.jit(lambda tol: hj.solve(PROBLEM, given, X, Y, tol=tol).code)
    assert [hj.Code(int(code(tol))).failed for tol in (1e-3, np.inf, np.nan, -1.0)] == [False, True, True, True]


def test_traced_hyperparameters_may_come_in_a_list():
    ard = hj.Problem(kernel=K.ARD())

    def total(a, b):
        return jnp.sum(hj.solve(ard, {"loss": {"C": 1.0}, "kernel": {"gamma": [a, b, 0.5]}}, X, Y).outputs)

    whole = hj.solve(ard, {"loss": {"C": 1.0}, "kernel": {"gamma": [0.3, 0.4, 0.5]}}, X, Y)
    np.testing.assert_allclose(jax.jit(total)(0.3, 0.4), jnp.sum(whole.outputs), rtol=1e-6)
