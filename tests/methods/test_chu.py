"""The sweep of Chu et al. against the reference values of papers' R30, and its own identities."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import hyperjax as hj
from hyperjax.methods.chu import chu
from tests.gradients.r30 import LABELS, R30

pytestmark = pytest.mark.no_extras

LINEAR = hj.kernels.Linear()
LOGISTIC, SQUARED = (hj.Problem(loss, LINEAR, False) for loss in (hj.losses.Logistic(), hj.losses.SquaredHinge()))
BY_FIVE = hj.folds.predefined(np.arange(30) % 5)
HALF = hj.folds.predefined(np.where(np.arange(30) < 20, -1, 0))
TIGHT = 1e-11

GOLDEN = {
    "logistic": (
        LOGISTIC,
        {
            0.01: ((0.0501277568, -0.0034459542), 0.1373344679, 0.4936166),
            1.0: ((1.5956938053, -0.0159349504), 9.9581885780, 0.2287691),
            100.0: ((2.9322245353, 0.1025776484), 777.5569567, 0.005619979),
            1e4: ((2.9707492929, 0.1079453241), 77323.98062, 5.766403e-5),
        },
    ),
    "squared hinge": (
        SQUARED,
        {
            0.01: ((0.1706112573, -0.0096147521), 0.1823855189, 0.4531568),
            1.0: ((0.9601885114, 0.0134368914), 10.1359079300, 0.04448095),
            100.0: ((1.0099293417, 0.0210532849), 965.6543239, 4.896549e-4),
            1e4: ((1.0104945247, 0.0211751721), 96514.89419, 4.902052e-6),
        },
    ),
}


def sweep(problem, X=R30, y=LABELS, folds=BY_FIVE, **options):
    return chu(problem, X, y, folds, **{"progress": False, "compilation": "quick", **options})


def correct(result, n=30):
    return np.round(n * (1.0 - np.array(result.history.to_dict()["value"]))).astype(int).tolist()


@pytest.mark.parametrize("name", GOLDEN)
def test_solutions_objectives_and_ratios(name):
    problem, values = GOLDEN[name]
    for C, (w, E, ratio) in values.items():
        found = sweep(problem, folds=HALF, C_min=C / 2, C_max=C, tol=TIGHT, stop=None).details
        np.testing.assert_allclose(found["w"][-1, 0], w, rtol=1e-7)
        np.testing.assert_allclose(found["primal"][-1, 0], E, rtol=1e-9)
        np.testing.assert_allclose(found["ratio"][-1, 0], ratio, rtol=2e-6)
        # |grad E(w_{C/2}; C)| = |w_{C/2}|, and |dL(0)| = |Z'1| times the slope of the loss at 0
        at_zero = np.linalg.norm((LABELS[:20, None] * R30[:20]).sum(axis=0)) * (0.5 if problem is LOGISTIC else 2.0)
        np.testing.assert_allclose(found["ratio"][-1], found["norm"][0] / (C * at_zero), rtol=1e-7)
        # strong duality, and the start of the dual in terms of that of the primal: table 2's hidden identity
        np.testing.assert_allclose(found["primal"], found["dual"], rtol=1e-9)
        doubled = dual_at_twice(problem, C, found["w"][0, 0])
        away = found["start_primal"][-1, 0] - found["primal"][-1, 0] - 0.5 * found["norm"][0, 0] ** 2
        np.testing.assert_allclose(doubled - found["dual"][-1, 0], away, rtol=1e-6, atol=1e-8 * E)


def dual_at_twice(problem, C, w):
    """D(2 alpha; C) for the alpha of the weights w at C / 2, written out."""
    margins = LABELS[:20] * (R30[:20] @ w)
    if problem is LOGISTIC:
        share = 1.0 / (1.0 + np.exp(margins))
        alpha, gain = C * share, -C * np.sum(share * np.log(share) + (1.0 - share) * np.log(1.0 - share))
    else:
        alpha = 2.0 * C * np.maximum(1.0 - margins, 0.0)
        gain = np.sum(alpha - alpha**2 / (4.0 * C))
    v = (LABELS[:20] * alpha) @ R30[:20]
    return gain - 0.5 * v @ v


def test_limits_of_the_path():
    found = sweep(LOGISTIC, folds=HALF, C_min=0.5e-8, C_max=1e-8, tol=TIGHT, stop=None).details
    assert abs(found["ratio"][-1, 0] - 0.5) <= 1e-6
    for problem, first in (
        (SQUARED, (0.0889402, 0.9586962, 0.6468457, 0.1778842)),
        (LOGISTIC, (0.0589489, 0.1779511, 0.1246017, 0.0618998)),
    ):
        w = sweep(problem, folds=HALF, C_min=1e6, C_max=1e6, tol=TIGHT, stop=None).details["w"][0, 0]
        margins = LABELS[:4] * (R30[:4] @ w)
        share = 1.0 / (1.0 + np.exp(margins)) if problem is LOGISTIC else 2.0 * np.maximum(1.0 - margins, 0.0)
        np.testing.assert_allclose(share, first, rtol=2e-6)


def test_smallest_C_underfits_everywhere():
    for problem, exponent in ((LOGISTIC, -6), (SQUARED, -7)):
        found = sweep(problem, C_max=2.0**exponent, tol=TIGHT)
        assert found.details["C"].tolist() == [2.0**exponent]
        assert (LABELS[None, :] * (found.details["w"][0] @ R30.T)).max() < 1.0


@pytest.mark.parametrize(
    "problem, counts, last",
    [(LOGISTIC, [22] * 6 + [21] * 5 + [22] * 5, 9), (SQUARED, [22] * 6 + [21] * 8, 6)],
    ids=["logistic", "squared hinge"],
)
def test_whole_sweep_and_its_end(problem, counts, last):
    result = sweep(problem, tol=TIGHT, stop_tol=1e-2)
    assert (correct(result), result.reason) == (counts, "finished")
    assert result.details["last_C"] == 2.0**last
    # 22 of 30 at many C: the smallest of them wins
    np.testing.assert_allclose(result.hp["loss"]["C"], result.details["C"][0], rtol=1e-12)
    assert result.value == pytest.approx(8 / 30)
    np.testing.assert_array_equal(result.history[0]["codes"], 0)

    cold = sweep(problem, tol=TIGHT, stop_tol=1e-2, warm=False)
    assert correct(cold) == counts
    used = [sweep(problem, warm=warm).details["iterations"].sum() for warm in (True, False)]
    assert used[0] <= 0.6 * used[1]

    # the unit of the features moves both ends of the sweep, and nothing else
    scaled = sweep(problem, X=4.0 * R30, tol=TIGHT, stop_tol=1e-2)
    assert correct(scaled) == counts
    np.testing.assert_array_equal(scaled.details["C"] * 16.0, result.details["C"])


def test_a_start_that_meets_the_rule_is_returned_as_it_is():
    result = sweep(LOGISTIC, tol=0.3, stop="unchanged", C_max=2.0**60)
    idle = result.details["iterations"] == 0
    assert idle[-5:].all() and not idle[-6].all() and result.reason == "finished"
    w = result.details["w"]
    for k in range(1, len(w)):
        np.testing.assert_array_equal(w[k][idle[k]], w[k - 1][idle[k]])
    np.testing.assert_array_equal(result.details["unchanged"], idle)


@pytest.mark.parametrize("problem", [LOGISTIC, SQUARED], ids=["logistic", "squared hinge"])
def test_dual_coordinate_descent_finds_the_same_models(problem):
    options = {"C_min": 0.5, "C_max": 2.0, "stop": None}
    primal = sweep(problem, tol=TIGHT, **options).details
    dual = sweep(problem, inner="dual", tol=1e-7, **options).details
    np.testing.assert_allclose(dual["w"], primal["w"], atol=1e-5)
    np.testing.assert_allclose(dual["dual"], primal["dual"], rtol=1e-8)
    # alpha doubled: w doubles with it, and the dual starts where the identity says
    np.testing.assert_allclose(dual["start_norm"][1:], 2.0 * dual["norm"][:-1], rtol=1e-9)


def test_weights_bias_and_stored_kernels():
    options = {"C_min": 0.25, "C_max": 0.5, "stop": None, "tol": TIGHT}
    plain = sweep(SQUARED, **options)
    stored = sweep(hj.Problem(hj.losses.SquaredHinge(), hj.kernels.Precomputed(), False), X=R30 @ R30.T, **options)
    np.testing.assert_allclose(stored.details["norm"], plain.details["norm"], rtol=1e-6)
    assert correct(stored) == correct(plain)

    column = np.c_[R30, np.ones(30)]
    biased = sweep(hj.Problem(hj.losses.SquaredHinge(), LINEAR, "regularised"), **options)
    np.testing.assert_allclose(biased.details["w"], sweep(SQUARED, X=column, **options).details["w"], rtol=1e-9)

    twice = np.where(np.arange(30) % 7 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(30), twice.astype(int))
    weighted = sweep(SQUARED, weights=twice, **options).details["w"]
    by_hand = sweep(SQUARED, R30[repeated], LABELS[repeated], hj.folds.predefined(repeated % 5), **options).details["w"]
    np.testing.assert_allclose(weighted, by_hand, rtol=1e-8)


def test_one_shared_vector_leaks(rng):
    n, d = 80, 600
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.05)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    signal = X @ rng.normal(size=d)
    y = np.where(signal + signal.std() * rng.normal(size=n) > 0, 1.0, -1.0)
    folds = hj.folds.stratified(y, 5, seed=0)
    options = {"C_max": 2.0**12, "C_min": 0.25, "stop": None, "ratio": 4.0}
    rates = {}
    for tol in (1e-2, 1e-9):
        apart = sweep(LOGISTIC, X, y, folds, tol=tol, **options)
        with pytest.warns(RuntimeWarning, match="too good"):
            together = sweep(LOGISTIC, X, y, folds, tol=tol, shared=True, **options)
        rates[tol] = apart.history[-1]["value"], together.history[-1]["value"]
    assert rates[1e-2][0] - rates[1e-2][1] > 0.05
    assert rates[1e-9][0] == rates[1e-9][1]


def test_separable_rows_still_end_the_sweep(rng):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.5 * y
    result = sweep(LOGISTIC, X, y, 5, C_max=2.0**60)
    assert result.reason == "finished" and np.isfinite(result.details["norm"]).all()
    # w grows to the end: the rule does not say that it has converged
    assert (np.diff(result.details["norm"], axis=0)[-4:] > 0).any()


def test_means_that_cancel_do_not_end_the_sweep():
    X = np.r_[R30[:10], -R30[:10]]
    y = np.r_[np.tile([1.0, -1.0], 5), np.tile([1.0, -1.0], 5)]
    result = sweep(LOGISTIC, X, y, hj.folds.predefined(np.arange(20) % 10 // 2), C_max=1.0)
    assert result.reason == "max_steps"
    assert result.details["norm"].max() < 1e-12 and np.isfinite(result.value)


BAD = {
    "labels": (dict(y=LABELS + 1.0), "labels"),
    "infinite": (dict(X=np.where(R30 == R30[3, 1], np.inf, R30)), "X holds 1 NaN or infinite"),
    "zeros": (dict(X=0.0 * R30), "nothing but zeros"),
    "one class": (dict(folds=hj.folds.predefined(np.where(LABELS > 0, 0, 1))), "fold 0 trains on one class"),
    "ratio": (dict(ratio=1.0), r"ratio=1.0: give one number in \(1, inf\)"),
    "tol": (dict(tol=1.0), r"tol=1.0: give one number in \(0, 1\)"),
    "tol 0": (dict(tol=0), r"tol=0: give one number in \(0, 1\)"),
    "stop_tol": (dict(stop_tol=2.0), "stop_tol=2.0"),
    "ends": (dict(C_min=4.0, C_max=2.0), "C_max=2 lies below"),
    "C_min": (dict(C_min=-1.0), "C_min=-1.0"),
    "one fold": (dict(folds=1), "at least 2 folds"),
    "many folds": (dict(folds=31), "k = 31 folds"),
    "inner": (dict(inner="smo"), "inner='smo'"),
    "stop": (dict(stop="never"), "stop='never'"),
    "iterations": (dict(max_iterations=0), "max_iterations=0"),
    "shared": (dict(shared=True, inner="dual"), "shared=True"),
    "loss": (dict(problem=hj.Problem(hj.losses.Hinge(), LINEAR, False)), "loss Hinge: it takes Logistic, SquaredHinge"),
    "kernel": (dict(problem=hj.Problem(hj.losses.Logistic(), hj.kernels.RBF(), False)), "kernel RBF: it takes Linear"),
    "bias": (dict(problem=hj.Problem(hj.losses.Logistic(), LINEAR, True)), "bias=True: it takes False, 'regularised'"),
    "classes": (dict(y=np.stack([LABELS, -LABELS])), "2 rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    given, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        sweep(**{"problem": LOGISTIC, **given})


def test_stops_on_request():
    seen = []
    result = sweep(LOGISTIC, callback=lambda record: seen.append(record) or len(seen) == 3)
    assert (result.reason, len(result.history), result.converged) == ("callback", 3, False)
    again = sweep(LOGISTIC, callback=lambda record: record["step"] == 2)
    np.testing.assert_array_equal(result.details["w"], again.details["w"])
    assert jnp.all(jnp.isfinite(result.decision(R30)))


def test_sparse_rows_give_the_sweep_of_the_same_rows_dense():
    rng = np.random.default_rng(3)
    rows = np.where(rng.random((60, 40)) < 0.15, rng.normal(size=(60, 40)), 0.0)
    y = np.where(rows[:, 0] + rows[:, 1] + 0.1 * rng.normal(size=60) > 0, 1.0, -1.0)
    problem = hj.Problem(hj.losses.Logistic(), hj.kernels.Linear(), False)
    dense, sparse = (
        hj.methods.chu(problem, X, y, 3, C_max=4.0, tol=1e-6, stop=None, progress=False)
        for X in (rows, scipy.sparse.csr_matrix(rows))
    )
    np.testing.assert_allclose(sparse.history.to_dict()["value"], dense.history.to_dict()["value"], atol=1e-12)
    assert np.max(np.abs(dense.details["w"])) > 0.1
    np.testing.assert_allclose(sparse.details["w"], dense.details["w"], atol=1e-5)
    with pytest.raises(ValueError, match="toarray"):
        hj.methods.chu(problem, scipy.sparse.csr_matrix(rows), y, 3, inner="dual", progress=False)
