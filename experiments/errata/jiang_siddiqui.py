"""What is wrong or open in Jiang & Siddiqui, SGD and dual coordinate descent for C: one number a finding.

    python -m experiments.errata.jiang_siddiqui

Each function returns (what is printed or implied, what holds); the tests hold them.  G5 is the reference problem of the
five papers with the features x1, x2, x1^2, x2^2, x1 x2: rows 1..20 train, 21..30 are held out.
"""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments import common
from hyperjax.methods.couellan_wang import couellan_wang
from hyperjax.methods.jiang_siddiqui import jiang_siddiqui

I = np.arange(1, 31)  # noqa: E741  # the papers' index
X = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
Y = np.sign(X[:, 0] - 0.6 * X[:, 1] + 1.5 * np.sin(0.37 * I**2))
G5 = np.concatenate([X, X**2, X[:, :1] * X[:, 1:]], axis=1)
TRAIN, VALID = slice(0, 20), slice(20, 30)
HALF = hj.folds.predefined(np.where(I <= 20, -1, 0))
PLAIN = hj.Problem(hj.losses.Hinge(), hj.kernels.Linear(), False)
PROBLEMS, ROWS, WIDTH = 150, 40, 11


@cache
def _run(**options: Any) -> dict[str, Any]:
    return jiang_siddiqui(PLAIN, G5, Y, HALF, progress=False, compilation="quick", **options).details


def _at(C: float, jacobian: str = "exact") -> dict[str, Any]:
    """The fold solved to rounding at C, and the derivative there."""
    return _run(C_min=C, C_max=C, passes=200, max_steps=20, samples="all", jacobian=jacobian)


def jacobian_at_one_half() -> tuple[float, float]:
    """4.1: dV/dC at C = 0.5 by eq. 23, and by central differences of V."""
    step = 5e-7
    difference = (_at(0.5 + step)["V"][-1] - _at(0.5 - step)["V"][-1]) / (2 * step)
    return float(_at(0.5, "paper")["gradient"][-1]), float(difference)


def jacobian_is_exact_where_nobody_is_free() -> tuple[float, float]:
    """4.7: at C = 0.05 every row is at its bound, and eq. 23 is the derivative."""
    return float(_at(0.05, "paper")["gradient"][-1]), float(_at(0.05)["gradient"][-1])


def share_of_wrong_signs() -> tuple[float, float]:
    """4.1: how often eq. 23 has the wrong sign: called exact, and found on random problems with free rows."""
    drawn = np.random.default_rng(0)
    rows, labels, costs = [], [], []
    for _ in range(PROBLEMS):
        d = drawn.integers(2, WIDTH + 1)
        full = np.zeros((2 * ROWS, WIDTH))
        full[:, :d] = drawn.normal(size=(2 * ROWS, d))
        noise = drawn.normal(size=2 * ROWS)
        rows.append(full)
        labels.append(np.where(full @ drawn.normal(size=WIDTH) / np.sqrt(d) + noise > 0, 1.0, -1.0))
        costs.append(10.0 ** drawn.uniform(-2, 1))
    solved = jax.jit(jax.vmap(_solved), compiler_options={"xla_backend_optimization_level": 0})
    alphas = np.asarray(solved(jnp.asarray(rows)[:, :ROWS], jnp.asarray(labels)[:, :ROWS], jnp.asarray(costs)))
    wrong, counted = 0, 0
    for full, y, C, alpha in zip(rows, labels, costs, alphas, strict=True):
        Z = y[:, None] * full
        bounded, free = alpha > C * (1 - 1e-9), (alpha > C * 1e-9) & (alpha < C * (1 - 1e-9))
        s = Z[:ROWS][bounded].sum(axis=0)
        exact = s - np.linalg.pinv(Z[:ROWS][free]) @ (Z[:ROWS][free] @ s)
        held_out = Z[ROWS:][Z[ROWS:] @ (alpha @ Z[:ROWS]) < 1]
        paper, true = -(held_out @ s).sum(), -(held_out @ exact).sum()
        if free.any() and bounded.any() and np.linalg.norm(exact) > 1e-7 * np.linalg.norm(s):
            counted += 1
            wrong += paper * true < 0
    return 0.0, wrong / counted


def _solved(rows: Any, y: Any, C: Any) -> Any:
    hp = {"loss": {"C": C}, "kernel": {}}
    return y * hj.solve(PLAIN, hp, rows, y, tol=1e-9).z


def sign_of_a_sample() -> tuple[float, float]:
    """4.2: the mean derivative at C = 0.2, and the share of single violators that would move C against it."""
    found = _at(0.2)
    Z, alpha = Y[:, None] * G5, found["alpha"][0]
    free, bounded = (alpha > 0) & (alpha < 0.2), alpha == 0.2
    s = Z[bounded].sum(axis=0)
    s = s - np.linalg.pinv(Z[free]) @ (Z[free] @ s)
    violators = Z[VALID][Z[VALID] @ found["w"][0] < 1]
    mean = float(found["gradient"][-1])
    return mean, float(np.mean(-(violators @ s) * mean < 0))


def reachable_C() -> tuple[float, float]:
    """4.3: the upper end of the search on Pima, and what 150 steps of length 1 / (k sqrt 8) can reach from 1e-4."""
    return 1e6, float(1e-4 + np.sum(1.0 / np.arange(1, 151)) / np.sqrt(8))


