"""What is wrong or open in Klatzer & Pock, continuous hyper-parameter learning: one number a finding.

    python -m experiments.errata.klatzer_pock

Each function returns (what is printed, what holds), or the two sides of what it compares; the tests hold them.  R30 is
the reference problem of the five papers, 30 rows that need no random generator.  Everything here is plain NumPy; one
number is read from our own results.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from experiments import common

I = np.arange(1, 31)  # noqa: E741  # the papers' index
X = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
Y = np.sign(X[:, 0] - 0.6 * X[:, 1] + 1.5 * np.sin(0.37 * I**2))
TRAIN, VALID = slice(0, 20), slice(20, 30)
MU = 20.0
SETS = {"diabetes": (460, 305), "ionosphere": (210, 140), "heart": (190, 80), "seeds": (150, 60)}
PRINTED = {
    "diabetes": ((24.13, 24.13, 25.87, 24.34, 22.17, 21.30, 18.70, 25.00), (20.33, 20.66, 19.67, 18.03, 17.70, 19.02)),
    "ionosphere": ((12.86, 11.43, 16.19, 14.29, 0.95, 2.86, 3.81, 13.81), (8.57, 7.86, 3.57, 2.86, 4.29)),
    "heart": ((15.79, 14.21, 17.37, 18.95, 15.26, 14.74, 17.89), (15.0, 13.75)),
    "seeds": ((6.0, 7.33, 9.33, 2.0, 1.33, 10.67), (10.0, 11.67, 9.33, 8.33, 6.67)),
}
"""CV and test errors of table 1, percent."""


def _sigmoid(v: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * v))


def _kernel(A: np.ndarray, B: np.ndarray, gamma: Any) -> np.ndarray:
    return np.exp(-np.sum(np.asarray(gamma) * (A[:, None, :] - B[None, :, :]) ** 2, axis=2))


def _fit(K: np.ndarray, y: np.ndarray, c: float, mu: float = MU) -> np.ndarray:
    """a with c a = y s(K a), by damped Newton on the reduced stationarity."""
    a = np.zeros(len(y))

    def energy(a: np.ndarray) -> float:
        f = K @ a
        return 0.5 * c * a @ f + np.logaddexp(0.0, mu * (1.0 - y * f)).sum() / mu

    for _ in range(200):
        s = _sigmoid(mu * (1.0 - y * (K @ a)))
        G = c * a - y * s
        if np.max(np.abs(G)) < 1e-14:
            break
        p = -np.linalg.solve(c * np.eye(len(y)) + (mu * s * (1.0 - s))[:, None] * K, G)
        t = 1.0
        while energy(a + t * p) > energy(a) + 1e-4 * t * (K @ G) @ p + 1e-13 * (1.0 + abs(energy(a))) and t > 1e-10:
            t *= 0.5
        a = a + t * p
    return a


def _linear(c: float, penalised: bool) -> float:
    """Validation MSE / 2 of the linear machine at c."""
    A = np.c_[X[TRAIN], np.ones(20)]
    R = np.array([1.0, 1.0, float(penalised)])
    y = Y[TRAIN]

    def energy(w: np.ndarray) -> tuple[float, np.ndarray]:
        m = y * (A @ w)
        s = _sigmoid(MU * (1.0 - m))
        value = 0.5 * c * np.sum(R * w * w) + np.logaddexp(0.0, MU * (1.0 - m)).sum() / MU
        return float(value), c * R * w - A.T @ (y * s)

    w = minimize(energy, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return float(0.5 * np.mean((np.c_[X[VALID], np.ones(10)] @ w - Y[VALID]) ** 2))


def _value(c: float, gammas: Any, betas: Any) -> float:
    """Validation MSE / 2 of a weighted sum of one kernel a coordinate."""
    parts = [(X[:, [p]], b, g) for p, (b, g) in enumerate(zip(betas, gammas, strict=True))]
    K = sum(b * _kernel(Z[TRAIN], Z[TRAIN], g) for Z, b, g in parts)
    Kv = sum(b * _kernel(Z[VALID], Z[TRAIN], g) for Z, b, g in parts)
    return float(0.5 * np.mean((Kv @ _fit(K, Y[TRAIN], c) - Y[VALID]) ** 2))


def bias_in_or_out() -> tuple[float, float]:
    """4.2: V at c = 1 with the bias inside the penalised vector, as in the matrix form, and outside, as in (1)."""
    return _linear(1.0, True), _linear(1.0, False)


def redundant_weights() -> tuple[float, float]:
    """4.4: V at (c, beta) and at (3 c, 3 beta): the same model."""
    return _value(0.5, (1.5, 0.8), (0.7, 0.4)), _value(1.5, (1.5, 0.8), (2.1, 1.2))


def a_width_without_a_gradient() -> tuple[float, float]:
    """4.5: V with widths (1.5, 0.4) and a third, of the constant column, at 1 and at 10: the same."""
    Z = np.c_[X, np.ones(30)]
    out = []
    for width in (1.0, 10.0):
        gamma = (1.5, 0.4, width)
        a = _fit(_kernel(Z[TRAIN], Z[TRAIN], gamma), Y[TRAIN], 0.5)
        out.append(float(np.mean((_kernel(Z[VALID], Z[TRAIN], gamma) @ a - Y[VALID]) ** 2)))
    return out[0], out[1]


def condition_of_the_hessian() -> tuple[float, float]:
    """4.6: condition number of c K + K D K, and of the reduced form c I + D K, at gamma = 1.5, c = 0.5."""
    K, y = _kernel(X[TRAIN], X[TRAIN], 1.5), Y[TRAIN]
    s = _sigmoid(MU * (1.0 - y * (K @ _fit(K, y, 0.5))))
    D = np.diag(MU * s * (1.0 - s))
    return float(np.linalg.cond(0.5 * K + K @ D @ K)), float(np.linalg.cond(0.5 * np.eye(20) + D @ K))


def twins_break_the_full_form() -> tuple[float, float]:
    """4.6: ranks of 21 that c K + K D K and c I + D K have with one training row given twice."""
    rows = np.r_[np.arange(20), 4]
    K, y = _kernel(X[rows], X[rows], 1.5), Y[rows]
    s = _sigmoid(MU * (1.0 - y * (K @ _fit(K, y, 0.5))))
    D = np.diag(MU * s * (1.0 - s))
    full, reduced = 0.5 * K + K @ D @ K, 0.5 * np.eye(21) + D @ K
    return float(np.linalg.matrix_rank(full, tol=1e-9)), float(np.linalg.matrix_rank(reduced, tol=1e-9))


def percentages_give_the_sizes_away() -> tuple[float, float]:
    """4.10: printed errors of table 1 that are whole numbers of rows, and those that are not."""
    good = bad = 0
    for name, sizes in SETS.items():
        for n, errors in zip(sizes, PRINTED[name], strict=True):
            for value in errors:
                nearest = round(value * n / 100.0)
                fits = abs(100.0 * nearest / n - value) <= 0.0101
                good, bad = good + fits, bad + (not fits)
    return float(good), float(bad)


def sums_and_means() -> tuple[float, float]:
    """4.3: the hinge outer loss as printed, a sum over ten rows, and its mean (outputs 0)."""
    loss = np.logaddexp(0.0, MU * np.ones(10)) / MU
    return float(loss.sum()), float(loss.mean())


def smoothing_fades_slowly() -> tuple[float, float]:
    """4.7: dV/dc at C = 0.5 for mu = 1e3 and 1e4, a tenth of it; the hinge itself has 0."""
    out, w = [], np.zeros(3)
    for mu in (20.0, 100.0, 1e3, 1e4):
        step = 1e-5
        w = _sharp(2.0, mu, w)
        ends = [_held_out(_sharp(c, mu, w)) for c in (2.0 + step, 2.0 - step)]
        out.append((ends[0] - ends[1]) / (2.0 * step))
    return out[-2], out[-1]


def minima_along_the_width() -> tuple[float, float]:
    """4.8: minima of V (smoothed hinge) along gamma at c = 2 that one start can find, and those there are."""
    values = []
    for gamma in np.logspace(-2.0, 2.0, 40):
        o = _kernel(X[VALID], X[TRAIN], gamma) @ _fit(_kernel(X[TRAIN], X[TRAIN], gamma), Y[TRAIN], 2.0)
        values.append(np.mean(np.logaddexp(0.0, MU * (1.0 - Y[VALID] * o))) / MU)
    v = np.array(values)
    return 1.0, float(np.sum((v[1:-1] < v[:-2]) & (v[1:-1] < v[2:])))


def digits_that_changed_places() -> tuple[float, float]:
    """4.10: the CV errors 8.75 and 2.04 of parkinson, and their sum if 12 and 3 of 140 rows were meant."""
    return 8.75 + 2.04, 100.0 * (12 + 3) / 140


def one_split_is_one_draw() -> tuple[float, float]:
    """4.11: the printed test error of the Gaussian machine on heart (hinge), and the mean of our splits."""
    table = common.read(Path(__file__).parents[1] / "klatzer_pock" / "results.json")
    rows = common.rows_of(table, "table1", data="heart", method="Kerhinge")
    return 13.75, float(np.mean([row["test"] for row in rows]))


def _sharp(c: float, mu: float, w: np.ndarray) -> np.ndarray:
    """Weights of the linear machine, the constant column penalised, by damped Newton from w."""
    A, y = np.c_[X[TRAIN], np.ones(20)], Y[TRAIN]

    def energy(w: np.ndarray) -> float:
        return float(0.5 * c * w @ w + np.logaddexp(0.0, mu * (1.0 - y * (A @ w))).sum() / mu)

    for _ in range(500):
        s = _sigmoid(mu * (1.0 - y * (A @ w)))
        g = c * w - A.T @ (y * s)
        p = -np.linalg.solve(c * np.eye(3) + (A * (mu * s * (1.0 - s))[:, None]).T @ A, g)
        if np.max(np.abs(p)) < 1e-14:
            break
        t = 1.0
        while energy(w + t * p) > energy(w) + 1e-4 * t * g @ p + 1e-15 and t > 1e-10:
            t *= 0.5
        w = w + t * p
    return w


def _held_out(w: np.ndarray) -> float:
    return float(0.5 * np.mean((np.c_[X[VALID], np.ones(10)] @ w - Y[VALID]) ** 2))


FINDINGS = (
    bias_in_or_out,
    redundant_weights,
    a_width_without_a_gradient,
    condition_of_the_hessian,
    twins_break_the_full_form,
    percentages_give_the_sizes_away,
    sums_and_means,
    smoothing_fades_slowly,
    minima_along_the_width,
    digits_that_changed_places,
    one_split_is_one_draw,
)


def main(argv: Any = None) -> dict[str, tuple[float, float]]:
    """Print every finding: as printed, and as it is."""
    found = {}
    for check in FINDINGS:
        found[check.__name__] = first, second = check()
        print(f"{check.__name__:34} {first:14.6g} {second:14.6g}   {(check.__doc__ or '').splitlines()[0]}")
    return found


if __name__ == "__main__":
    main()
