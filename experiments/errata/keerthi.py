"""What is wrong or open in Keerthi, Sindhwani & Chapelle, gradient-based adaptation: one number a finding.

    python -m experiments.errata.keerthi

Each function returns (what is printed, what holds), or the two sides of what it compares; the tests hold them.  R30 is
the reference problem of the five papers, 30 rows that need no random generator.
"""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import hyperjax as hj
from experiments import common
from hyperjax.methods.keerthi import keerthi

I = np.arange(1, 31)  # noqa: E741  # the papers' index
X = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
Y = np.sign(X[:, 0] - 0.6 * X[:, 1] + 1.5 * np.sin(0.37 * I**2))
TRAIN, VALID = slice(0, 20), slice(20, 30)
HINGE = hj.Problem(hj.losses.WeightedHinge(), hj.kernels.RBF())
GRID = {"Ijcnn 2000": (10.03, 4.58, 11), "Ijcnn 4000": (38.77, 11.40, 12), "Ijcnn 8000": (218.92, 68.58, 14),
        "Ijcnn 16000": (1130.37, 127.03, 12), "Ijcnn 32000": (5331.15, 382.20, 9)}  # fmt: skip
"""Minutes of the grid's 225 points, of the gradient search, and its points (table 1)."""


@cache
def _outputs(C_pos: float, C_neg: float, m_pos: float, m_neg: float, gamma: float) -> np.ndarray:
    loss = {"C_pos": C_pos, "C_neg": C_neg, "m_pos": m_pos, "m_neg": m_neg}
    hp = jax.tree.map(jnp.asarray, {"loss": loss, "kernel": {"gamma": gamma}})
    return np.asarray(hj.solve(HINGE, hp, X[TRAIN], Y[TRAIN], tol=1e-12).decision(X[VALID]))


def _sigmoid(v: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * v))


def _likelihood(theta: np.ndarray, o: np.ndarray, y: np.ndarray) -> float:
    """N_nll at (s0, s1)."""
    return float(np.logaddexp(0.0, -theta[1] * y * (o - theta[0])).sum())


def margins_are_redundant() -> tuple[float, float]:
    """4.6: largest change of (o - r)/M from (C+, C-, m+, m-) to (C+/M, C-/M, 1, 1), and of o itself."""
    full, r, M = _outputs(1.3, 0.6, 1.2, 0.9, 1.0), 0.15, 1.05
    plain = _outputs(1.3 / M, 0.6 / M, 1.0, 1.0, 1.0)
    return float(np.max(np.abs((full - r) / M - plain))), float(np.max(np.abs(full - plain)))


def fitted_thresholds_balance_errors() -> tuple[float, float]:
    """4.7: smoothed false negatives and false positives where s0, s1 minimise N_nll: equal, whatever wer wants."""
    o, y = _outputs(1.3, 0.6, 1.2, 0.9, 1.0), Y[VALID]
    s0, s1 = minimize(_likelihood, (0.0, 1.0), (o, y), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).x
    wrong = 1.0 - _sigmoid(s1 * y * (o - s0))
    return float(wrong[y > 0].sum()), float(wrong[y < 0].sum())


def likelihood_may_have_no_minimum() -> tuple[float, float]:
    """4.8: N_nll of separable outputs at s1 = 10 and at s1 = 100."""
    o, y = Y[VALID] * (1.0 + 0.1 * np.arange(10)), Y[VALID]
    return _likelihood(np.array([0.0, 10.0]), o, y), _likelihood(np.array([0.0, 100.0]), o, y)


def likelihood_may_turn_the_sign() -> tuple[float, float]:
    """4.8: the sign s1 is assumed to have, and the s1 that minimises N_nll at C = gamma = 1."""
    o, y = _outputs(1.0, 1.0, 1.0, 1.0, 1.0), Y[VALID]
    found = minimize(_likelihood, (0.0, 1.0), (o, y), method="Nelder-Mead", options={"maxiter": 2000}).x
    return 1.0, float(found[1])


def unscaled_first_step() -> tuple[float, float]:
    """4.10: what a first step with H = I promises of V, relative to V (the stop asks 1e-3), and with H = I/|g|."""
    result = keerthi(hj.Problem(), X, Y, _half(), max_steps=0, progress=False)
    size, value = result.history[0]["gradient_norm"], result.value
    return size**2 / value, size / value


def flat_start() -> tuple[float, float]:
    """The slope of V at C = gamma = 1 with 12 scaled features, and V there over V at the end of our search."""
    generator = np.random.default_rng(2)
    wide = generator.normal(size=(60, 12))
    y = np.where(wide[:, 0] + 0.7 * np.sin(3.0 * wide[:, 1]) + 0.5 * generator.normal(size=60) > 0.3, 1.0, -1.0)
    result = keerthi(hj.Problem(), wide, y, 3, progress=False)
    first = result.history[0]
    return first["gradient_norm"], first["value"] / result.value


def speed_a_point() -> tuple[float, float]:
    """4.11: least and largest ratio of the gradient search's minutes a point to the grid's (table 1, ijcnn1)."""
    ratios = [(grad / count) / (grid / 225.0) for grid, grad, count in GRID.values()]
    return min(ratios), max(ratios)


