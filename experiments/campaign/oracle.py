"""The certificate, written a second time: numpy, float64, closed forms, nothing imported from the library.

`violation` is kkt: the larger of max_i |o_i - prox_{t_i s_i phi}(o_i - t_i z_i)| with t_i = 1/(s_i c_i), over the
samples in play, and |sum z| / sum_i s_i c_i where the bias is unregularised.
"""

from typing import Any

import numpy as np
from scipy.special import expit


def kernel_matrix(name: str, hp: dict[str, Any], X: np.ndarray) -> np.ndarray:
    """K (n, n) of the rows of X."""
    difference = X[:, None, :] - X[None, :, :]
    if name == "Linear":
        return X @ X.T
    if name in ("RBF", "ARD"):
        return np.exp(-(difference**2 @ (hp["gamma"] * np.ones(X.shape[1]))))
    if name == "Laplacian":
        return np.exp(-hp["gamma"] * np.abs(difference).sum(axis=2))
    if name == "Polynomial":
        return (hp["gamma"] * (X @ X.T) + hp["coef0"]) ** hp["degree"]
    if name == "Weighted":
        linear, rbf = hp["beta"]
        return linear * (X @ X.T) + rbf * kernel_matrix("RBF", hp["kernels"][1], X)
    raise ValueError(f"no oracle for the kernel {name}")


def expand(name: str, hp: dict[str, Any], y: np.ndarray) -> tuple[str, dict[str, np.ndarray]]:
    """The plain loss behind a wrapped one, its hyperparameters one value a sample."""
    if name == "PerSampleHinge":
        return "Hinge", {"C": hp["C"]}
    if name == "GroupedPinball":
        group = np.arange(len(y)) % 2
        return "Pinball", {key: value[group] for key, value in hp.items()}
    if name == "WeightedHinge":
        up = y > 0
        return name, {"C": np.where(up, hp["C_pos"], hp["C_neg"]), "m": np.where(up, hp["m_pos"], hp["m_neg"])}
    return name, {key: value * np.ones(len(y)) for key, value in hp.items()}


def scale(name: str, y: np.ndarray, hp: dict[str, np.ndarray]) -> np.ndarray:
    """c_i: the steepest slope of a piecewise linear loss, else the larger |phi'| one unit beside the target."""
    C = hp["C"]
    if name in ("SquaredHinge", "ModifiedHuber"):
        return 4.0 * C
    if name == "Logistic":
        return C * expit(1.0)
    if name == "SmoothHinge":
        return C * expit(2.0 * hp["mu"])
    if name == "Squared":
        return 2.0 * C
    if name == "SquaredEpsilonInsensitive":
        return np.maximum(2.0 * C * (1.0 - hp["eps"]), C)
    return C * np.maximum(hp["tau"], 1.0 - hp["tau"]) if name == "Pinball" else C


def prox(name: str, v: np.ndarray, y: np.ndarray, ts: np.ndarray, hp: dict[str, np.ndarray]) -> np.ndarray:
    """argmin_p ts phi(p) + (p - v)^2 / 2, elementwise."""
    step = ts * hp["C"]
    if name in ("EpsilonInsensitive", "SquaredEpsilonInsensitive", "Pinball", "Squared"):
        return y + _residual_prox(name, v - y, step, hp)
    return y * _margin_prox(name, y * v, step, hp)


def _residual_prox(name: str, r: np.ndarray, step: np.ndarray, hp: dict[str, np.ndarray]) -> np.ndarray:
    if name == "Squared":
        return r / (1.0 + 2.0 * step)
    if name == "Pinball":
        over, under = step * (1.0 - hp["tau"]), step * hp["tau"]
        return np.where(r > over, r - over, np.where(r < -under, r + under, 0.0))
    size, eps = np.abs(r), hp["eps"]
    if name == "EpsilonInsensitive":
        shrunk = np.maximum(size - step, eps)
    else:
        shrunk = (size + 2.0 * step * eps) / (1.0 + 2.0 * step)
    return np.where(size <= eps, r, np.sign(r) * shrunk)


def _margin_prox(name: str, m: np.ndarray, step: np.ndarray, hp: dict[str, np.ndarray]) -> np.ndarray:
    if name in ("Hinge", "WeightedHinge"):
        kink = hp.get("m", np.ones_like(m))
        return np.where(m >= kink, m, np.minimum(m + step, kink))
    if name == "SquaredHinge":
        return np.where(m >= 1.0, m, (m + 2.0 * step) / (1.0 + 2.0 * step))
    if name == "ModifiedHuber":
        bent = (m + 2.0 * step) / (1.0 + 2.0 * step)
        return np.where(m >= 1.0, m, np.where(m <= -1.0 - 4.0 * step, m + 4.0 * step, bent))
    mu, centre = (hp["mu"], 1.0) if name == "SmoothHinge" else (np.ones_like(m), 0.0)
    low, high = m, m + step
    for _ in range(200):
        middle = 0.5 * (low + high)
        short = middle - step * expit(mu * (centre - middle)) < m
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return 0.5 * (low + high)


def violation(case: Any, z: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """kkt (T,) of a Case's solution (z, b), and how much of it rounding of K z in its float type can explain."""
    up = _float64
    X, y, s, hp = up(case.X), up(case.y), up(case.weights), up(case.hp)
    z, b = up(z), up(b)
    K = kernel_matrix(case.kernel, hp["kernel"], X)
    o = z @ K + b[:, None]
    name, loss_hp = expand(case.loss, hp["loss"], y)
    in_play = s > 0
    c = np.where(in_play, s, 1.0) * scale(name, y, loss_hp)
    fixed = np.stack([prox(name, v, y, w, loss_hp) for v, w in zip(o - z / c, s / c, strict=True)])
    worst = np.max(np.where(in_play, np.abs(o - fixed), 0.0), axis=1)
    if case.bias is True:
        worst = np.maximum(worst, np.abs(z.sum(axis=1)) / np.where(in_play, c, 0.0).sum(axis=1))
    size = np.max(np.where(in_play, np.abs(z) @ np.abs(K) + np.abs(b)[:, None], 0.0), axis=1)
    return worst, float(np.finfo(case.dtype).eps) * size


def _float64(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _float64(value) for name, value in tree.items()}
    return [_float64(value) for value in tree] if isinstance(tree, list) else np.asarray(tree, np.float64)
