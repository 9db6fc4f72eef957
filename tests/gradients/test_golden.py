"""Reference values of five papers on one small problem that needs no random generator.

R30: x_i = (sin 1.3 i, cos(2.1 i + 0.5)), label sign(x_i1 - 0.6 x_i2 + 1.5 sin 0.37 i^2), target
x_i1 - 0.6 x_i2 + 0.5 sin 0.37 i^2; rows 1..20 train, 21..30 validate.  G5 has the features x1, x2, x1^2, x2^2, x1 x2.
The values are those of independent numpy programs in double precision, checked by central differences.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

I = np.arange(1, 31)  # noqa: E741  # the papers' index
R30 = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
WAVE = np.sin(0.37 * I**2)
LABELS = np.sign(R30[:, 0] - 0.6 * R30[:, 1] + 1.5 * WAVE)
TARGETS = R30[:, 0] - 0.6 * R30[:, 1] + 0.5 * WAVE
G5 = np.concatenate([R30, R30**2, R30[:, :1] * R30[:, 1:]], axis=1)
TRAIN, VALID = slice(0, 20), slice(20, 30)
TOL = 1e-13
LINEAR, RBF, ARD = hj.kernels.Linear(), hj.kernels.RBF(), hj.kernels.ARD()


def quick(f):
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def fit(loss, kernel, bias, five=False, targets=False):
    """The jitted hyperparameters -> (Solution, validation outputs) of one problem on R30 (or G5)."""
    X, y = (G5 if five else R30), (TARGETS if targets else LABELS)
    problem = hj.Problem(loss=loss, kernel=kernel, bias=bias)

    def run(hp):
        solution = hj.solve(problem, hp, jnp.asarray(X[TRAIN]), jnp.asarray(y[TRAIN]), tol=TOL)
        return solution, solution.decision(jnp.asarray(X[VALID]))

    return run


@functools.cache
def outer(criterion, loss, kernel, bias, five=False, targets=False):
    """The jitted validation value, its gradient in every hyperparameter, and the solution."""
    run = fit(loss, kernel, bias, five, targets)

    def value(hp):
        solution, o = run(hp)
        return criterion(o, hp), solution

    return quick(jax.value_and_grad(value, has_aux=True))


def arrays(tree):
    return jax.tree.map(lambda v: jnp.asarray(v, float), tree)


def weights_of(solution, X=R30):
    return X[TRAIN].T @ np.asarray(solution.z)


# Instances that name a static problem once, so that every test of it shares one compilation.
HINGE, WEIGHTED, SQUARED_HINGE = hj.losses.Hinge(), hj.losses.WeightedHinge(), hj.losses.SquaredHinge()
SQUARED, LOGISTIC = hj.losses.Squared(), hj.losses.Logistic()
SMOOTH, TUBE = hj.losses.SmoothHinge(), hj.losses.SquaredEpsilonInsensitive()
Y = LABELS[VALID]
POSITIVE = Y > 0


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


def cost(C):
    return arrays({"loss": {"C": C}, "kernel": {}})


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


# Klatzer & Pock: c = 1/C multiplies the regulariser, mu = 20


def klatzer_losses(o, hp):
    """Mean half squared error, smoothed hinge (mu = 20) and smoothed 0-1 loss (mu = 12)."""
    m = Y * o
    return jnp.stack(
        [
            0.5 * jnp.mean((o - Y) ** 2),
            jnp.mean(jnp.logaddexp(0.0, 20.0 * (1.0 - m)) / 20.0),
            jnp.mean(jax.nn.sigmoid(-12.0 * m)),
        ]
    )


@functools.cache
def klatzer(kernel, bias):
    """c and the rest -> the three outer values, their Jacobian in c and the rest, and the solution."""
    run = fit(SMOOTH, kernel, bias)

    def values(c, kernel_hp, mu):
        solution, o = run({"loss": {"C": 1.0 / c, "mu": mu}, "kernel": kernel_hp})
        return klatzer_losses(o, None), (klatzer_losses(o, None), solution)

    return quick(jax.jacrev(values, argnums=(0, 1), has_aux=True))


@pytest.mark.parametrize("bias", [True, "regularised"], ids=["unpenalised", "penalised"])
def test_klatzer_linear(bias):
    """Item 2; and the stationarity of the c form at C = 1/c (item 7)."""
    table = {
        True: {
            0.05: [(1.122835004093, -0.2794831639)],
            1.0: [
                (0.935392825209, -0.1687304042),
                (1.009329864186, -0.0729195142),
                (0.460830547174, -0.0201333667),
            ],
        },
        "regularised": {
            0.05: [(1.123211234971, -0.2714506368)],
            1.0: [
                (0.936768477844, -0.1742969580),
                (1.009920207980, -0.0757024201),
                (0.459818840249, -0.0174467737),
            ],
        },
    }
    for c, rows in table[bias].items():
        (dc, _), (values, solution) = klatzer(LINEAR, bias)(jnp.asarray(c), {}, jnp.asarray(20.0))
        for k, (value, slope) in enumerate(rows):
            np.testing.assert_allclose(values[k], value, atol=1e-8)
            np.testing.assert_allclose(dc[k], slope, atol=1e-7)
        w, b = weights_of(solution), float(solution.b)
        if c == 1.0 and bias is True:
            np.testing.assert_allclose((*w, b), (1.39900316344, -0.019892277893, 0.030089472337), atol=1e-8)
        s = 1.0 / (1.0 + np.exp(-20.0 * (1.0 - LABELS[TRAIN] * (R30[TRAIN] @ w + b))))
        np.testing.assert_allclose(c * w, R30[TRAIN].T @ (LABELS[TRAIN] * s), atol=1e-10)


def test_klatzer_widths():
    """Item 3; equal widths: the derivatives by feature add up to that of the single width."""
    mu = jnp.asarray(20.0)
    single = [
        (1.032440593706, -0.1787491351, -0.2060185600),
        (1.041011731083, 0.0911955222, -0.1750098366),
        (0.499865524165, 0.0017789363, -0.0017656843),
    ]
    (dc, dk), (values, _) = klatzer(RBF, False)(jnp.asarray(0.5), arrays({"gamma": 1.5}), mu)
    np.testing.assert_allclose(np.stack([values, dc, dk["gamma"]], axis=1), single, atol=1e-7)
    np.testing.assert_allclose(values, [row[0] for row in single], atol=1e-8)
    several = [
        (0.979606439302, -0.3332867854, 0.0247366635, 0.1942364106),
        (1.038627103928, -0.1226603567, 0.0029055672, 0.0821705261),
        (0.454283952570, 0.2412609605, -0.2342861315, 0.1602453506),
    ]
    (dc, dk2), (values, _) = klatzer(ARD, False)(jnp.asarray(0.5), arrays({"gamma": np.array([1.5, 0.4])}), mu)
    found = np.concatenate([values[:, None], dc[:, None], dk2["gamma"]], axis=1)
    np.testing.assert_allclose(found, several, atol=1e-7)
    (_, dk2), _ = klatzer(ARD, False)(jnp.asarray(0.5), arrays({"gamma": np.array([1.5, 1.5])}), mu)
    np.testing.assert_allclose(dk2["gamma"].sum(axis=1), dk["gamma"], atol=1e-12)


PARTS = hj.kernels.Weighted([hj.kernels.RBF(columns=(0,)), hj.kernels.RBF(columns=(1,))])


def test_klatzer_multiple_kernels():
    """Item 4: a kernel a coordinate; V does not change when c and beta are multiplied by the same number."""
    run, mu = klatzer(PARTS, False), jnp.asarray(20.0)
    beta = np.array([0.7, 0.4])
    hp = {"beta": beta, "kernels": [{"gamma": 1.5}, {"gamma": 0.8}]}
    (dc, dk), (values, _) = run(jnp.asarray(0.5), arrays(hp), mu)
    np.testing.assert_allclose((values[0], dc[0]), (0.968914100207, -0.4988770876), atol=1e-9)
    gammas = [part["gamma"][0] for part in dk["kernels"]]
    np.testing.assert_allclose(gammas, (0.069357968883, 0.077539230575), atol=1e-9)
    np.testing.assert_allclose(dk["beta"][0], (0.281265659970, 0.131381454543), atol=1e-9)
    np.testing.assert_allclose(0.5 * dc + dk["beta"] @ beta, 0.0, atol=1e-12)
    _, (tripled, _) = run(jnp.asarray(1.5), arrays(hp | {"beta": 3.0 * beta}), mu)
    np.testing.assert_allclose(tripled, values, atol=1e-12)


def test_klatzer_sharp_limit():
    """Item 6: to 1 % at each mu, the distance from the exact hinge's derivative falling tenfold with each decade."""
    table = {
        0.05: (-0.00406920, -0.00504106, -0.00504148, -0.00504148, -0.00504148, -0.00504148),
        0.5: (-0.0887408, -0.0586903, -0.0219072, -0.00271350, -0.000277313, -0.0000277928),
        2.0: (-0.271156, -0.177178, -0.0801582, -0.0275647, -0.0220873, -0.0215373),
    }
    exact = {0.05: -0.00504148, 0.5: 0.0, 2.0: -0.0214762}
    run = outer(lambda o, hp: 0.5 * jnp.mean((o - Y) ** 2), HINGE, LINEAR, "regularised")
    for C, row in table.items():
        (_, _), gradient = run(cost(C))
        np.testing.assert_allclose(-(C**2) * gradient["loss"]["C"], exact[C], atol=1e-7)
        found = []
        for mu, expected in zip((5.0, 20.0, 100.0, 1e3, 1e4, 1e5), row, strict=True):
            (dc, _), _ = klatzer(LINEAR, "regularised")(jnp.asarray(1.0 / C), {}, jnp.asarray(mu))
            np.testing.assert_allclose(dc[0], expected, rtol=0.01, err_msg=f"C={C}, mu={mu}")
            found.append(float(dc[0]) + C**2 * float(gradient["loss"]["C"]))
        if C > 0.05:
            ratios = np.array(found[3:5]) / np.array(found[4:6])
            assert np.all((ratios > 8.0) & (ratios < 12.0)), ratios


