"""Random inner problems, each a pure function of its seed: `make(seed)`.

The seed alone picks the configuration (loss, kernel, bias, padded size, float type: what JAX compiles for) and draws
the data (rows, duplicates, weights, hyperparameters).  Rows beyond the drawn number are padding of weight 0.
"""

import dataclasses
from typing import Any

import numpy as np

import hyperjax as hj

BIASES = (True, False, "regularised")
COLUMNS = {16: 24, 64: 6, 200: 8}
"""Padded rows to columns; the smallest shape has more columns than rows."""
TRAITS = ("plain", "duplicates", "constant columns", "separable", "nobody free", "one free", "one class", "weights")

GROUPS = {n: np.arange(n) % 2 for n in COLUMNS}
LOSSES = {
    "Hinge": lambda n: hj.losses.Hinge(),
    "SquaredHinge": lambda n: hj.losses.SquaredHinge(),
    "EpsilonInsensitive": lambda n: hj.losses.EpsilonInsensitive(),
    "Logistic": lambda n: hj.losses.Logistic(),
    "WeightedHinge": lambda n: hj.losses.WeightedHinge(),
    "SmoothHinge": lambda n: hj.losses.SmoothHinge(),
    "Pinball": lambda n: hj.losses.Pinball(),
    "ModifiedHuber": lambda n: hj.losses.ModifiedHuber(),
    "PerSampleHinge": lambda n: hj.losses.PerSample(hj.losses.Hinge()),
    "SquaredEpsilonInsensitive": lambda n: hj.losses.SquaredEpsilonInsensitive(),
    "GroupedPinball": lambda n: hj.losses.Grouped(hj.losses.Pinball(), GROUPS[n]),
    "Squared": lambda n: hj.losses.Squared(),
}
MARGIN = {"Hinge", "SquaredHinge", "Logistic", "WeightedHinge", "SmoothHinge", "ModifiedHuber", "PerSampleHinge"}
KERNELS = {
    "Linear": hj.kernels.Linear(),
    "RBF": hj.kernels.RBF(),
    "ARD": hj.kernels.ARD(),
    "Polynomial": hj.kernels.Polynomial(degree=2.0),
    "Laplacian": hj.kernels.Laplacian(),
    "Weighted": hj.kernels.Weighted([hj.kernels.Linear(), hj.kernels.RBF()]),
}
CONFIGURATIONS = 2 * len(LOSSES) * len(BIASES)


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem of two folds: all rows, and a random half of them."""

    seed: int
    loss: str
    kernel: str
    bias: Any
    dtype: str
    trait: str
    rows: int
    C: float
    problem: hj.Problem
    hp: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray


def configuration(seed: int) -> tuple[str, str, Any, int, str]:
    """(loss, kernel, bias, padded rows, float type): pairs of the first four all occur within 72 seeds."""
    index = seed % CONFIGURATIONS
    loss, bias, again = index % len(LOSSES), index // len(LOSSES) % len(BIASES), index // (len(LOSSES) * len(BIASES))
    kernel = (loss + bias + 3 * again) % len(KERNELS)
    size = (loss + loss // 6 + 2 * bias + again) % len(COLUMNS)
    dtype = ("float64", "float32")[seed // CONFIGURATIONS % 2]
    return list(LOSSES)[loss], list(KERNELS)[kernel], BIASES[bias], list(COLUMNS)[size], dtype


def quick_seeds(count: int = 60, configurations: int = 20) -> list[int]:
    """Seeds of a small campaign that compiles for few configurations: every loss, kernel, bias and float type."""
    chosen = [7 * i % CONFIGURATIONS for i in range(configurations)]
    rounds = -(-count // configurations)
    return [c + CONFIGURATIONS * (2 * r + i % 2) for r in range(rounds) for i, c in enumerate(chosen)][:count]


def make(seed: int) -> Case:
    """The problem of a seed."""
    loss, kernel, bias, n, dtype = configuration(seed)
    rng = np.random.default_rng(seed)
    trait = TRAITS[rng.integers(len(TRAITS))]
    rows = int(rng.integers({16: 5, 64: 17, 200: 65}[n], n + 1))
    X, y = _data(rng, trait, rows, n, loss in MARGIN)
    C = float(10.0 ** rng.uniform(-8, 8))
    if trait in ("nobody free", "one free"):
        C = float(10.0 ** rng.uniform(-8, -4))
    weights = _weights(rng, trait, rows, y)
    problem = hj.Problem(loss=LOSSES[loss](n), kernel=KERNELS[kernel], bias=bias)
    hp = {"loss": _loss_hp(rng, loss, C, n), "kernel": _kernel_hp(rng, kernel, X[:rows])}
    cast = {"X": X.astype(dtype), "y": y.astype(dtype), "weights": weights.astype(dtype)}
    return Case(seed, loss, kernel, bias, dtype, trait, rows, C, problem, _as(hp, dtype), **cast)


def _data(rng: np.random.Generator, trait: str, rows: int, n: int, margin: bool) -> tuple[np.ndarray, np.ndarray]:
    d = COLUMNS[n]
    X = rng.standard_normal((rows, d))
    if trait == "duplicates":
        X = X[rng.integers(0, max(2, rows // 3), rows)]
    if trait == "constant columns":
        X[:, rng.permutation(d)[: rng.integers(1, d + 1)]] = rng.standard_normal()
    score = X @ rng.standard_normal(d) / np.sqrt(d)
    if margin:
        noise = 0.0 if trait == "separable" else rng.uniform(0.0, 2.0)
        y = np.where(score + noise * rng.standard_normal(rows) >= np.median(score), 1.0, -1.0)
        if trait == "nobody free":
            y = np.where(np.arange(rows) % 2 == 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        if trait == "separable":
            X[:, 0] += 3.0 * y
    else:
        y = score + (0.0 if trait == "separable" else 0.3) * rng.standard_normal(rows)
    filler = np.where(np.arange(n - rows) % 2 == 0, 1.0, -1.0)
    return np.concatenate([X, np.zeros((n - rows, d))]), np.concatenate([y, filler])


def _weights(rng: np.random.Generator, trait: str, rows: int, y: np.ndarray) -> np.ndarray:
    s = np.zeros((2, len(y)))
    s[0, :rows] = 1.0
    s[1, :rows] = rng.permutation(rows) < max(3, rows // 2)
    if trait == "weights":
        s *= 10.0 ** rng.uniform(-3, 3, len(y))
    if trait == "one class":
        s[1] *= y > 0
        if not s[1].any():
            s[1, np.argmax(y[:rows])] = 1.0
    if trait == "nobody free" and rows % 2:
        s[:, rows - 1] = 0.0
    if trait == "one free":
        s[:, 0] *= 1.5
    return s


def _loss_hp(rng: np.random.Generator, loss: str, C: float, n: int) -> dict[str, Any]:
    eps, tau = float(rng.choice([0.0, 0.01, 0.1, 0.5, 3.0])), float(rng.uniform(0.05, 0.95))
    ratio, margins = 10.0 ** rng.uniform(-1, 1), rng.uniform(0.2, 1.5, 2)
    return {
        "WeightedHinge": {"C_pos": C, "C_neg": C * ratio, "m_pos": margins[0], "m_neg": margins[1]},
        "SmoothHinge": {"C": C, "mu": 10.0 ** rng.uniform(0, 2)},
        "EpsilonInsensitive": {"C": C, "eps": eps},
        "SquaredEpsilonInsensitive": {"C": C, "eps": eps},
        "Pinball": {"C": C, "tau": tau},
        "GroupedPinball": {"C": np.array([C, C * ratio]), "tau": np.array([tau, 1.0 - tau])},
        "PerSampleHinge": {"C": C * 10.0 ** rng.uniform(-0.5, 0.5, n)},
    }.get(loss, {"C": C})


def _kernel_hp(rng: np.random.Generator, kernel: str, X: np.ndarray) -> dict[str, Any]:
    d = X.shape[1]
    gamma = 10.0 ** rng.uniform(-1, 1) / d
    return {
        "Linear": {},
        "RBF": {"gamma": gamma},
        "ARD": {"gamma": gamma * 10.0 ** rng.uniform(-1, 1, d)},
        "Polynomial": {"gamma": gamma, "coef0": 1.0, "degree": 2.0},
        "Laplacian": {"gamma": gamma},
        "Weighted": {"beta": rng.uniform(0.0, 1.0, 2), "kernels": [{}, {"gamma": gamma}]},
    }[kernel]


def _as(tree: Any, dtype: str) -> Any:
    if isinstance(tree, dict):
        return {name: _as(value, dtype) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_as(value, dtype) for value in tree]
    return np.asarray(tree, dtype)
