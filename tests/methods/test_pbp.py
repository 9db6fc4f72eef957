"""PBP: published values of R30, its subgradients on kinks, its descent, its penalty, and what it refuses."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.methods import impgrad, pbp
from hyperjax.methods._proximity import TAU, Box, Rules, descend, edges, locate, subgradient
from hyperjax.methods._tubes import TubeSearch, adjoint, slopes
from hyperjax.methods.pbp import TAKES
from tests.gradients.r30 import LABELS, R30, TARGETS, I
from tests.methods.moore import HALVES, LINEAR, ONE, SINGLE, THREE, TUBE, TWO, penalised

pytestmark = pytest.mark.no_extras
OPEN = Box(np.full(4, -1e9), np.full(4, 1e9))
TIGHT = {"hold": "loss.eps", "feasibility": np.inf, "tol": 1e-20, "progress": False}


@pytest.fixture(scope="module")
def tubes():
    """Three folds, two groups; theta is (C_1, C_2, eps_1, eps_2) as the paper counts them."""
    search = TubeSearch(
        "pbp", TAKES, TWO, R30, TARGETS, THREE, None, None, None, None, None, None, "sum", False, progress=False
    )
    return search.tubes()


def at_kinks(tubes, rng, flat=False):
    """Random weights and hyperparameters with three rows exactly on the edge of their tubes."""
    eps = np.zeros(2) if flat else rng.uniform(0.1, 0.4, 2)
    theta = np.append(rng.uniform(0.3, 3.0, 2), eps)
    W = rng.normal(size=(3, 2))
    y, taken = TARGETS.copy(), []
    for t in range(3):
        row = int(rng.choice(np.flatnonzero((THREE[t] > 0) & ~np.isin(np.arange(30), taken))))
        taken.append(row)
        y[row] = R30[row] @ W[t] + rng.choice([-1.0, 1.0]) * eps[HALVES[row]]
    moved = tubes.replace(y=jnp.asarray(y))
    return moved, locate(moved, jnp.asarray(W), theta), y


def test_gradient_against_differences(tubes, rng):
    """Item 6: the gradient of the penalised objective, written down independently, away from kinks."""
    nu, tested = 3.0, 0
    while tested < 5:
        W, theta = rng.normal(size=(3, 2)), np.append(rng.uniform(0.3, 3.0, 2), rng.uniform(0.1, 0.5, 2))
        state = locate(tubes, jnp.asarray(W), theta)
        if edges(tubes, state, 1e-4):
            continue
        tested += 1
        x, h = np.append(W, theta), 1e-6

        def phi(x):
            return penalised(x[:6].reshape(3, 2), x[6:8], x[8:], HALVES, THREE, nu)[0]

        np.testing.assert_allclose(state.phi(nu), phi(x), rtol=1e-13)
        wanted = [(phi(x + h * e) - phi(x - h * e)) / (2.0 * h) for e in np.eye(10)]
        found = subgradient(tubes, state, nu, OPEN, 0.0)
        np.testing.assert_allclose(np.append(found.W, found.theta), wanted, rtol=1e-7, atol=1e-7)


def test_ridge_penalties():
    """Item 7: C falls short of the implicit optimum by a tenth with every tenfold penalty; 2 nu G is the adjoint."""
    table = {1.0: 0.164343, 10.0: 0.168878, 100.0: 0.1694179, 1000.0: 0.169473}
    short = []
    for nu, C in table.items():
        result = pbp(ONE, R30, TARGETS, SINGLE, penalty=nu, shortest=1e-11, **TIGHT)
        details = result.details
        np.testing.assert_allclose(details["C"], [C], atol=6e-7)
        short.append(0.1694790047 - details["C"][0])
        if nu == 100.0:
            np.testing.assert_allclose(np.linalg.norm(details["G"]), 6.056e-4, rtol=1e-3)
            search = TubeSearch(
                "pbp", TAKES, ONE, R30, TARGETS, SINGLE, None, None, None, None, None, None, "sum", False,
                progress=False,
            )  # fmt: skip
            W, one = jnp.asarray(details["W"]), search.tubes()
            a, e = slopes(np.asarray(W @ one.phi.T) - TARGETS[None, :], np.zeros(30))
            lam = adjoint(one, W, jnp.asarray([details["C"][0], 0.0]), jnp.asarray(a), jnp.asarray(e))[1]
            np.testing.assert_allclose(2.0 * nu * details["G"], lam, atol=1e-6)
    ratios = np.array(short[1:-1]) / np.array(short[2:])
    assert np.all((ratios > 9.0) & (ratios < 11.0)), ratios


@pytest.mark.parametrize("tau", [1e-3, 0.1, 10.0])
def test_three_folds_from_any_proximity(tau):
    """Items 8 and 11: the corrected rule reaches the optimum of nu = 1; every step decreases the objective."""
    result = pbp(TWO, R30, TARGETS, THREE, normalisation="mean", proximity=tau, **TIGHT)
    np.testing.assert_allclose(result.details["C"], (62.0, 63.3), atol=0.05)
    path = [step["phi"] for step in result.details["track"]]
    assert all(after < before for before, after in itertools.pairwise(path))
    assert max(step["tau"] for step in result.details["track"]) <= TAU[1]


@pytest.mark.parametrize("tau", [1e-3, 0.1, 10.0])
def test_printed_rule_stalls(tau):
    """Item 8: as printed tau grows with every step that is taken, and the descent ends far from an optimum."""
    result = pbp(TWO, R30, TARGETS, THREE, normalisation="mean", proximity=tau, rule="printed", **TIGHT)
    taus = [step["tau"] for step in result.details["track"]]
    assert taus[-1] > 50.0 and np.max(result.details["C"]) < 10.0
    assert result.value > 0.12


def test_edges_have_the_sets_of_the_page(tubes):
    """Item 9 and 4.5: one corner with the sign of the residual, both where the tube has no width."""
    W, theta = np.zeros((3, 2)), np.array([1.0, 1.0, 0.3, 0.0])
    y = np.full(30, 5.0)
    y[[0, 1, 20]] = -0.3, 0.3, 0.0
    state = locate(tubes.replace(y=jnp.asarray(y)), jnp.asarray(W), theta)
    found = {(t, j): corners for t, j, corners in edges(tubes, state, 1e-9)}
    trained = [(t, j) for t in range(3) for j in (0, 1, 20) if THREE[t, j]]
    wanted = {0: (1.0,), 1: (-1.0,), 20: (1.0, -1.0)}
    assert found == {(t, j): wanted[j] for t, j in trained}


def test_bounds_hold_what_pushes_against_them(tubes):
    """Item 9: a coordinate on its lower bound counts only if the descent leads inside."""
    state = locate(tubes, jnp.zeros((3, 2)), np.array([1.0, 1.0, 0.2, 0.2]))
    free = subgradient(tubes, state, 1.0, OPEN, 0.0).theta
    on_low = subgradient(tubes, state, 1.0, Box(state.theta, OPEN.high), 0.0).theta
    on_high = subgradient(tubes, state, 1.0, Box(OPEN.low, state.theta), 0.0).theta
    np.testing.assert_allclose(on_low, np.minimum(free, 0.0), atol=1e-15)
    np.testing.assert_allclose(on_high, np.maximum(free, 0.0), atol=1e-15)
    assert np.any(free > 0) and np.any(free < 0)


@pytest.mark.parametrize("flat", [False, True])
def test_steepest_descent_at_kinks(tubes, rng, flat):
    """Item 10: along the element of least norm the objective falls by 0.9 of its norm, at points full of kinks."""
    low = np.array([1e-3, 1e-3, 0.0, 0.0])
    box = Box(low, np.full(4, 1e3))
    for _ in range(20):
        moved, state, y = at_kinks(tubes, rng, flat)
        found = subgradient(moved, state, 2.0, box, 1e-9)
        step = -1e-6 / found.norm * np.append(found.W.ravel(), found.theta)
        x = np.append(np.asarray(state.W).ravel(), state.theta)

        def phi(x, y=y):
            return penalised(x[:6].reshape(3, 2), x[6:8], x[8:], HALVES, THREE, 2.0, y)[0]

        assert np.all((x + step)[6:] >= low - 1e-15)
        assert (phi(x + step) - phi(x)) / 1e-6 <= -0.9 * found.norm
        # the kinks mattered: a step that ignores them would have another direction
        assert len(edges(moved, state, 1e-9)) >= 3


def test_a_kinked_optimum_is_recognised(tubes):
    """Rows on a kink whose two sides pull in opposite directions: steps end there, none increases the objective."""
    moved, state, _ = at_kinks(tubes, np.random.default_rng(5))
    seen = []
    rules = Rules(1e-14, 1e-9, 0.1, 1e-7, max_steps=60)
    box = Box(np.array([1e-3, 1e-3, 0.0, 0.0]), np.array([10.0, 10.0, 0.5, 0.5]))
    end, tau, reason = descend(moved, state, 1.0, 0.1, box, rules, lambda nu, state, tau, phi: seen.append(phi))
    assert reason in ("stationary", "small step", "max_steps") and TAU[0] <= tau <= TAU[1]
    assert all(after < before for before, after in itertools.pairwise([state.phi(1.0), *seen]))
    assert np.all((end.theta >= box.low) & (end.theta <= box.high))


def test_whole_program_meets_the_implicit_optimum():
    """Penalties double until the folds are solved; the limit is what ImpGrad finds, in C and in log C."""
    wanted = impgrad(ONE, R30, TARGETS, SINGLE, hold="loss.eps", tol=1e-11)
    for logarithms in (False, True):
        result = pbp(
            ONE, R30, TARGETS, SINGLE, hold="loss.eps", feasibility=1e-5, shortest=1e-8, tol=1e-14,
            logarithms=logarithms, proximity=1e-2,
        )  # fmt: skip
        penalties = [step["penalty"] for step in result.details["track"]]
        assert result.converged and penalties[-1] >= 4096.0 and result.details["penalty"] == penalties[-1]
        assert np.linalg.norm(result.details["G"]) <= 1e-5
        np.testing.assert_allclose(result.details["C"], wanted.details["C"], rtol=1e-4)
        np.testing.assert_allclose(result.value, wanted.value, atol=1e-9)
        assert len(result.history) == 2 + round(np.log2(result.details["penalty"]))


def test_the_clock_and_the_callback_end_it():
    slow = pbp(ONE, R30, TARGETS, SINGLE, hold="loss.eps", max_seconds=1e-9)
    assert slow.reason == "max_seconds" and not slow.converged
    seen = []
    called = pbp(
        ONE, R30, TARGETS, SINGLE, hold="loss.eps", callback=lambda record: seen.append(record) or len(seen) == 2
    )
    assert called.reason == "callback" and len(seen) == 2


@pytest.mark.parametrize(
    "change, message",
    [
        ({"problem": hj.Problem(hj.losses.Hinge(), LINEAR, False), "y": LABELS}, "takes SquaredEpsilonInsensitive"),
        ({"problem": hj.Problem(TUBE, hj.kernels.RBF(), False)}, "kernel RBF: it takes Linear"),
        ({"problem": hj.Problem(TUBE, LINEAR, True)}, "bias=True: it takes False, 'regularised'"),
        ({"criterion": hj.criteria.AbsoluteError()}, "criterion AbsoluteError: it takes SquaredError"),
        ({"rule": "third"}, "rule='third'"),
        ({"penalty": 0.0}, "penalty=0.0: give one positive number"),
        ({"feasibility": -1.0}, "feasibility=-1.0"),
        ({"problem": TWO, "folds": np.stack([I > 15, I <= 15]).astype(float)}, "fold 0 trains on no row of group 0"),
    ],
)
def test_bad_input(change, message):
    given = {"problem": ONE, "X": R30, "y": TARGETS, "folds": SINGLE} | change
    with pytest.raises(ValueError, match=message):
        pbp(**given)