# Moore, Bergeron & Bennett: 1/2 C (|r| - eps)^2, that is half of our C


def mean_square(o, hp):
    return jnp.mean((o - TARGETS[VALID]) ** 2)


def tube(C, eps):
    return arrays({"loss": {"C": 0.5 * np.asarray(C), "eps": np.asarray(eps)}, "kernel": {}})


def test_moore_one_group():
    """Items 1 and 2; at eps = 0 the derivative is that from the right."""
    run = outer(mean_square, TUBE, LINEAR, False, targets=True)
    table = [
        (1.0, 0.0, 0.14646228495978, 0.032598333791, -0.060200085032),
        (1.0, 0.1, 0.12641507219063, 0.033872080900, -0.243105590469),
        (1.0, 0.3, 0.08275666140625, 0.016322902225, -0.163980111559),
        (10.0, 0.2, 0.14718614385057, 0.000835650416, -0.179660308812),
        (0.1, 0.05, 0.10692759984893, -0.557806753282, 0.090995101492),
    ]
    solved = {
        (1.0, 0.1): ((1.055883949997, -0.493180551860), 15),
        (10.0, 0.2): ((1.135276516158, -0.557538661557), 10),
    }
    for C, eps, value, dC, deps in table:
        (found, solution), gradient = run(tube(C, eps))
        np.testing.assert_allclose(found, value, atol=1e-9)
        np.testing.assert_allclose((0.5 * gradient["loss"]["C"], gradient["loss"]["eps"]), (dC, deps), atol=1e-9)
        if (C, eps) in solved:
            w, active = solved[C, eps]
            np.testing.assert_allclose(weights_of(solution), w, atol=1e-9)
            assert (np.asarray(solution.z) != 0).sum() == active


