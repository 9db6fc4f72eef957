"""Klatzer & Pock: reference values through the method, FISTA against Newton, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax.methods import klatzer_pock
from hyperjax.methods._fista import FISTA
from tests.gradients.r30 import LABELS, R30, TRAIN

pytestmark = pytest.mark.no_extras

HALF = hj.Folds(jnp.asarray(np.arange(30)[None, :] < 20, float), jnp.asarray(np.arange(30)[None, :] >= 20, float))
SMOOTH = hj.losses.SmoothHinge(mu=20.0)
RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3)) * np.array([1.0, 1.0, 0.0])
Y = np.where(X[:, 0] + 0.7 * np.sin(3.0 * X[:, 1]) + 0.4 * RNG.normal(size=60) > 0, 1.0, -1.0)


def learnt(kernel, X=R30, y=LABELS, folds=HALF, loss=SMOOTH, bias=False, **settings):
    return klatzer_pock(hj.Problem(loss, kernel, bias), X, y, folds, progress=False, **settings)


def test_the_first_trial_has_the_reference_value_and_gradient():
    """Item 3: c = 0.5, gamma = 1.5, smoothed hinge; the slopes in the logarithms of C = 1/c and gamma."""
    start = {"loss": {"C": 2.0}, "kernel": {"gamma": 1.5}}
    result = learnt(hj.kernels.RBF(), criterion=hj.criteria.SmoothHingeLoss(mu=20.0), init=start, inner_tol=1e-10)
    first = result.history[0]
    assert first["value"] == pytest.approx(1.041011731083, abs=1e-8)
    expected = np.hypot(0.5 * 0.0911955222, 1.5 * 0.1750098366)
    assert first["gradient_norm"] == pytest.approx(expected, abs=1e-7)
    assert result.value < first["value"] and result.converged
    assert result.details["trials"] == result.n_evaluations and result.details["c"] == pytest.approx(
        1.0 / float(result.hp["loss"]["C"])
    )


def test_weights_of_kernels_sum_to_one_and_c_takes_their_scale():
    """Item 4: V at c = 0.5, beta = (0.7, 0.4) is that at c = 0.5 / 1.1 and beta / 1.1, whose redundancy is gone."""
    kernel = hj.kernels.Weighted([hj.kernels.RBF(columns=(0,)), hj.kernels.RBF(columns=(1,))])
    start = {"loss": {"C": 2.0}, "kernel": {"beta": [0.7, 0.4], "kernels": [{"gamma": 1.5}, {"gamma": 0.8}]}}
    result = learnt(kernel, criterion=hj.criteria.SquaredError(), init=start, max_evaluations=8, inner_tol=1e-10)
    assert 0.5 * result.history[0]["value"] == pytest.approx(0.968914100207, abs=1e-8)
    np.testing.assert_allclose(result.history[0]["hp"]["kernel"]["beta"], np.array([0.7, 0.4]) / 1.1)
    slopes = 2.0 * np.array([0.5 * 0.4988770876, 1.5 * 0.069357968883, 0.8 * 0.077539230575])
    beta = np.array([0.7, 0.4]) * 2.0 * np.array([0.281265659970, 0.131381454543])
    shares = beta - np.array([0.7, 0.4]) / 1.1 * beta.sum()
    assert result.history[0]["gradient_norm"] == pytest.approx(np.linalg.norm([*slopes, *shares]), abs=1e-7)
    assert result.value < result.history[0]["value"]
    assert type(result.problem.kernel) is hj.kernels.Weighted and type(result.solution.problem.kernel) is (
        hj.kernels.Weighted
    )
    assert float(jnp.sum(result.hp["kernel"]["beta"])) == pytest.approx(1.0)


@pytest.mark.parametrize("bias", [True, "regularised"])
def test_fista_and_newton_agree(bias):
    """Item 8, mu = 10."""
    problem = hj.Problem(hj.losses.SmoothHinge(mu=10.0), hj.kernels.Linear(), bias)
    hp, weights = problem.init(R30[TRAIN], LABELS[TRAIN]), np.ones((2, 20))
    weights[1, :5] = 0.0
    ours = hj.solve(problem, hp, R30[TRAIN], LABELS[TRAIN], weights, solver=FISTA(max_steps=5000, finish=False))
    newton = hj.solve(problem, hp, R30[TRAIN], LABELS[TRAIN], weights, solver=hj.solvers.Newton())
    assert np.all(np.asarray(ours.code) == hj.Code.OK)
    np.testing.assert_allclose(ours.z @ R30[TRAIN], newton.z @ R30[TRAIN], atol=1e-6)
    np.testing.assert_allclose(ours.b, newton.b, atol=1e-6)


def test_a_bias_nothing_holds_is_set_by_bisection():
    """A tiny cost and a sharp hinge: all sigmoids saturate, and only bisection finds where the classes balance."""
    problem = hj.Problem(hj.losses.SmoothHinge(C=1e-7, mu=50.0), hj.kernels.RBF())
    y = np.where(np.arange(20) < 8, 1.0, -1.0)
    solution = hj.solve(problem, problem.init(R30[:20], y), R30[:20], y, solver=FISTA(finish=False))
    assert int(solution.code) == hj.Code.OK
    # 12 sigma(50 (1 + b)) = 8 sigma(50 (1 - b)): the larger class saturates at 1, so sigma = 8/12 for it
    assert float(solution.b) == pytest.approx(-1.0 + np.log(2.0) / 50.0, abs=1e-6)
    np.testing.assert_allclose(jnp.sum(solution.z), 0.0, atol=1e-14)


def test_an_unfinished_fista_says_so():
    problem = hj.Problem(SMOOTH, hj.kernels.RBF(), False)
    hp = problem.init(R30[:20], LABELS[:20])
    short = hj.solve(problem, hp, R30[:20], LABELS[:20], solver=FISTA(max_steps=3, finish=False))
    assert int(short.code) == hj.Code.MAX_STEPS
    finished = hj.solve(problem, hp, R30[:20], LABELS[:20], solver=FISTA(max_steps=3))
    assert int(finished.code) == hj.Code.OK and float(finished.kkt) <= 1e-8


def test_one_width_a_feature_starts_from_one_for_all():
    """Also item 13: the width of a constant feature has no gradient and stays where the single width left it."""
    result = learnt(hj.kernels.ARD(), X, Y, 3, soften=(5.0,), max_evaluations=12)
    soft, single, full = result.details["stages"]
    assert full["value"] <= single["value"] and soft["evaluations"] > 1
    records = list(result.history)
    assert [float(r["hp"]["loss"]["mu"]) for r in records][:: len(records) - 1] == [5.0, 20.0]
    shared = [r for r in records if r["stage"] == "isotropic"][-1]["hp"]["kernel"]["gamma"]
    assert np.ptp(shared) < 1e-12 * shared[0] and np.ptp(result.hp["kernel"]["gamma"]) > 0.1
    assert float(result.hp["kernel"]["gamma"][2]) == pytest.approx(shared[2], rel=1e-9)


def test_classes_in_one_batch():
    """(k, n) labels: the value is the mean of what each class has alone."""
    three = np.array([[1.0], [0.0], [-1.0]]) == np.sign(np.round(X[:, 0]))
    rows = np.where(three, 1.0, -1.0)
    folds = hj.folds.stratified(np.argmax(rows, axis=0), 3, seed=1)
    start = {"loss": {"C": 1.0}, "kernel": {"gamma": 0.5}}
    settings = {"folds": folds, "max_evaluations": 1, "init": start}
    batch = learnt(hj.kernels.RBF(), X, rows, **settings)
    alone = [learnt(hj.kernels.RBF(), X, row, **settings).history[0]["value"] for row in rows]
    assert batch.history[0]["value"] == pytest.approx(np.mean(alone), rel=1e-8)
    assert batch.decision(X).shape == (3, 60)


def test_far_out_it_ends_and_stays_finite():
    """Item 15: gamma = 1e6 is the zero classifier; separable data at c = 1e-8 end and warn."""
    start = {"loss": {"C": 1.0}, "kernel": {"gamma": 1e6}}
    wide = learnt(hj.kernels.RBF(), init=start, bounds={"kernel.gamma": (1e-3, 1e9)})
    assert wide.value == pytest.approx(0.5, abs=1e-12) and wide.reason == "gradient" and wide.n_evaluations == 1
    y = np.where(R30[:, 0] > 0, 1.0, -1.0)
    with pytest.warns(RuntimeWarning, match="bounds of loss.C"):
        separable = learnt(
            hj.kernels.RBF(), y=y, criterion=hj.criteria.SmoothHingeLoss(), init={"loss": {"C": 1e8}},
            bounds={"loss.C": (1e8, 2e8)}, hold="kernel.gamma", max_evaluations=30,
        )  # fmt: skip
    assert np.isfinite(separable.value) and separable.n_evaluations <= 31


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": hj.losses.Hinge()}, "loss Hinge: it takes SmoothHinge"),
        ({"kernel": hj.kernels.Laplacian()}, "kernel Laplacian: it takes RBF, Linear, ARD, Weighted, ExpChi2"),
        ({"criterion": hj.criteria.SmoothError()}, "criterion SmoothError: it takes ZeroOne"),
        ({"init": {"loss": {"C": 0.0}}}, "must be positive"),
        ({"init": {"kernel": {"gamma": -1.0}}}, "must be positive"),
        ({"kernel": hj.kernels.ExpChi2()}, "not negative"),
        ({"y": np.where(LABELS > 0, 2.0, 1.0)}, "needs -1 and"),
        ({"X": np.where(R30 == R30[3, 1], np.nan, R30)}, "NaN"),
        ({"folds": hj.Folds(HALF.train, 0.0 * HALF.test)}, "test no row"),
        ({"soften": (0.0,)}, "soften"),
        ({"kernel": hj.kernels.Weighted([hj.kernels.RBF()]), "init": {"kernel": {"beta": [0.0]}}}, "positive weight"),
        ({"solver": hj.solvers.Decomposition()}, "does not fit"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        learnt(change.pop("kernel", hj.kernels.RBF()), **change)
