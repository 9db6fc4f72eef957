"""Reference values of the primal methods: Klatzer & Pock; Moore, Bergeron & Bennett; Chu et al."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.gradients.r30 import (
    ARD,
    HINGE,
    LABELS,
    LINEAR,
    LOGISTIC,
    R30,
    RBF,
    SMOOTH,
    SQUARED_HINGE,
    TARGETS,
    TRAIN,
    TUBE,
    VALID,
    I,
    Y,
    arrays,
    cost,
    fit,
    outer,
    quick,
    weights_of,
)

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
