"""What is wrong or open in Moore, Bergeron & Bennett, Model selection for primal SVM: one number a finding.

    python -m experiments.errata.moore

Each function returns (what is printed, what holds); the tests hold the second.  R30 is the reference problem of the
five papers, 30 rows that need no random generator.
"""

import warnings
from typing import Any

import jax
import numpy as np
from scipy.optimize import minimize

import hyperjax as hj

I = np.arange(1, 31)  # noqa: E741  # the papers' index
X = np.stack([np.sin(1.3 * I), np.cos(2.1 * I + 0.5)], axis=1)
Y = X[:, 0] - 0.6 * X[:, 1] + 0.5 * np.sin(0.37 * I**2)
TRAIN, VALID = slice(0, 20), slice(20, 30)
TUBE, LINEAR = hj.losses.SquaredEpsilonInsensitive(), hj.kernels.Linear()
ONE = hj.Problem(TUBE, LINEAR, False)
TWO = hj.Problem(hj.losses.Grouped(TUBE, I > 15), LINEAR, False)
SINGLE = (I <= 20).astype(float)[None, :]
THREE = np.stack([I % 3 != t for t in range(3)]).astype(float)


def _S(r: np.ndarray, eps: float) -> np.ndarray:
    return np.sign(r) * np.maximum(np.abs(r) - eps, 0.0)


def _G(w: np.ndarray, C: float, eps: float) -> np.ndarray:
    return w + C * X[TRAIN].T @ _S(X[TRAIN] @ w - Y[TRAIN], eps)


def _A(w: np.ndarray, C: float, eps: float) -> np.ndarray:
    active = np.abs(X[TRAIN] @ w - Y[TRAIN]) > eps
    return np.eye(2) + C * (X[TRAIN] * active[:, None]).T @ X[TRAIN]


def _solve(C: float, eps: float) -> np.ndarray:
    w = np.zeros(2)
    for _ in range(50):
        w = w - np.linalg.solve(_A(w, C, eps), _G(w, C, eps))
    return w


def _V(w: np.ndarray) -> float:
    return float(np.mean((X[VALID] @ w - Y[VALID]) ** 2))


def _phi(w: np.ndarray, C: float, eps: float, nu: float) -> float:
    return _V(w) + nu * float(_G(w, C, eps) @ _G(w, C, eps))


def sign_of_the_tube() -> tuple[float, float]:
    """(27): the first entry of dw/deps at C = 1, eps = 0.1, as printed and by differences."""
    w, h = _solve(1.0, 0.1), 1e-6
    r = X[TRAIN] @ w - Y[TRAIN]
    side = X[TRAIN].T @ (np.sign(r) * (np.abs(r) > 0.1))
    printed = -np.linalg.solve(_A(w, 1.0, 0.1), side)
    return float(printed[0]), float((_solve(1.0, 0.1 + h) - _solve(1.0, 0.1 - h))[0] / (2.0 * h))


def sign_of_the_direction() -> tuple[float, float]:
    """(40): the slope of the penalised objective along the printed direction, and along its negative."""
    w, C, nu, h = np.array([0.2, 0.1]), 1.0, 1.0, 1e-6
    g = np.array([(_phi(w + h * e, C, 0.1, nu) - _phi(w - h * e, C, 0.1, nu)) / (2.0 * h) for e in np.eye(2)])
    d = g / np.linalg.norm(g)
    along = [(_phi(w + s * h * d, C, 0.1, nu) - _phi(w, C, 0.1, nu)) / h for s in (1.0, -1.0)]
    return along[0], along[1]


def rule_of_tau() -> tuple[float, float]:
    """Algorithm 3: the first C that nu = 1 reaches with tau as printed and corrected; the optimum is 62.00."""
    out = []
    for rule in ("printed", "corrected"):
        result = hj.methods.pbp(
            TWO, X, Y, THREE, normalisation="mean", hold="loss.eps", feasibility=np.inf, tol=1e-20, rule=rule,
            progress=False,
        )  # fmt: skip
        out.append(float(result.details["C"][0]))
    return out[0], out[1]


