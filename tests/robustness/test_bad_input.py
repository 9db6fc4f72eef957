"""Bad input, called eagerly: a ValueError that names the argument, what was found and what to do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import hyperjax as hj
from tests.robustness.given import FOLDS, INF, NAN, PROBLEM, D, N, T, X, Y, hp, refused, refused_everywhere, with_entry


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_values_that_are_not_finite(bad):
    shown = f"{bad:g}"
    refused_everywhere("X holds 1 NaN or infinite", f"{shown} at (3, 1)", "remove", X=with_entry(X, (3, 1), bad))
    weights = with_entry(np.ones(N), 1, bad)
    refused_everywhere("weights holds 1 NaN or infinite", f"{shown} at (1,)", "give", weights=weights)
    refused_everywhere("hp['loss']['C']", shown, "finite", hp=hp(C=bad))
    refused_everywhere("hp['kernel']['gamma']", shown, "finite", hp=hp(gamma=bad))
    ard = hj.Problem(kernel=hj.kernels.ARD())
    refused_everywhere("hp['kernel']['gamma']", f"{shown} at (1,)", "finite", problem=ard, hp=hp(gamma=[1.0, bad, 1.0]))
    for problem, where in ((PROBLEM, "y holds"), (hj.Problem(loss=hj.losses.Squared()), "y holds 1 NaN or infinite")):
        refused_everywhere(where, shown, problem=problem, y=with_entry(Y, 2, bad))
        refused(lambda problem=problem: hj.cross_solve(problem, hp(), X, with_entry(Y, 2, bad), 3), "y holds", shown)
    rows = with_entry(np.ones((2, D)), (1, 0), bad)
    refused(lambda: hj.solve(PROBLEM, hp(), X, Y).decision(rows), "X_new holds 1 NaN", f"{shown} at (1, 0)", "remove")
    start = (with_entry(np.zeros(N), 4, bad), 0.0)
    refused_everywhere("init: z holds 1 NaN", "give", init=start)
    refused(lambda: hj.cross_solve(PROBLEM, hp(), X, Y, with_entry(FOLDS.train, (1, 0), bad)), "folds: fold 1", "use 0")


def test_infinities_that_cancel_and_sums_that_overflow():
    both = with_entry(with_entry(X, (3, 1), INF), (4, 0), -INF)
    refused_everywhere("X holds 2 NaN or infinite", "inf at (3, 1)", "remove", X=both)
    most = float(np.finfo(np.asarray(X).dtype).max)
    start = (with_entry(with_entry(np.zeros(N), 4, most), 5, most), 0.0)
    assert not hj.solve(PROBLEM, hp(), X, Y, init=start).code.item() == hj.Code.NONFINITE  # huge, and no infinity


def test_labels():
    for y, found in (((Y + 1) / 2, "0, 1"), (Y + 1, "0, 2"), (np.arange(N), "0, 1, 2, 3, 4, .."), (2 * Y, "-2, 2")):
        refused_everywhere(f"y holds the labels {found}", "-1 and +1; map", y=y)
    for value in (1.0, -1.0):
        refused_everywhere(f"y holds one class only ({value:g})", "needs both", y=np.full(N, value))
    for loss in (hj.losses.SquaredHinge(), hj.losses.Logistic(), hj.losses.PerSample(hj.losses.Hinge())):
        refused_everywhere("y holds the labels 0, 1", "map", problem=hj.Problem(loss=loss), y=(Y + 1) / 2)
    for loss in (hj.losses.Squared(), hj.losses.Pinball()):
        problem = hj.Problem(loss=loss)
        y = np.full(N, 2.0)
        assert not hj.Code(int(hj.solve(problem, problem.init(X, y), X, y).code)).failed


def test_shapes_of_the_data():
    for bad, found in ((X[0], "(3,)"), (X[None], "(1, 12, 3)"), (3.0, "()")):
        refused(lambda bad=bad: hj.solve(PROBLEM, hp(), bad, Y), f"X has shape {found}", "two dimensions")
    for bad in (X[0], X[None]):
        refused(lambda bad=bad: hj.cross_solve(PROBLEM, hp(), bad, Y, 3), "X has shape", "two dimensions")
    refused(lambda: hj.cross_solve(PROBLEM, hp(), 3.0, Y, 3), "X is 3.0", "rows and columns")
    refused(lambda: hj.solve(PROBLEM, hp(), np.zeros((0, D)), np.zeros(0)), "X has 0 rows", "at least two")
    refused(lambda: hj.solve(PROBLEM, hp(), X[:1], Y[:1]), "X has 1 row:", "at least two")
    refused(lambda: hj.cross_solve(PROBLEM, hp(), X[:1], Y[:1], 2), "2 folds", "1 rows", "lower k")
    refused_everywhere("X has no columns", "at least one", X=np.zeros((N, 0)))
    for bad, found in ((Y[:, None], "(12, 1)"), (Y[:5], "(5,)"), (1.0, "()")):
        refused_everywhere(f"y has shape {found}", "X has 12 rows", "give", y=bad)
    weights_of = {"(4,)": np.ones(4), "()": 1.0, "(12, 1)": np.ones((N, 1)), "(1, 1, 12)": np.ones((1, 1, N))}
    for found, bad in weights_of.items():
        refused_everywhere(f"weights has shape {found}", "(12,)", weights=bad)
    refused(lambda: hj.solve(PROBLEM, hp(), X, Y, weights=np.ones((0, N))), "weights has shape (0, 12)", "give")
    refused(lambda: hj.cross_solve(PROBLEM, hp(), X, Y, FOLDS, weights=np.ones((T, N))), "weights has shape (3, 12)")


def test_shapes_of_new_rows():
    solution = hj.solve(PROBLEM, hp(), X, Y)
    folds = hj.cross_solve(PROBLEM, hp(), X, Y, FOLDS)
    for bad, found in ((np.ones((2, D + 1)), "(2, 4)"), (np.ones(D), "(3,)"), (np.ones((1, 2, D)), "(1, 2, 3)")):
        for one in (solution, folds):
            refused(lambda one=one, bad=bad: one.decision(bad), f"X_new has shape {found}", "3 columns")
    for bad in ([["a", "b", "c"]], np.ones((2, D)) + 1j, np.ones((2, D)).astype(object), None, [[1.0], [1.0, 2.0]]):
        refused(lambda bad=bad: solution.decision(bad), "X_new")
    assert solution.decision(np.zeros((0, D))).shape == (0,)
    whole = [[1, 0, 2], [0, 0, 1]]
    np.testing.assert_allclose(solution.decision(whole), solution.decision(np.asarray(whole, float)), rtol=0, atol=0)
    kernel_matrix = hj.Problem(kernel=hj.kernels.Precomputed())
    trained = hj.solve(kernel_matrix, {"loss": {"C": 1.0}, "kernel": {}}, X @ X.T, Y)
    refused(lambda: trained.decision(np.ones((2, N - 1))), "X_new has shape (2, 11)", "12 columns")


@pytest.mark.parametrize("name", ["X", "y", "weights"])
def test_kinds_of_values(name):
    good = {"X": X, "y": Y, "weights": np.ones(N)}[name]
    for bad, found in (
        (np.full(good.shape, "a"), "<U1"),
        (good.astype(object), "object"),
        (good + 0j, "complex"),
        (np.full(good.shape, np.datetime64("2020-01-01")), "datetime64"),
    ):
        refused_everywhere(name, found, "convert", **{name: bad})
    refused_everywhere(name, "not a rectangular array", **{name: [[1.0, 2.0], [3.0]]})
    masked = np.ma.masked_array(good, mask=np.arange(good.size).reshape(good.shape) == 1)
    refused_everywhere(name, "masked", "impute", **{name: masked})
    if name != "weights":
        refused_everywhere(name, "None", **{name: None})
    if name == "X":
        refused_everywhere("X is sparse", "Linear()", "X.toarray()", X=scipy.sparse.csr_matrix(X))


def test_weights():
    refused_everywhere("weights holds 1 negative", "zero or more", weights=with_entry(np.ones(N), 3, -1.0))
    refused_everywhere("weights are all zero", "positive", weights=np.zeros(N))
    two = np.stack([np.ones(N), np.zeros(N)])
    refused(lambda: hj.solve(PROBLEM, hp(), X, Y, weights=two), "weights[1] are all zero", "positive")
    only_tested = np.asarray(FOLDS.test[1])
    call = lambda: hj.cross_solve(PROBLEM, hp(), X, Y, FOLDS, weights=only_tested)
    refused(call, "weights leave fold 1 without a training row", "positive")


def test_names_and_kinds_of_hyperparameters():
    refused_everywhere("hp['loss'] lacks ['C']", "must be ['C']", hp={"loss": {}, "kernel": {"gamma": 1.0}})
    refused_everywhere("hp['loss'] has unknown ['c']", "['C']", hp=hp() | {"loss": {"C": 1, "c": 1}})
    refused_everywhere("hp lacks ['loss']", "['kernel', 'loss']", hp={"kernel": {"gamma": 1.0}})
    refused_everywhere("hp has unknown ['lost']", "['kernel', 'loss']", hp=hp(lost=1))
    for bad, found in ((None, "NoneType"), ([1.0], "list"), (3.0, "float")):
        refused_everywhere(f"hp is a {found}", "pass a dict", hp=bad)
    refused_everywhere("hp['loss'] is a float", "dict with ['C']", hp={"loss": 1.0, "kernel": {"gamma": 1.0}})
    refused_everywhere("hp['kernel'] is a list", "dict with ['gamma']", hp={"loss": {"C": 1.0}, "kernel": [1.0]})
    for bad, found in (("1", "<U1"), (1j, "complex"), (None, "None"), ({"a": 1}, "dict"), (object(), "object")):
        refused_everywhere("hp['loss']['C']", found, hp=hp(C=bad))
    for bad, found in ((np.ones(3), "(3,)"), ([1.0], "(1,)")):
        refused_everywhere("hp['loss']['C'] has shape", found, "must have shape ()", hp=hp(C=bad))
    extra = hj.solve(PROBLEM, hp(criterion={"threshold": 0.3}), X, Y)
    np.testing.assert_array_equal(extra.z, hj.solve(PROBLEM, hp(), X, Y).z)


def test_domains_of_hyperparameters():
    for bad, shown in ((0, "0.0"), (-1, "-1.0"), (-1e-3, "-0.001")):
        refused_everywhere("hp['loss']['C']", shown, "must be positive", hp=hp(C=bad))
        refused_everywhere("hp['kernel']['gamma']", shown, "must be positive", hp=hp(gamma=bad))
    ard = hj.Problem(kernel=hj.kernels.ARD())
    for bad in ([0.1, 0.0, 0.2], [0.1, -0.2, 0.2]):
        refused_everywhere("hp['kernel']['gamma']", "must be positive", problem=ard, hp=hp(gamma=bad))
    for bad, found in (([0.1, 0.2], "(2,)"), (0.5, "()")):
        refused_everywhere("gamma", found, "(3,)", problem=ard, hp=hp(gamma=bad))
    tube = hj.Problem(loss=hj.losses.EpsilonInsensitive())
    bad_tube = {"loss": {"C": 1.0, "eps": -0.1}, "kernel": {"gamma": 1.0}}
    refused_everywhere("hp['loss']['eps']", "-0.1", "must not be negative", problem=tube, hp=bad_tube)
    quantile = hj.Problem(loss=hj.losses.Pinball())
    for tau in (0.0, 1.0, 1.5):
        bad_tau = {"loss": {"C": 1.0, "tau": tau}, "kernel": {"gamma": 1.0}}
        refused_everywhere("hp['loss']['tau']", f"{tau}", "strictly between", problem=quantile, hp=bad_tau)
    margins = hj.Problem(loss=hj.losses.WeightedHinge())
    loss = {"C_pos": 1.0, "C_neg": 1.0, "m_pos": 1.0, "m_neg": -1.0}
    refused_everywhere("hp['loss']", "m_pos + m_neg", problem=margins, hp={"loss": loss, "kernel": {"gamma": 1.0}})
    each = hj.Problem(loss=hj.losses.PerSample(hj.losses.Hinge()))
    refused_everywhere("hp['loss']['C']", "positive", problem=each, hp=hp(C=with_entry(np.ones(N), 3, 0.0)))
    refused_everywhere("hp['loss']['C']", "(11,)", "(12,)", problem=each, hp=hp(C=np.ones(N - 1)))
    grouped = hj.Problem(loss=hj.losses.Grouped(hj.losses.Hinge(), np.arange(N - 1) % 2))
    refused_everywhere("groups", "12 rows", "(11,)", problem=grouped, hp=hp(C=[1.0, 1.0]))


def test_nested_kernels():
    k = hj.kernels
    problem = hj.Problem(kernel=k.Weighted([k.Linear(), k.Sum([k.RBF(), k.Scaled(k.RBF())])]))

    def nested(beta: Any = (0.5, 0.5), first: Any = 0.5, second: Any = 0.5, scale: Any = 1.0) -> dict[str, Any]:
        inside = {"kernels": [{"gamma": first}, {"scale": scale, "kernel": {"gamma": second}}]}
        return {"loss": {"C": 1.0}, "kernel": {"beta": beta, "kernels": [{}, inside]}}

    assert not hj.Code(int(hj.solve(problem, nested(), X, Y).code)).failed
    path = "hp['kernel']['kernels'][1]['kernels']"
    refused_everywhere(f"{path}[0]['gamma'] is -1.0", "positive", problem=problem, hp=nested(first=-1))
    refused_everywhere(f"{path}[1]['kernel']['gamma'] is 0.0", "positive", problem=problem, hp=nested(second=0))
    refused_everywhere(f"{path}[1]['kernel']['gamma'] is nan", "finite", problem=problem, hp=nested(second=NAN))
    refused_everywhere(f"{path}[1]['scale'] is -2.0", "positive", problem=problem, hp=nested(scale=-2))
    refused_everywhere("hp['kernel']['beta']", "-0.1", "negative", problem=problem, hp=nested((0.5, -0.1)))
    refused_everywhere("hp['kernel']", "all beta 0", "positive", problem=problem, hp=nested((0, 0)))
    refused_everywhere("beta", "(3,)", "(2,)", problem=problem, hp=nested((1, 1, 1)))
    refused_everywhere("beta", "()", "(2,)", problem=problem, hp=nested(1.0))
    missing = nested()
    del missing["kernel"]["kernels"][1]["kernels"][1]["kernel"]["gamma"]
    refused_everywhere(f"{path}[1]['kernel'] lacks ['gamma']", problem=problem, hp=missing)
    unknown = nested()
    unknown["kernel"]["kernels"][0]["q"] = 1.0
    refused_everywhere("hp['kernel']['kernels'][0] has unknown ['q']", problem=problem, hp=unknown)
    short = {"loss": {"C": 1.0}, "kernel": {"beta": [1, 1], "kernels": [{}]}}
    refused_everywhere("hp['kernel']['kernels'] must be a list of 2", problem=problem, hp=short)


def test_kernel_matrices():
    problem = hj.Problem(kernel=hj.kernels.Precomputed())
    K, given = X @ X.T, {"loss": {"C": 1.0}, "kernel": {}}
    lopsided = with_entry(K, (0, 1), K[0, 1] + 1)
    refused_everywhere("X", "not symmetric", "differ by 1", problem=problem, hp=given, X=lopsided)
    indefinite = K - 3 * np.eye(N)
    refused_everywhere("X", "positive semidefinite", "-3", "diagonal", problem=problem, hp=given, X=indefinite)
    refused_everywhere("X", "positive semidefinite", problem=problem, hp=given, X=-K)
    refused_everywhere("X", "square", "(12, 3)", "pass K", problem=problem, hp=given, X=X)
    assert not hj.Code(int(hj.solve(problem, given, K, Y).code)).failed
    turned = hj.Problem(kernel=lambda x, z: x[0] * z[1])
    refused_everywhere("not symmetric", problem=turned, hp=given)
    columns = hj.Problem(kernel=hj.kernels.RBF(columns=(0, 7)))
    refused_everywhere("columns [7]", "0 to 2", problem=columns)
    histogram = hj.Problem(kernel=hj.kernels.ExpChi2())
    refused_everywhere("not negative", "column", problem=histogram)


def test_parts_of_the_problem():
    refused_everywhere("problem is a str", "Problem(", problem="svm")
    refused_everywhere("problem is the class Problem", "Problem(", problem=hj.Problem)
    for bad in ("yes", 1, 0, None, [True], "Regularised"):
        refused_everywhere("bias=", repr(bad), "True, False", problem=PROBLEM.replace(bias=bad))
    refused_everywhere("kernel is the class RBF", "RBF()", problem=hj.Problem(kernel=hj.kernels.RBF))
    refused_everywhere("kernel is a str", "RBF()", problem=hj.Problem(kernel="rbf"))
    refused_everywhere("loss is the class Hinge", "Hinge()", problem=hj.Problem(loss=hj.losses.Hinge))
    refused_everywhere("loss is a str", "Hinge()", problem=hj.Problem(loss="hinge"))


def test_solvers_and_tolerances():
    refused_everywhere("solver is a str", "Newton()", solver="newton")
    refused_everywhere("solver is the class Newton", "Newton()", solver=hj.solvers.Newton)
    refused_everywhere("solver=Newton", "Hinge", "kinks", "solver=None", solver=hj.solvers.Newton())
    smooth = hj.Problem(loss=hj.losses.Logistic())
    refused_everywhere("solver=Decomposition", "Logistic", problem=smooth, solver=hj.solvers.Decomposition())
    for bad in (0, -1.0, NAN, INF, "a", 1j, np.ones(2), [1e-3]):
        refused_everywhere("tol=", "positive number", tol=bad)
    refused_everywhere("tol=1e-17", "float64", "at least 4.4e-15", tol=1e-17)
    single = {"X": X.astype(np.float32), "y": Y.astype(np.float32)}
    refused_everywhere("tol=1e-09", "float32", "at least 2.4e-06", "float64", tol=1e-9, **single)


def test_warm_starts():
    zero = np.zeros(N)
    for bad in ("x", zero, (1, 2, 3), 5):
        refused_everywhere("init is a", "pair (z, b)", init=bad)
    more = np.zeros(T + 1)
    for bad in ((np.zeros(3), 0.0), (np.zeros((T + 1, N)), more), (zero, more), (zero[:, None], 0.0)):
        refused_everywhere("init has z of shape", "give shapes", init=bad)
    refused_everywhere("init: z", "<U1", init=(["a"] * N, 0.0))
    refused_everywhere("init: b", "None", init=(zero, None))
    refused_everywhere("init has z of shape (1, 8)", "12", init=hj.solve(PROBLEM, hp(), X[:8], Y[:8]))
    five = hj.cross_solve(PROBLEM, hp(), X, Y, 4)
    refused_everywhere("init has z of shape (4, 12)", "give shapes", init=five)
    cold = hj.solve(PROBLEM, hp(), X, Y)
    for good in ((zero, 0.0), ([0] * N, 0), (np.zeros(N, np.float32), np.float32(0)), cold, (cold.z, cold.b)):
        assert float(jnp.max(jnp.abs(hj.solve(PROBLEM, hp(), X, Y, init=good).outputs - cold.outputs))) < 1e-7


def test_folds_given_to_the_solver():
    for bad, words in (
        (1, ["at least 2", "found 1"]),
        (0, ["at least 2", "found 0"]),
        (-3, ["at least 2", "found -3"]),
        (2.5, ["whole number", "found 2.5"]),
        ("5", ["whole number", "found '5'"]),
        (None, ["found None"]),
        (N + 1, ["13 folds", "12 rows", "lower k"]),
        (7, ["7 folds", "only 6 member", "lower k"]),
        (np.zeros((2, N)), ["fold 0", "no training row", "leave"]),
        (-np.ones((2, N)), ["fold 0", "negative"]),
        (np.ones((2, N - 1)), ["11 rows", "12"]),
        (np.ones((2, N)).astype(object), ["object"]),
        (np.ones((2, N)) * 1j, ["complex"]),
        (np.ones((1, 2, N)), ["(1, 2, 12)"]),
        (hj.folds.kfold(9, 3), ["9 rows", "12"]),
        (hj.Folds(jnp.ones((2, N)), jnp.ones((2, N))), ["fold 0", "leak"]),
    ):
        refused(lambda bad=bad: hj.cross_solve(PROBLEM, hp(), X, Y, bad), "fold", *words)
        refused(lambda bad=bad: hj.cross_decision(PROBLEM, hp(), X, Y, bad), "fold", *words)
    solutions = hj.cross_solve(PROBLEM, hp(), X, Y, FOLDS)
    refused(lambda: solutions.held_out(hj.folds.kfold(9, 3)), "folds", "9 rows", "12")
    refused(lambda: solutions.held_out(hj.folds.kfold(N, 4)), "folds", "4 folds", "(3, 12)")
    refused(lambda: hj.solve(PROBLEM, hp(), X, Y).held_out(FOLDS), "folds", "3 folds", "(12,)")
    every = np.ones((2, N))
    refused(lambda: hj.cross_decision(PROBLEM, hp(), X, Y, every), "folds", "test no row", "outputs")
    assert hj.cross_solve(PROBLEM, hp(), X, Y, every).outputs.shape == (2, N)


def test_steps_a_solver_is_given():
    for steps in (0, -5, 2.5, "10", None):
        refused_everywhere("solver.max_steps", "at least 1", solver=hj.solvers.Decomposition(max_steps=steps))


def test_folds_made_badly():
    f = hj.folds
    for call, words in (
        (lambda: f.kfold(10, 1), ["k must be", "at least 2", "found 1"]),
        (lambda: f.kfold(3, 4), ["k = 4", "3 rows", "lower k"]),
        (lambda: f.kfold(10, 2.5), ["k must be", "found 2.5"]),
        (lambda: f.kfold(0, 2), ["n must be", "found 0"]),
        (lambda: f.kfold(10, 2, seed=-1), ["seed", "found -1"]),
        (lambda: f.stratified([1, 1, -1], 2), ["k = 2", "class -1", "1 member"]),
        (lambda: f.stratified(Y, 1), ["k must be", "found 1"]),
        (lambda: f.stratified([], 2), ["y must hold", "(0,)"]),
        (lambda: f.stratified(Y[:, None], 2), ["y must hold", "(12, 1)"]),
        (lambda: f.stratified(with_entry(Y, 1, NAN), 2), ["y holds nan", "row 1"]),
        (lambda: f.stratified(np.full(N, "a"), 2), ["y must hold", "<U1"]),
        (lambda: f.stratified(Y + 0j, 2), ["y must hold", "complex"]),
        (lambda: f.repeated(Y, 5, 0), ["repeats", "found 0"]),
        (lambda: f.holdout(10, 0.0), ["fraction", "found 0.0"]),
        (lambda: f.holdout(10, NAN), ["fraction", "found nan"]),
        (lambda: f.groups([1, 1, 1], 2), ["groups", "only 1 group", "lower k"]),
        (lambda: f.predefined([-1, -1]), ["test_fold", "only -1"]),
        (lambda: f.predefined([0, 0, 0]), ["fold 0", "no training row"]),
        (lambda: f.from_splitter(3, X, Y), ["cv must", "found 3"]),
        (lambda: f.from_splitter([], X, Y), ["cv must", "0 splits"]),
        (lambda: f.from_splitter([([], [0, 1])], X, Y), ["fold 0", "no training row"]),
        (lambda: f.from_splitter([([0], [99])], X, Y), ["cv must give row numbers", "0 to 11"]),
    ):
        refused(call, *words)


@pytest.mark.parametrize(
    ("phi", "shape"),
    [
        (lambda o, y, hp: jnp.sum(hp["C"] * (o - y) ** 2), r"\(\)"),
        (lambda o, y, hp: hp["C"] * (o[:, None] - y[None, :]) ** 2, rf"\({N}, {N}\)"),
    ],
    ids=["summed", "every pair"],
)
def test_a_loss_that_does_not_give_one_value_a_row_is_refused(phi, shape):
    class Mine(hj.losses.Loss):
        def phi(self, o, y, hp):
            return phi(o, y, hp)

        def init(self, X, y):
            return {"C": 1.0}

    problem = hj.Problem(Mine(), hj.kernels.RBF())
    for call in (
        lambda: hj.solve(problem, problem.init(X, Y), X, Y),
        lambda: jax.jit(lambda X: hj.solve(problem, problem.init(X, Y), X, Y).z)(X),
        lambda: hj.cross_solve(problem, problem.init(X, Y), X, Y, FOLDS),
    ):
        with pytest.raises(ValueError, match=rf"phi of Mine must return one value an output.*returned shape {shape}"):
            call()