def one_row_a_step_sees_one_bound() -> tuple[float, float]:
    """4.4: mean number of rows at their bound a fold and step, one row a step as algorithm 1 is printed, and a pass."""
    drawn = np.random.default_rng(0)
    rows = drawn.normal(size=(200, 4))
    y = np.where(rows[:, 0] + drawn.normal(size=200) > 0, 1.0, -1.0)
    means = []
    for passes in (0, 1):
        found = jiang_siddiqui(PLAIN, rows, y, 5, passes=passes, progress=False, compilation="quick").details
        means.append(float(found["bounded"].mean()))
    return means[0], means[1]


def plateau_without_an_optimum() -> tuple[float, float]:
    """4.6: the exact derivative at C = 5, and how much lower V is at C = 0.2."""
    return abs(float(_at(5.0)["gradient"][-1])), float(_at(5.0)["V"][-1] - _at(0.2)["V"][-1])


def one_violator_for_all() -> tuple[float, float]:
    """4.8: bilevel-SGD's w at fixed C over the w of all violators' sum: 1 is meant, one over their number is found."""
    C, rows = 0.02, 0.3 * G5
    found = couellan_wang(
        PLAIN, rows, Y, HALF, C_min=C, C_max=C, max_steps=2000, progress=False, compilation="quick"
    ).details["w"][0]
    whole = C * (Y[TRAIN, None] * rows[TRAIN]).sum(axis=0)
    return 1.0, float(found @ whole / (whole @ whole))


def sign_of_the_mixed_derivative() -> tuple[float, float]:
    """4.8: y_1 x_11, the printed derivative by C of the gradient w - C y_1 x_1 of one row, and that derivative."""
    y_x, w, h = Y[0] * G5[0, 0], 0.3, 1e-6
    return float(y_x), float(((w - (1.0 + h) * y_x) - (w - (1.0 - h) * y_x)) / (2.0 * h))


def rows_on_the_margin_are_forgotten() -> tuple[float, float]:
    """4.8: |dw/dC| at C = 0.5 as the sum over violators, and by differences of w, free rows on the margin included."""
    step = 5e-7
    Z, w = (Y[:, None] * G5)[TRAIN], _at(0.5)["w"][0]
    moved = (_at(0.5 + step)["w"][0] - _at(0.5 - step)["w"][0]) / (2.0 * step)
    return float(np.linalg.norm(Z[Z @ w < 1.0 - 1e-7].sum(axis=0))), float(np.linalg.norm(moved))


def positive_part_gets_lost() -> tuple[float, float]:
    """4.9: the k-fold objective at C = 0.5 without the positive part, as its second line has it, and with it."""
    margins = Y[VALID] * (G5[VALID] @ _at(0.5)["w"][0])
    return float(np.sum(1.0 - margins)), float(np.sum(np.maximum(1.0 - margins, 0.0)))


def inner_argmin_is_an_argmax() -> tuple[float, float]:
    """4.9: 1'alpha - alpha'Q alpha / 2 at alpha = 0, and at the solution for C = 0.5, where the text has the argmin."""
    alpha = _at(0.5)["alpha"][0]
    w = (alpha * Y) @ G5
    return 0.0, float(alpha.sum() - 0.5 * w @ w)


def one_row_a_step_is_too_little() -> tuple[float, float]:
    """4.5: accuracy on pima with one row a step, as algorithm 1 has it, and with a pass; 76.53 is printed."""
    table = common.read(Path(__file__).parents[1] / "jiang_siddiqui" / "results.json")
    wanted = (("variants", "one row a step"), ("steps", "SGD+DCD"))
    found = [common.rows_of(table, part, data="pima", bias="none", method=method) for part, method in wanted]
    literal, full = (float(np.mean([row["accuracy"] for row in rows])) for rows in found)
    return literal, full


def violators_are_not_errors() -> tuple[float, float]:
    """4.9: misclassified held-out rows at C = 0.5, of which the text speaks, and rows with a positive hinge loss."""
    margins = Y[VALID] * (G5[VALID] @ _at(0.5)["w"][0])
    return float(np.sum(margins < 0)), float(np.sum(margins < 1))


def rows_of_cancer() -> tuple[float, float]:
    """4.10: the printed accuracy of bilevel-SGD on 699 rows, and 644 of the 683 rows without a missing value."""
    return 94.29, 100.0 * 644 / 683


def majority_of_connect4() -> tuple[float, float]:
    """4.10: the printed accuracy of bilevel-SGD, and the share of wins once the draws are left out."""
    return 72.77, 100.0 * 44473 / (44473 + 16635)


FINDINGS = (
    jacobian_at_one_half,
    jacobian_is_exact_where_nobody_is_free,
    share_of_wrong_signs,
    sign_of_a_sample,
    reachable_C,
    one_row_a_step_sees_one_bound,
    plateau_without_an_optimum,
    one_violator_for_all,
    violators_are_not_errors,
    rows_of_cancer,
    majority_of_connect4,
    sign_of_the_mixed_derivative,
    rows_on_the_margin_are_forgotten,
    positive_part_gets_lost,
    inner_argmin_is_an_argmax,
    one_row_a_step_is_too_little,
)


def main(argv: Any = None) -> dict[str, tuple[float, float]]:
    """Print every finding: as printed, and as it is."""
    found = {}
    for check in FINDINGS:
        found[check.__name__] = first, second = check()
        print(f"{check.__name__:40} {first:14.6g} {second:14.6g}   {(check.__doc__ or '').splitlines()[0]}")
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