def model_at_the_point() -> tuple[float, float]:
    """(35): how far the model is from the objective at a step of length 0, with L_in and with its gradient."""
    w, C, eps, nu = np.array([0.2, 0.1]), 1.0, 0.1, 1.0
    inner = 0.5 * w @ w + 0.5 * C * np.sum(_S(X[TRAIN] @ w - Y[TRAIN], eps) ** 2)
    objective = _phi(w, C, eps, nu)
    return float(_V(w) + 0.5 * nu * inner**2 - objective), float(_V(w) + nu * np.sum(_G(w, C, eps) ** 2) - objective)


def slopes_on_the_lower_edge() -> tuple[float, float]:
    """Kinks: the least slope dS/dr at r = -eps that the printed interval allows, and the least of the two sides."""
    eps, h = 0.1, 1e-6
    limits = [(_S(np.array([-eps + s * h + 1e-9]), eps) - _S(np.array([-eps + s * h - 1e-9]), eps))[0] for s in (-1, 1)]
    return -1.0, float(min(limits) / 2e-9)


def factors_of_two() -> tuple[float, float]:
    """(47): the slope of the objective in w_1 with the printed factors, over the one by differences."""
    w, C, eps, nu, h = np.array([0.2, 0.1]), 1.0, 0.1, 1.0, 1e-6
    printed = X[VALID].T @ (X[VALID] @ w - Y[VALID]) / 10.0 + nu * _A(w, C, eps) @ _G(w, C, eps)
    wanted = (_phi(w + h * np.eye(2)[0], C, eps, nu) - _phi(w - h * np.eye(2)[0], C, eps, nu)) / (2.0 * h)
    return float(printed[0] / wanted), float(2.0 * printed[0] / wanted)


def meaning_of_C() -> tuple[float, float]:
    """The reported C = 1e-4, the lower bound: V over the targets' variance with "mean" and with "sum", 1600 rows."""
    draw, out = np.random.default_rng(0), []
    A = draw.normal(size=(1600, 100)) * np.linspace(30.0, 1.0, 100)
    y = A @ (draw.normal(size=100) / np.linspace(30.0, 1.0, 100) / 10.0) + 0.3 * draw.normal(size=1600)
    y = y - y.mean()
    for C in (1e-4 / 1600.0, 1e-4):
        hp = {"loss": {"C": 0.5 * C, "eps": 0.0}, "kernel": {}}
        o = np.asarray(hj.cross_decision(ONE, hp, A, y, hj.folds.kfold(1600, 5)))
        out.append(float(np.mean((o - y) ** 2) / y.var()))
    return out[0], out[1]


def accuracy_of_the_penalty() -> tuple[float, float]:
    """The distance of C from the implicit optimum at nu = 10 and at nu = 100: a tenth."""
    out = []
    for nu in (10.0, 100.0):
        result = hj.methods.pbp(
            ONE, X, Y, SINGLE, hold="loss.eps", penalty=nu, feasibility=np.inf, tol=1e-20, shortest=1e-10,
            progress=False,
        )  # fmt: skip
        out.append(0.1694790047 - float(result.details["C"][0]))
    return out[0], out[1]


def groups_that_fall_silent() -> tuple[float, float]:
    """dV/deps of a group whose tube holds every residual, beside that of the same group with eps = 0.1."""
    out = []
    for eps in (3.0, 0.1):
        hp = {"loss": {"C": np.array([0.5, 0.5]), "eps": np.array([0.1, eps])}, "kernel": {}}
        gradient = hj.hypergradient_info(TWO, hp, X, Y, THREE, hj.criteria.SquaredError())[1]
        out.append(float(gradient["loss"]["eps"][1]))
    return out[0], out[1]


def early_stop() -> tuple[float, float]:
    """The published tolerance 1e-3 on the squared norm: C after it and after 1e-6, from C = 1 (500 synthetic rows)."""
    from experiments.moore.data import synthetic

    task, out = synthetic(500, 0), []
    for tol in (1e-3, 1e-6):
        result = hj.methods.pbp(ONE, task.X, task.y, task.folds, tol=tol, progress=False)
        out.append(float(result.details["C"][0]))
    return out[0], out[1]


