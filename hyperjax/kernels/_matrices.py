"""What is wrong with a kernel matrix, on the host."""

from typing import Any

import numpy as np

__all__ = ["asymmetry", "indefiniteness", "rounding"]

_EXACT_ROWS = 600
_LANCZOS_STEPS = 40


def rounding(dtype: Any, terms: int = 1) -> float:
    """What counts as rounding, relative to the largest entry or eigenvalue."""
    return max(1e-6, 100 * terms * float(np.finfo(dtype).eps))


def asymmetry(K: np.ndarray) -> str | None:
    """By how much K and K' differ, in words, where that is more than rounding."""
    largest = float(np.max(np.abs(K)))
    blocks = range(0, len(K), 1024)
    difference = max(float(np.max(np.abs(K[i : i + 1024] - K[:, i : i + 1024].T))) for i in blocks)
    if difference <= rounding(K.dtype) * largest:
        return None
    return f"differ by {difference:.3g} (largest entry {largest:.3g})"


def indefiniteness(K: np.ndarray) -> tuple[float, float] | None:
    """The smallest and largest eigenvalue, where the smallest is negative by more than rounding."""
    low, high = _extreme_eigenvalues(K)
    allowed = rounding(K.dtype, len(K)) * max(high, -low)
    return None if low >= -allowed else (low, high)


def _extreme_eigenvalues(K: np.ndarray) -> tuple[float, float]:
    """Smallest and largest eigenvalue; on large matrices Ritz values, which lie between the two.

    A Ritz value is attained by a vector, so a negative one is proof: the estimate raises no false
    alarm, and cannot fail to converge, only miss a slight indefiniteness.
    """
    if len(K) <= _EXACT_ROWS:
        values = np.linalg.eigvalsh(K)
        return float(values[0]), float(values[-1])
    tiny = float(np.finfo(K.dtype).eps) * float(np.max(np.abs(K)))
    v = np.random.default_rng(0).standard_normal(len(K)).astype(K.dtype)
    basis, alphas, betas = [v / np.linalg.norm(v)], [], []
    for _ in range(_LANCZOS_STEPS):
        w = K @ basis[-1]
        alphas.append(float(basis[-1] @ w))
        Q = np.stack(basis)
        for _ in range(2):  # once leaves rounding errors that grow into copies of converged values
            w = w - Q.T @ (Q @ w)
        length = float(np.linalg.norm(w))
        if length <= tiny * len(K):
            break
        betas.append(length)
        basis.append(w / np.asarray(length, K.dtype))
    beside = np.asarray(betas[: len(alphas) - 1])
    values = np.linalg.eigvalsh(np.diag(alphas) + np.diag(beside, 1) + np.diag(beside, -1))
    return float(values[0]), float(values[-1])
