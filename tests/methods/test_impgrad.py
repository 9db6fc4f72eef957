"""ImpGrad: the published optimum of R30, what it does on the edge of the tube, its units, and what it refuses."""

import numpy as np
import pytest
import scipy.optimize

import hyperjax as hj
from experiments.moore.data import synthetic
from hyperjax.methods import impgrad
from hyperjax.methods._tubes import TubeSearch, adjoint, slopes
from hyperjax.methods.impgrad import EDGES, TAKES, _Descent
from tests.gradients.r30 import LABELS, R30, TARGETS, I
from tests.methods.moore import LINEAR, ONE, SINGLE, THREE, TUBE, TWO, penalised, solved


def value(C, eps, groups, folds, y=TARGETS):
    W = [solved(C, eps, groups, train, y) for train in folds]
    return penalised(W, C, eps, groups, folds, 0.0, y)[1]


def opened(problem, folds, init, y=TARGETS, **settings):
    search = TubeSearch(
        "impgrad", TAKES, problem, R30, y, folds, None, init, None, None, None, None, "sum", True, progress=False,
        **settings,
    )  # fmt: skip
    search.gradient(search.theta)
    return search, search.tubes()


def test_published_optimum_of_one_cost():
    """Items 7 and 4.9: eps = 0, one split."""
    result = impgrad(ONE, R30, TARGETS, SINGLE, hold="loss.eps", tol=1e-11)
    np.testing.assert_allclose(result.details["C"], [0.1694790047], rtol=1e-5)
    np.testing.assert_allclose(result.value, 0.0902590063, atol=1e-10)
    np.testing.assert_allclose(2.0 * result.hp["loss"]["C"], result.details["C"][0])
    assert result.converged and result.history[0]["hp"]["loss"]["C"] == 0.5


def test_published_optimum_of_two_costs_with_means():
    """4.3: three folds, two groups, losses divided by the rows of a group in the fold."""
    result = impgrad(TWO, R30, TARGETS, THREE, hold="loss.eps", normalisation="mean", tol=1e-10)
    np.testing.assert_allclose(result.details["C"], (62.3060, 63.6259), rtol=1e-3)
    np.testing.assert_allclose(result.value, 0.1054517494, atol=1e-9)


@pytest.mark.parametrize(
    "C, eps, value_, dC, deps",
    [
        (1.0, 0.1, 0.12641507219063, 0.033872080900, -0.243105590469),
        (10.0, 0.2, 0.14718614385057, 0.000835650416, -0.179660308812),
        (0.1, 0.05, 0.10692759984893, -0.557806753282, 0.090995101492),
    ],
)
def test_adjoint_in_primal_weights(C, eps, value_, dC, deps):
    """Item 2, by the Cholesky adjoint of the two methods and by the core's own."""
    init = {"loss": {"C": C / 2.0, "eps": eps}}
    search, tubes = opened(ONE, SINGLE, init)
    point = search.gradient(search.theta)
    r = np.asarray(search.weights(tubes.phi) @ tubes.phi.T) - TARGETS[None, :]
    a, e = slopes(r, np.full(30, eps))
    gradient, lam = adjoint(tubes, search.weights(tubes.phi), search.theta, a, e)
    np.testing.assert_allclose(point.value, value_, atol=1e-9)
    np.testing.assert_allclose(gradient, (C * dC, deps), atol=1e-8)
    np.testing.assert_allclose(point.gradient, gradient, rtol=1e-10)
    assert lam.shape == (1, 2)


def test_reaches_what_scipy_reaches():
    """The whole search against L-BFGS-B on values of an independent solver, from the same start in the same box."""
    box, none = {"loss.C": (0.05, 50.0), "loss.eps": (0.0, 0.3)}, np.zeros(30, int)
    with pytest.warns(RuntimeWarning, match=r"bounds of loss\.eps"):
        result = impgrad(ONE, R30, TARGETS, THREE, bounds=box, tol=1e-9)

    def outer(x):
        return value(np.exp(x[:1]), x[1:], none, THREE)

    ends = [(np.log(0.1), np.log(100.0)), (0.0, 0.3)]
    best = scipy.optimize.minimize(outer, np.zeros(2), method="L-BFGS-B", bounds=ends)
    C, eps = (np.ravel(result.hp["loss"][name]) for name in ("C", "eps"))
    np.testing.assert_allclose(result.value, value(2.0 * C, eps, none, THREE), atol=1e-9)
    assert result.value <= best.fun + 1e-6 and result.at_bounds == ("loss.eps",)


def test_edges():
    """A row put exactly on its edge: one-sided differences tell "inside" and "outside" apart."""
    C, eps, none = np.array([1.0]), np.array([0.1]), np.zeros(30, int)
    w = solved(C, eps, none, SINGLE[0])
    row = np.flatnonzero((np.abs(R30 @ w - TARGETS) < 0.1) & (I <= 20))[0]
    y = TARGETS.copy()
    y[row] = R30[row] @ w + 0.1
    found = {}
    for edge in EDGES:
        search = opened(ONE, SINGLE, {"loss": {"C": 0.5, "eps": 0.1}}, y=y, inner_tol=1e-13)[0]
        found[edge] = _Descent(search, edge, 1e-3)(search.theta).gradient

    def slope(h):
        return (value(C, eps + h, none, SINGLE, y) - value(C, eps, none, SINGLE, y)) / h

    # a wider tube takes the row inside, a narrower one leaves it outside
    np.testing.assert_allclose(found["inside"][1], slope(1e-6), rtol=1e-4)
    np.testing.assert_allclose(found["outside"][1], slope(-1e-6), rtol=1e-4)
    assert abs(found["inside"][1] - found["outside"][1]) > 1e-2
    between = found["outside"] - found["inside"]
    share = np.clip(-(found["inside"] @ between) / (between @ between), 0.0, 1.0)
    np.testing.assert_allclose(found["minimum"], found["inside"] + share * between, rtol=1e-9)