def linear_part_of_a_model() -> tuple[float, float]:
    """4.7: the proof's f + g's of V at a step, and the convex model, here V itself: only a lower bound."""
    w, s = np.array([0.2, 0.1]), np.array([0.5, -0.5])
    g = 2.0 * X[VALID].T @ (X[VALID] @ w - Y[VALID]) / 10.0
    return _V(w) + float(g @ s), _V(w + s)


def starts_that_end_apart() -> tuple[float, float]:
    """4.10: V of two groups and three folds where L-BFGS-B ends from C = 1, eps = 0 and from C = 0.01, eps = 0.3."""
    ends = []
    for C, eps in ((1.0, 0.0), (0.01, 0.3)):
        start, box = [np.log(C)] * 2 + [eps] * 2, [(np.log(1e-4), np.log(1e3))] * 2 + [(0.0, 2.0)] * 2
        ends.append(float(minimize(_grouped, start, method="L-BFGS-B", bounds=box).fun))
    return ends[0], ends[1]


def _grouped(x: np.ndarray) -> float:
    """V at (log C_g, eps_g), groups i <= 15 and i > 15, three folds, costs divided by the rows of a group in a fold."""
    group, total = (I > 15).astype(int), 0.0
    for train in THREE > 0:
        rows, y = X[train], Y[train]
        c = (np.exp(x[:2]) / np.bincount(group[train]))[group[train]]
        eps, w = x[2:][group[train]], np.zeros(2)

        def energy(w: np.ndarray, rows: Any = rows, y: Any = y, c: Any = c, eps: Any = eps) -> float:
            return float(0.5 * w @ w + 0.5 * np.sum(c * np.maximum(np.abs(rows @ w - y) - eps, 0.0) ** 2))

        for _ in range(100):
            r = rows @ w - y
            g = w + rows.T @ (c * np.sign(r) * np.maximum(np.abs(r) - eps, 0.0))
            if np.max(np.abs(g)) < 1e-12:
                break
            p = -np.linalg.solve(np.eye(2) + (rows * (c * (np.abs(r) > eps))[:, None]).T @ rows, g)
            t = 1.0
            while energy(w + t * p) > energy(w) + 1e-4 * t * g @ p + 1e-15 and t > 1e-9:
                t *= 0.5
            w = w + t * p
        total += float(np.sum((X[~train] @ w - Y[~train]) ** 2))
    return total / 30.0


def noisy_groups_rule_V() -> tuple[float, float]:
    """4.12: the share of the noisiest of five groups in the rows, and in V, at C = 1 and eps = 0 (500 synthetic)."""
    from experiments.moore.data import synthetic

    task = synthetic(500, 0)
    hp = {"loss": {"C": 0.5, "eps": 0.0}, "kernel": {}}
    squares = (np.asarray(hj.cross_decision(ONE, hp, task.X, task.y, task.folds)) - task.y) ** 2
    last = np.asarray(task.grouped(5)) == 4
    return float(np.mean(last)), float(squares[last].sum() / squares.sum())


FINDINGS = (
    sign_of_the_tube,
    sign_of_the_direction,
    rule_of_tau,
    model_at_the_point,
    slopes_on_the_lower_edge,
    factors_of_two,
    meaning_of_C,
    accuracy_of_the_penalty,
    groups_that_fall_silent,
    early_stop,
    linear_part_of_a_model,
    starts_that_end_apart,
    noisy_groups_rule_V,
)


def main(argv: Any = None) -> dict[str, tuple[float, float]]:
    """Print every finding: as printed, and as it is."""
    found = {}
    for check in FINDINGS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # bounds that are met are part of the findings
            found[check.__name__] = first, second = check()
        print(f"{check.__name__:26} {first:14.6g} {second:14.6g}   {(check.__doc__ or '').splitlines()[0]}")
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
