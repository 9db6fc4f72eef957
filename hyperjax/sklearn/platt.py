"""Probabilities from outputs: Platt's sigmoid, one against the rest.

Problem
    minimise over a, b    - sum_l w_l (t_l log p_l + (1 - t_l) log(1 - p_l)),     p_l = 1 / (1 + exp(a o_l + b))
    with Platt's targets t = (N+ + 1) / (N+ + 2) for a positive row and 1 / (N- + 2) for a negative one, N+ and N- the
    weights of the two classes: separable outputs keep a finite sigmoid.

Source
    Platt, Probabilistic outputs for support vector machines (1999); the safeguarded Newton iteration of
    Lin, Lin & Weng, A note on Platt's probabilistic outputs for support vector machines (2007).
"""

import numpy as np
from scipy.special import expit

__all__ = ["fit_sigmoid", "probabilities"]

STEPS = 100
GRADIENT = 1e-10
"""The search ends where the gradient is this small relative to the total weight."""


def fit_sigmoid(o: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """(a, b) of the sigmoid; o are outputs of rows that did not train the model which made them."""
    n_pos, n_neg = float(weights[positive].sum()), float(weights[~positive].sum())
    t = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    # unit spread conditions the 2 x 2 system, whatever the scale of the outputs
    scale = float(np.max(np.abs(o), initial=0.0)) or 1.0
    x = np.stack([o / scale, np.ones_like(o)])
    beta = np.array([0.0, np.log((n_neg + 1.0) / (n_pos + 1.0))])

    def value(beta: np.ndarray) -> float:
        eta = beta @ x
        return float(np.sum(weights * (t * eta + np.logaddexp(0.0, -eta))))

    current = value(beta)
    for _ in range(STEPS):
        p = expit(-(beta @ x))
        gradient = x @ (weights * (t - p))
        if np.max(np.abs(gradient)) <= GRADIENT * max(n_pos + n_neg, 1.0):
            break
        hessian = (x * (weights * p * (1.0 - p))) @ x.T + 1e-12 * np.eye(2)
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        while (new := value(beta + length * step)) > current + 1e-4 * length * float(gradient @ step):
            length *= 0.5
            if length < 1e-10:
                return float(beta[0] / scale), float(beta[1])
        beta, current = beta + length * step, new
    return float(beta[0] / scale), float(beta[1])


def probabilities(outputs: np.ndarray, sigmoids: np.ndarray) -> np.ndarray:
    """(m, k) from the outputs (m,) of two classes and one sigmoid, or (m, k) of one-vs-rest and k of them."""
    if outputs.ndim == 1:
        p = expit(-(sigmoids[0, 0] * outputs + sigmoids[0, 1]))
        return np.stack([1.0 - p, p], axis=1)
    p = expit(-(outputs * sigmoids[:, 0] + sigmoids[:, 1]))
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])