def step_at_the_threshold() -> tuple[float, float]:
    """4.4: errors of ten outputs exactly at the threshold, by the printed step and by o >= s0 means +1."""
    y = Y[VALID]
    printed = np.where(y * 0.0 >= 0.0, 0.0, 1.0)
    return float(printed.sum()), float(np.sum(y < 0))


def pooled_or_averaged() -> tuple[float, float]:
    """4.3: smoothed error of all held-out outputs with one scale, and the mean of three folds with one each."""
    folds, criterion = hj.folds.stratified(Y, 3), hj.criteria.SmoothError()
    hp = jax.tree.map(jnp.asarray, {"loss": {"C": 1.0}, "kernel": {"gamma": 1.0}})
    o = np.asarray(hj.cross_decision(hj.Problem(), hp, X, Y, folds))
    each = [float(criterion(o[rows], Y[rows])) for rows in np.asarray(folds.test) > 0]
    return float(criterion(o, Y)), float(np.mean(each))


def partitions_put_kinks_into_V() -> tuple[float, float]:
    """4.5: dV/dC just below and just above the first C > 1 at which another row reaches its bound."""
    low, high = 1.0, 5.0
    at_one = _bounded(low)
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.array_equal(_bounded(middle), at_one) else (low, middle)
    return _slope(low - 1e-6, X, Y, _half()), _slope(high + 1e-6, X, Y, _half())


def direct_sigmoid_becomes_a_step() -> tuple[float, float]:
    """4.9: smoothed error of outputs 1 + 1e-9 o, which says nothing of o, and the share of negatives: no slope left."""
    o, y = _outputs(1.0, 1.0, 1.0, 1.0, 1.0), Y[VALID]
    return float(hj.criteria.SmoothError()(jnp.asarray(1.0 + 1e-9 * o), jnp.asarray(y))), float(np.mean(y < 0))


def twins_make_the_system_singular() -> tuple[float, float]:
    """4.12: dV/dC at C = gamma = 1, and again with one free training row given twice (condition 1e16)."""
    alpha = Y[TRAIN] * _coefficients(1.0)
    twin = int(np.flatnonzero((alpha > 1e-6) & (alpha < 1.0 - 1e-6))[0])
    rows = np.r_[np.arange(30), twin]
    trained = (rows < 20)[None, :].astype(float)
    folds = hj.Folds(jnp.asarray(trained), jnp.asarray(1.0 - trained))
    return _slope(1.0, X, Y, _half()), _slope(1.0, X[rows], Y[rows], folds)


def bias_may_be_an_interval() -> tuple[float, float]:
    """4.12: nobody free at C = 0.05, gamma = 1: the ends of the interval in which every b is optimal."""
    y = Y[TRAIN]
    square = np.sum((X[TRAIN][:, None] - X[TRAIN][None, :]) ** 2, axis=2)
    g = np.exp(-square) @ (0.05 * y)
    return float(np.max((-1.0 - g)[y < 0])), float(np.min((1.0 - g)[y > 0]))


def widths_fit_the_folds() -> tuple[float, float]:
    """4.14: splice, a width a feature: the smoothed error of the held-out rows at the end, and the test error, %."""
    table = common.read(Path(__file__).parents[1] / "keerthi" / "results.json")
    rows = common.rows_of(table, "table1", data="splice", method="ard")
    return 100.0 * float(np.mean([row["value"] for row in rows])), float(np.mean([row["error"] for row in rows]))


def _coefficients(C: float) -> np.ndarray:
    hp = jax.tree.map(jnp.asarray, {"loss": {"C": C}, "kernel": {"gamma": 1.0}})
    return np.asarray(hj.solve(hj.Problem(), hp, X[TRAIN], Y[TRAIN], tol=1e-12).z)


def _bounded(C: float) -> np.ndarray:
    alpha = Y[TRAIN] * _coefficients(C)
    return np.stack([alpha > C * (1.0 - 1e-9), alpha > C * 1e-9])


def _slope(C: float, X: np.ndarray, y: np.ndarray, folds: Any) -> float:
    hp = jax.tree.map(jnp.asarray, {"loss": {"C": C}, "kernel": {"gamma": 1.0}})
    found = hj.hypergradient_info(hj.Problem(), hp, X, y, folds, hj.criteria.SmoothError())
    return float(found[1]["loss"]["C"])


def _half() -> Any:
    rows = np.arange(30)[None, :]
    return hj.Folds(jnp.asarray(rows < 20, float), jnp.asarray(rows >= 20, float))


FINDINGS = (
    margins_are_redundant,
    fitted_thresholds_balance_errors,
    likelihood_may_have_no_minimum,
    likelihood_may_turn_the_sign,
    unscaled_first_step,
    flat_start,
    speed_a_point,
    step_at_the_threshold,
    pooled_or_averaged,
    partitions_put_kinks_into_V,
    direct_sigmoid_becomes_a_step,
    twins_make_the_system_singular,
    bias_may_be_an_interval,
    widths_fit_the_folds,
)


def main(argv: Any = None) -> dict[str, tuple[float, float]]:
    """Print every finding: as printed, and as it is."""
    found = {}
    for check in FINDINGS:
        found[check.__name__] = first, second = check()
        print(f"{check.__name__:34} {first:14.6g} {second:14.6g}   {(check.__doc__ or '').splitlines()[0]}")
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
