"""Problems whose solution is known because it was drawn first.

Regression: z, b and the rows are drawn, o = K z + b, and y is placed so that -z is in s d phi(o).  Margins: outputs and
z are drawn to fit each other, and the rows follow: with v = o - b and P the projector that removes z,
Phi = [v / sqrt(z'v), P R] has Phi Phi' z = v.  Positive and negative z are balanced by the sample weights.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj

N = 30
L = hj.losses
C, EPS, TAU = 0.8, 0.3, 0.3


def balanced(z, s, bias):
    """z and s with the negative side scaled so that sum z = 0, or nearly 0 where the bias is sum z."""
    if bias is False:
        return z, s
    negative = z[z > 0].sum() / -z[z < 0].sum()
    factor = np.where(z < 0, negative, 1.0 if bias is True else 1.02)
    return z * factor, s * factor


def margin_problem(rng, name, bias, d):
    """(rows, y, s, z, b, o) of a planted hinge or squared hinge."""
    y = np.where(np.arange(N) % 2, 1.0, -1.0)
    s = rng.uniform(0.5, 1.5, N)
    kind = rng.permutation(np.arange(N) % 3)  # inactive, free, bounded
    if name == "hinge":
        m = np.select([kind == 0, kind == 1], [rng.uniform(1.1, 2.0, N), 1.0], rng.uniform(-0.2, 0.9, N))
        alpha = np.select([kind == 0, kind == 1], [0.0, rng.uniform(0.2, 0.8, N)], 1.0) * s * C
    else:
        m = np.where(kind == 0, rng.uniform(1.1, 2.0, N), rng.uniform(-0.2, 0.9, N))
        alpha = 2.0 * s * C * np.maximum(1.0 - m, 0.0)
    z, s = balanced(y * alpha, s, bias)
    o = y * m
    b = {True: 0.2, False: 0.0, "regularised": z.sum()}[bias]
    v = o - b
    assert z @ v > 0.1
    R = rng.normal(size=(N, d))
    rows = np.concatenate([v[:, None] / np.sqrt(z @ v), R - np.outer(z, z @ R) / (z @ z)], axis=1)
    return rows, y, s, z, b, o


def regression_problem(rng, name, bias, d):
    """(rows, y, s, z, b, o) of a planted regression problem."""
    rows, s = rng.normal(size=(N, d)), rng.uniform(0.5, 1.5, N)
    kind = rng.permutation(np.arange(N) % 5)  # inactive or free, free up, free down, upper bound, lower bound
    low, high = (TAU - 1.0, TAU) if name == "pinball" else (-1.0, 1.0)
    inner = rng.uniform(0.2, 0.8, N)
    still = 0.0 if "epsilon" in name else 0.1
    z = np.select([kind == k for k in range(4)], [still, inner * high, inner * low, high], low) * s * C
    z, s = balanced(z, s, bias)
    b = {True: 0.7, False: 0.0, "regularised": z.sum()}[bias]
    o = rows @ (rows.T @ z) + b
    beyond = rng.uniform(0.1, 1.0, N)
    push = np.select([kind == 3, kind == 4], [beyond, -beyond], 0.0)
    if name == "pinball":
        y = o + push
    elif name == "epsilon_insensitive":
        y = o + np.where(kind == 0, rng.uniform(-0.9, 0.9, N) * EPS, np.sign(z) * EPS) + push
    elif name == "squared":
        y = o + z / (2.0 * s * C)
    else:
        inside = rng.uniform(-0.9, 0.9, N) * EPS
        y = o + np.where(z == 0, inside, np.sign(z) * EPS + z / (2.0 * s * C))
    return rows, y, s, z, b, o


LOSSES = {
    "hinge": (L.Hinge(C=C), margin_problem),
    "squared_hinge": (L.SquaredHinge(C=C), margin_problem),
    "epsilon_insensitive": (L.EpsilonInsensitive(C=C, eps=EPS), regression_problem),
    "squared_epsilon_insensitive": (L.SquaredEpsilonInsensitive(C=C, eps=EPS), regression_problem),
    "squared": (L.Squared(C=C), regression_problem),
    "pinball": (L.Pinball(C=C, tau=TAU), regression_problem),
}


@pytest.mark.parametrize("bias", [True, False, "regularised"])
@pytest.mark.parametrize("name", LOSSES)
def test_planted_solution_is_recovered(name, bias):
    """Factored (5 columns) and stored (45 columns) kernel matrices, two draws each."""
    loss, draw = LOSSES[name]
    for d in (5, 45):
        problem = hj.Problem(loss=loss, kernel=hj.kernels.Linear(), bias=bias)

        def run(X, y, s, problem=problem):
            return hj.solve(problem, problem.init(X, y), X, y, weights=s, tol=1e-12)

        run = jax.jit(run, compiler_options={"xla_backend_optimization_level": 0})
        for seed in (0, 1):
            rows, y, s, z, b, o = draw(np.random.default_rng(seed), name, bias, d)
            solution = run(jnp.asarray(rows), jnp.asarray(y), jnp.asarray(s))
            assert not hj.Code(int(solution.code)).failed
            np.testing.assert_allclose(solution.outputs, o, atol=1e-10)
            np.testing.assert_allclose(solution.b, b, atol=1e-10)
            assert float(solution.gap) < 1e-10
            if d > N:  # fewer columns leave z undetermined, not the outputs
                np.testing.assert_allclose(solution.z, z, atol=1e-9)
