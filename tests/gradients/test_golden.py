"""Reference values of the dual methods: Keerthi, Sindhwani & Chapelle; Jiang & Siddiqui."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.gradients.r30 import (
    ARD,
    G5,
    HINGE,
    LABELS,
    LINEAR,
    POSITIVE,
    R30,
    RBF,
    SQUARED,
    SQUARED_HINGE,
    TARGETS,
    TOL,
    TRAIN,
    VALID,
    WEIGHTED,
    Y,
    arrays,
    cost,
    fit,
    outer,
    quick,
    weights_of,
)


def test_the_reference_problem():
    np.testing.assert_allclose(R30[0], (0.96355819, -0.85688875), atol=1e-8)
    np.testing.assert_allclose(R30[29], (0.96379539, 0.78497105), atol=1e-8)
    np.testing.assert_allclose(TARGETS[[0, 29]], (1.65849915, 0.48840217), atol=1e-8)
    assert "".join("+" if v > 0 else "-" for v in LABELS) == "++--++----+---+++-+++++-+--+-+"


# Keerthi, Sindhwani & Chapelle


def smoothed_rates(o, hp):
    """(tp, fp) with p = sigmoid(s1 y (o - s0)), s1 = 10 / std(o) and s0 the threshold of hp, if any."""
    s0 = hp.get("criterion", {}).get("s0", 0.0)
    s1 = 10.0 / jnp.sqrt(jnp.mean((o - jnp.mean(o)) ** 2))
    p = jax.nn.sigmoid(s1 * Y * (o - s0))
    return jnp.sum(jnp.where(POSITIVE, p, 0.0)), jnp.sum(jnp.where(POSITIVE, 0.0, 1.0 - p))


def measures(o, hp, kappa=0.1):
    """The smoothed error, weighted error and -F."""
    tp, fp = smoothed_rates(o, hp)
    n_pos, n_neg = float(POSITIVE.sum()), float((~POSITIVE).sum())
    er, wer = (n_pos - tp + fp) / 10.0, (n_pos - tp + kappa * fp) / (n_pos + kappa * n_neg)
    return jnp.stack([er, wer, -2.0 * tp / (n_pos + tp + fp)])


def error(o, hp):
    return measures(o, hp)[0]


def bounded_sum(o, hp):
    return jnp.sum(jnp.tanh(o))


def test_keerthi_weighted_hinge():
    """Item 1: er, wer and -F, direct (s0 = 0) and with the threshold as a hyperparameter (s0 = 0.1)."""
    table = {
        0.0: [
            (0.4570111448, 0.0512536245, -0.0971247045, 0.1165966705, -0.1647454375, 0.0599797488, -0.1368809133),
            (0.3524907627, 0.0050558611, -0.0073599050, 0.0153805560, -0.0229037152, 0.0085614564, -0.0224932797),
            (-0.6364990931, 0.0247337609, -0.0459568205, 0.0578617746, -0.0822376959, 0.0300323223, -0.0697524274),
        ],
        0.1: [
            (0.4297015491, 0.0400052787, -0.0742315209, 0.1088685260, -0.1272233284, 0.0484327319, -0.1147608557),
            (0.3488015121, 0.0008576647, -0.0013612300, 0.0140264998, -0.0157273759, 0.0045654199, -0.0174952612),
            (-0.6503983208, 0.0189874651, -0.0351389372, 0.0564015432, -0.0656420398, 0.0244141362, -0.0605502904),
        ],
    }
    thresholds = (-0.2360918543, -0.0297538756, -0.1220435830)
    run = fit(WEIGHTED, ARD, True)

    def value(hp):
        solution, o = run(hp)
        return measures(o, hp), (measures(o, hp), solution)

    differentiate = quick(jax.jacrev(value, has_aux=True))
    loss = {"C_pos": 1.3, "C_neg": 0.6, "m_pos": 1.2, "m_neg": 0.9}
    for s0, rows in table.items():
        hp = arrays({"loss": loss, "kernel": {"gamma": np.array([1.5, 0.6])}, "criterion": {"s0": s0}})
        jacobian, (values, solution) = differentiate(hp)
        alpha = LABELS[TRAIN] * np.asarray(solution.z)
        upper = np.where(LABELS[TRAIN] > 0, 1.3, 0.6)
        assert ((alpha == 0).sum(), ((alpha > 0) & (alpha < upper)).sum(), (alpha == upper).sum()) == (5, 6, 9)
        np.testing.assert_allclose(solution.b, 0.3541770313, atol=1e-8)
        for k, row in enumerate(rows):
            found = [values[k], *(jacobian["loss"][name][k] for name in loss), *jacobian["kernel"]["gamma"][k]]
            np.testing.assert_allclose(found, row, atol=1e-8, rtol=0)
            if s0:
                np.testing.assert_allclose(jacobian["criterion"]["s0"][k], thresholds[k], atol=1e-8)
        # scaling outputs, and shifting them with the margins, changes nothing (4.6)
        at = hp["loss"]
        scaled = sum(at[name] * jacobian["loss"][name] for name in loss) + s0 * jacobian["criterion"]["s0"]
        np.testing.assert_allclose(scaled, 0.0, atol=1e-10)
        shifted = jacobian["loss"]["m_pos"] - jacobian["loss"]["m_neg"] + jacobian["criterion"]["s0"]
        np.testing.assert_allclose(shifted, 0.0, atol=1e-10)


def test_keerthi_plain_hinge():
    """Item 2, and differences in the logarithms (item 3)."""
    run = outer(error, HINGE, RBF, True)
    rows = [
        (1.0, 1.0, (5, 5, 10), 0.0117678008, 0.5005673087, 0.0047436476, 0.0003325191),
        (5.0, 1.0, (9, 6, 5), -0.1450136639, 0.4983642809, -0.0015309242, -0.0084026033),
        (1.0, 0.2, (4, 4, 12), None, 0.4687737277, 0.0454814707, 0.3510216944),
    ]
    for C, gamma, sizes, bias, value, dC, dgamma in rows:
        (found, solution), gradient = run(arrays({"loss": {"C": C}, "kernel": {"gamma": gamma}}))
        alpha = LABELS[TRAIN] * np.asarray(solution.z)
        assert ((alpha == 0).sum(), ((alpha > 0) & (alpha < C)).sum(), (alpha == C).sum()) == sizes
        if bias is not None:
            np.testing.assert_allclose(solution.b, bias, atol=1e-9)
        np.testing.assert_allclose(found, value, atol=1e-9)
        np.testing.assert_allclose((gradient["loss"]["C"], gradient["kernel"]["gamma"]), (dC, dgamma), atol=1e-9)
        for part, name, at in (("loss", "C", C), ("kernel", "gamma", gamma)):
            hp = {"loss": {"C": C}, "kernel": {"gamma": gamma}}
            ends = [run(arrays(hp | {part: {name: at * np.exp(h)}}))[0][0] for h in (1e-5, -1e-5)]
            np.testing.assert_allclose(at * gradient[part][name], (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-9)


def test_keerthi_empty_free_set():
    """Item 11: nobody free, the bias is the middle of [-0.8165018557, 0.7726861692] and its derivative exact."""
    # with the error itself every output is proportional to C and the derivative in C is 0: it proves little
    run = outer(bounded_sum, HINGE, RBF, True)
    hp = {"loss": {"C": 0.05}, "kernel": {"gamma": 1.0}}
    (_, solution), gradient = run(arrays(hp))
    np.testing.assert_array_equal(np.asarray(solution.z), 0.05 * LABELS[TRAIN])
    np.testing.assert_allclose(solution.b, -0.0219078432, atol=1e-10)
    assert int(solution.code) == hj.Code.BIAS_INTERVAL
    for part, name, at in (("loss", "C", 0.05), ("kernel", "gamma", 1.0)):
        ends = [run(arrays(hp | {part: {name: at * (1 + h)}}))[0][0] for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(gradient[part][name], (ends[0] - ends[1]) / (2e-5 * at), rtol=1e-6)


def test_keerthi_duplicate_free_point():
    """Item 11: a copy of the first free point makes the free block singular and changes nothing."""
    (_, solution), _ = outer(error, HINGE, RBF, True)(arrays({"loss": {"C": 1.0}, "kernel": {"gamma": 1.0}}))
    alpha = LABELS[TRAIN] * np.asarray(solution.z)
    copied = int(np.flatnonzero((alpha > 0) & (alpha < 1.0))[0])
    rows = np.r_[np.arange(20), copied]
    problem = hj.Problem(HINGE, RBF, True)

    def value(hp):
        twice = hj.solve(problem, hp, jnp.asarray(R30[rows]), jnp.asarray(LABELS[rows]), tol=TOL)
        return error(twice.decision(jnp.asarray(R30[VALID])), hp)

    found, gradient = quick(jax.value_and_grad(value))(arrays({"loss": {"C": 1.0}, "kernel": {"gamma": 1.0}}))
    found = (found, gradient["loss"]["C"], gradient["kernel"]["gamma"])
    np.testing.assert_allclose(found, (0.5005673087, 0.0047436476, 0.0003325191), atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "bias", "expected"),
    [
        (SQUARED_HINGE, -0.0709669733, (0.4938362109, -0.0145099910, -0.0383237985)),
        (SQUARED, None, (0.4938897208, -0.0143119423, -0.0386167372)),
    ],
    ids=["squared_hinge", "squared"],
)
def test_keerthi_squared_losses(loss, bias, expected):
    """Item 12."""
    run = outer(error, loss, RBF, True)
    (value, solution), gradient = run(arrays({"loss": {"C": 1.0}, "kernel": {"gamma": 1.0}}))
    np.testing.assert_allclose((value, gradient["loss"]["C"], gradient["kernel"]["gamma"]), expected, atol=1e-9)
    if bias is not None:
        np.testing.assert_allclose(solution.b, bias, atol=1e-9)
        assert (np.asarray(solution.z) != 0).sum() == 18


# Jiang & Siddiqui: the validation loss is the sum of hinges


def total_hinge(o, hp):
    return jnp.sum(jnp.maximum(1.0 - Y * o, 0.0))


def test_jiang_exact_jacobian():
    """Items 1, 2 and 3: the solution on G5 at C = 0.5, no duality gap, and the column "exact"."""
    run = outer(total_hinge, HINGE, LINEAR, False, five=True)
    table = [
        (0.01, (0, 0, 20), 9.9530911638, -4.690883617),
        (0.05, (0, 0, 20), 9.7654558191, -4.690883617),
        (0.1, (0, 2, 18), 9.5485929034, 14.19735515),
        (0.2, (2, 4, 14), 9.4445346392, -0.1062710806),
        (0.5, (7, 3, 10), 9.7470868594, 0.135425861),
        (1.0, (8, 4, 8), 9.5948183556, 0.1352884421),
        (2.0, (9, 4, 7), 9.8182787391, 0.7725106166),
        (5.0, (9, 5, 6), 10.6519885691, 0.0),
        (10.0, (11, 5, 4), 12.0446941453, 0.0),
        (50.0, (11, 5, 4), 12.0446941453, 0.0),
    ]
    for C, sizes, value, exact in table:
        (found, solution), gradient = run(cost(C))
        alpha = LABELS[TRAIN] * np.asarray(solution.z)
        assert ((alpha == 0).sum(), ((alpha > 0) & (alpha < C)).sum(), (alpha == C).sum()) == sizes, C
        np.testing.assert_allclose(found, value, atol=1e-9)
        np.testing.assert_allclose(gradient["loss"]["C"], exact, atol=1e-7)
        w = weights_of(solution, G5)
        primal = 0.5 * w @ w + C * np.maximum(1.0 - LABELS[TRAIN] * (G5[TRAIN] @ w), 0.0).sum()
        np.testing.assert_allclose(primal + 0.5 * w @ w - alpha.sum(), 0.0, atol=1e-9 * primal)
        if C == 0.5:
            expected = (1.2803697986, 0.0581253296, 0.0917765825, -0.0950093207, 0.2367091467)
            np.testing.assert_allclose(w, expected, atol=1e-8)
            np.testing.assert_allclose(alpha[[2, 3, 7]], (0.0333174233, 0.1389285141, 0.4678900864), atol=1e-8)
            np.testing.assert_array_equal(1 + np.flatnonzero(alpha == C), (2, 5, 7, 10, 12, 14, 15, 16, 17, 19))


def test_jiang_two_features():
    """Item 6 and the first line of Chu's item 2: as many free points as features pin w, the derivative is 0."""
    run = outer(total_hinge, HINGE, LINEAR, False)
    for C in (0.2, 0.5, 2.0, 10.0):
        (_, solution), gradient = run(cost(C))
        np.testing.assert_allclose(gradient["loss"]["C"], 0.0, atol=1e-9)
        if C >= 2.0:
            np.testing.assert_allclose(weights_of(solution), (1.5484570332, 0.0747372141), atol=1e-9)


def test_jiang_unregularised_bias():
    """Item 7."""
    (value, solution), gradient = outer(total_hinge, HINGE, LINEAR, True)(cost(2.0))
    np.testing.assert_allclose((solution.b, value), (0.0730768547, 10.4951189134), atol=1e-9)
    np.testing.assert_allclose(gradient["loss"]["C"], 0.0432424276, atol=1e-9)
