"""A kernel matrix in the place of features."""

import jax.numpy as jnp
import numpy as np

from .base import Kernel

__all__ = ["Precomputed"]

_EXACT_ROWS = 600
_LANCZOS_STEPS = 40


class Precomputed(Kernel):
    """X is the kernel matrix.

    Problem: X (n, n) = K between the training rows, X_new (m, n) = K between new and training rows.
    `columns` picks one of several matrices laid side by side, X = [K_1 .. K_P]: as children of
    `Weighted`, Precomputed(columns=range(p n, (p + 1) n)).
    Derivative: the identity in X.
    Source: none.
    """

    def cross(self, hp, X, Z):
        K = self.select(X)
        if K.shape[1] != Z.shape[0]:
            raise ValueError(
                f"Precomputed: X must hold the kernel between its rows and all {Z.shape[0]} training rows, "
                f"and has {K.shape[1]} columns"
            )
        return K

    def needs_all_rows(self):
        return True

    def diagonal(self, hp, X):
        return jnp.diagonal(self.select(X))

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        K = np.asarray(self.select(X))
        if K.shape[0] != K.shape[1]:
            return f"Precomputed needs the square kernel matrix as X, and found shape {K.shape}; pass K, not features"
        return _asymmetry(K) or _indefiniteness(K)


def _asymmetry(K: np.ndarray) -> str | None:
    largest = float(np.max(np.abs(K)))
    blocks = range(0, len(K), 1024)
    difference = max(float(np.max(np.abs(K[i : i + 1024] - K[:, i : i + 1024].T))) for i in blocks)
    if difference <= max(1e-6, 100 * float(np.finfo(K.dtype).eps)) * largest:
        return None
    return (
        f"the kernel matrix is not symmetric: K and K' differ by {difference:.3g} (largest entry {largest:.3g}); "
        "pass (K + K')/2 if that is meant"
    )


def _indefiniteness(K: np.ndarray) -> str | None:
    low, high = _extreme_eigenvalues(K)
    allowed = max(1e-6, 100 * len(K) * float(np.finfo(K.dtype).eps)) * max(high, -low)
    if low >= -allowed:
        return None
    return (
        f"the kernel matrix is far from positive semidefinite: eigenvalue {low:.3g} against a largest of {high:.3g}; "
        f"add at least {-low:.3g} to its diagonal or clip its negative eigenvalues to 0"
    )


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


# It reads a kernel matrix, so no instance accepts three columns of features.
EXAMPLES: list[Kernel] = []