def test_moore_weights_move_with_the_tube():
    """Item 4: the sign of dw/deps."""
    run = fit(TUBE, LINEAR, False, targets=True)
    move = quick(jax.jacfwd(lambda hp: jnp.asarray(R30[TRAIN]).T @ run(hp)[0].z))(tube(1.0, 0.1))
    np.testing.assert_allclose(move["loss"]["eps"], (-0.561323281083, -0.141406487848), atol=1e-9)


def test_moore_two_groups():
    """Item 3: odd rows with C = 2, eps = 0.1, even rows with C = 0.5, eps = 0.25."""
    loss = hj.losses.Grouped(TUBE, I[TRAIN] % 2 == 0)
    run = outer(mean_square, loss, LINEAR, False, targets=True)
    (value, solution), gradient = run(tube([2.0, 0.5], [0.1, 0.25]))
    np.testing.assert_allclose(weights_of(solution), (1.06007292616, -0.566064855999), atol=1e-9)
    np.testing.assert_allclose(value, 0.115293321002, atol=1e-9)
    np.testing.assert_allclose(0.5 * gradient["loss"]["C"], (0.014989486752, 0.012363785374), atol=1e-9)
    np.testing.assert_allclose(gradient["loss"]["eps"], (-0.199670577877, -0.051193188584), atol=1e-9)
    assert (np.asarray(solution.z) != 0).sum() == 11