def test_raw_costs_reach_the_same_place():
    logs = impgrad(ONE, R30, TARGETS, SINGLE, hold="loss.eps", tol=1e-11)
    raw = impgrad(ONE, R30, TARGETS, SINGLE, hold="loss.eps", tol=1e-11, logarithms=False)
    np.testing.assert_allclose(raw.details["C"], logs.details["C"], rtol=1e-4)
    steps = [h["hp"]["loss"]["C"] for h in (raw.history[1], logs.history[1])]
    assert steps[0] != pytest.approx(float(steps[1]), rel=1e-3)


def test_silent_groups_and_constant_targets():
    with pytest.warns(RuntimeWarning, match="inactive group 0"):
        result = impgrad(ONE, R30, TARGETS, SINGLE, init={"loss": {"eps": 9.0}}, bounds={"loss.eps": (0.0, 10.0)})
    assert result.details["inactive_groups"] == [0] and result.reason == "gradient"
    np.testing.assert_array_equal(result.solution.z, 0.0)
    with pytest.warns(RuntimeWarning, match="inactive group 0"):
        flat = impgrad(ONE, R30, np.zeros(30), SINGLE)
    np.testing.assert_array_equal(flat.solution.z, 0.0)


def test_start_outside_the_box_is_moved_with_a_warning():
    with pytest.warns(RuntimeWarning, match=r"init: loss\.C = 5 lies outside its bounds"):
        result = impgrad(
            ONE, R30, TARGETS, SINGLE, init={"loss": {"C": 5.0}}, bounds={"loss.C": (1e-3, 1.0)}, hold="loss.eps"
        )
    assert result.history[0]["hp"]["loss"]["C"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"problem": hj.Problem(hj.losses.Hinge(), LINEAR, False), "y": LABELS}, "takes SquaredEpsilonInsensitive"),
        ({"problem": hj.Problem(hj.losses.PerSample(TUBE), LINEAR, False)}, "PerSample.*takes SquaredEpsilonInsens"),
        ({"problem": hj.Problem(TUBE, hj.kernels.RBF(), False)}, "kernel RBF: it takes Linear"),
        ({"problem": hj.Problem(TUBE, LINEAR, True)}, "bias=True: it takes False, 'regularised'"),
        ({"criterion": hj.criteria.AbsoluteError()}, "criterion AbsoluteError: it takes SquaredError"),
        ({"edge": "left"}, "edge='left': choose one of 'inside'"),
        ({"normalisation": "median"}, "normalisation='median'"),
        ({"problem": TWO, "folds": np.stack([I > 15, I <= 15]).astype(float)}, "fold 0 trains on no row of group 0"),
        ({"init": {"loss": {"eps": -0.1}}}, "must not be negative"),
        ({"init": {"loss": {"C": 0.0}}}, "must be positive"),
        ({"bounds": {"loss.C": (2.0, 1.0)}}, "lower bound must lie below"),
        ({"X": np.where(I[:, None] == 3, np.nan, R30)}, "X holds 2 NaN"),
    ],
)
def test_bad_input(change, message):
    given = {"problem": ONE, "X": R30, "y": TARGETS, "folds": SINGLE} | change
    with pytest.raises(ValueError, match=message):
        impgrad(**given)


FIVE = {"loss.C": (0.5e-4, 0.5e3), "loss.eps": (0.0, 1.0)}
FINE = {"loss.C": 0.5 * 10.0 ** np.arange(-4, 4), "loss.eps": np.linspace(0.0, 1.0, 6)}


@pytest.mark.filterwarnings("ignore:the optimum sits on the bounds")
def test_synthetic_rows_against_the_fine_grid():
    """Items 12 and 14: from one start no worse than 48 points of a grid, with the published stop almost so."""
    for seed in range(5):
        task = synthetic(500, seed)
        given = {"problem": ONE, "X": task.X, "y": task.y, "folds": task.folds}
        grid = hj.methods.grid(**given, values=FINE, batch=48, progress=False)
        assert grid.n_evaluations == 48
        assert impgrad(**given, bounds=FIVE, tol=1e-7).value <= grid.value + 1e-4
        assert impgrad(**given, bounds=FIVE).value <= grid.value + 2e-3


@pytest.mark.filterwarnings("ignore:the optimum sits on the bounds", "ignore:inactive group")
def test_synthetic_groups_are_told_apart():
    """Item 13: with a pair a group the noisy rows count less, and the error falls by a fifth and more."""

    def fit(n, seed, loss):
        task = synthetic(n, seed)
        result = impgrad(hj.Problem(loss(task.group), LINEAR, False), task.X, task.y, task.folds, bounds=FIVE)
        return result, np.mean((np.asarray(result.decision(task.X_test)) - task.y_test) ** 2)

    together = [fit(500, seed, lambda group: TUBE)[1] for seed in range(5)]
    apart = [fit(500, seed, lambda group: hj.losses.Grouped(TUBE, group))[1] for seed in range(5)]
    assert np.mean(apart) <= 0.05 and np.mean(apart) <= 0.8 * np.mean(together)
    for seed in range(5):
        C = fit(2000, seed, lambda group: hj.losses.Grouped(TUBE, group))[0].details["C"]
        assert C[0] > C[3] > C[4]