# Chu, Ho, Tsai, Lin & Lin: no bias


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED_HINGE], ids=["LR", "L2"])
def test_chu_path(loss):
    """Items 2, 5 and 6: w and the objective along C, primal = dual, and alpha / C far out."""
    solve = quick(lambda hp: fit(loss, LINEAR, False)(hp)[0])
    y, X = LABELS[TRAIN], R30[TRAIN]
    rows = {
        LOGISTIC: [
            (0.01, (0.0501277568, -0.0034459542), 0.1373344679),
            (1.0, (1.5956938053, -0.0159349504), 9.9581885780),
            (100.0, (2.9322245353, 0.1025776484), 777.5569567),
            (1e4, (2.9707492929, 0.1079453241), 77323.98062),
        ],
        SQUARED_HINGE: [
            (0.01, (0.1706112573, -0.0096147521), 0.1823855189),
            (1.0, (0.9601885114, 0.0134368914), 10.1359079300),
            (100.0, (1.0099293417, 0.0210532849), 965.6543239),
            (1e4, (1.0104945247, 0.0211751721), 96514.89419),
        ],
    }[loss]
    for C, w, objective in rows:
        z = np.asarray(solve(cost(C)).z)
        found, alpha = X.T @ z, y * z
        m = y * (X @ found)
        losses = np.logaddexp(0.0, -m) if loss is LOGISTIC else np.maximum(1.0 - m, 0.0) ** 2
        primal = 0.5 * found @ found + C * losses.sum()
        if loss is LOGISTIC:
            dual = (C * np.log(C) - alpha * np.log(alpha) - (C - alpha) * np.log(C - alpha)).sum()
        else:
            dual = alpha.sum() - (alpha**2).sum() / (4.0 * C)
        np.testing.assert_allclose(found, w, atol=1e-9)
        np.testing.assert_allclose(primal, objective, rtol=1e-9)
        np.testing.assert_allclose(dual - 0.5 * found @ found, primal, rtol=1e-9)
    limit = {
        LOGISTIC: (0.0589489, 0.1779511, 0.1246017, 0.0618998),
        SQUARED_HINGE: (0.0889402, 0.9586962, 0.6468457, 0.1778842),
    }
    np.testing.assert_allclose((y * np.asarray(solve(cost(1e6)).z))[:4] / 1e6, limit[loss], atol=5e-7)
