"""Data in frames of a few sizes: one compiled program then serves many data sets.

A search compiles for seconds, and cross-validation around an estimator hands it as many shapes as there are splits.
A row of weight 0 is absent by the library's design, and a column of zeros adds nothing to a distance or a product,
so small data are put into the next larger frame.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse

from .. import kernels
from ..problem import Problem
from ..solve import Solution
from ..sparse import Matrix
from ..types import Hyperparameters

__all__ = ["Frame", "decision", "frame_of", "shrink"]

SMALLEST = 320
"""Rows of the smallest frame; solving so few takes milliseconds, filled or not."""
LARGEST = 1920
"""Rows of the largest frame; with more, solving takes longer than compiling."""
COLUMNS = 32
"""Columns of the smallest frame, for few rows and kernels that do not notice columns of zeros."""
BLIND = (kernels.RBF, kernels.Laplacian, kernels.Linear, kernels.Polynomial)
MIXTURES = (kernels.Sum, kernels.Product, kernels.Weighted)


class Frame(NamedTuple):
    """How many rows and columns the programs see."""

    rows: int
    columns: int

    def fill(self, X: np.ndarray) -> np.ndarray:
        """X in the frame: its first row over and over, whose kernel values are as sound as the others, then zeros.

        Sparse rows stay as they are.
        """
        if scipy.sparse.issparse(X):
            return X
        return np.pad(X[self._rows(len(X))], ((0, 0), (0, self.columns - X.shape[1])))

    def targets(self, y: np.ndarray) -> np.ndarray:
        """(.., n) targets of the same rows."""
        return y[..., self._rows(y.shape[-1])]

    def weights(self, values: Any) -> np.ndarray:
        """(.., n) weights, masks or coefficients, 0 for the rows added."""
        values = np.asarray(values)
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, self.rows - values.shape[-1])])

    def _rows(self, n: int) -> np.ndarray:
        return np.r_[np.arange(n), np.zeros(self.rows - n, int)]


def frame_of(problem: Problem, hp: Hyperparameters, n: int, d: int) -> Frame:
    """The frame of n rows and d columns; exactly those where the problem counts its rows itself."""
    counted = any(n in np.shape(leaf) for leaf in jax.tree.leaves((problem, hp)))
    if counted or problem.kernel.needs_all_rows():
        return Frame(n, d)
    return Frame(_rounded(n), max(d, COLUMNS) if n <= SMALLEST and _blind(problem.kernel) else d)


def shrink(solution: Solution, n: int, d: int) -> Solution:
    """The solution without the rows and columns that filled the frame, as NumPy arrays.

    NumPy arrays survive pickling and copying with 64 bits wherever JAX is set to 32.
    """
    host: Solution = host_arrays(solution)
    if isinstance(host.X, Matrix):
        return host
    return host.replace(X=host.X[:n, :d], z=host.z[..., :n], outputs=host.outputs[..., :n])


def decision(solution: Solution, X: np.ndarray) -> np.ndarray:
    """The outputs of a shrunk solution at new rows, (m,) or (k, m), by programs that serve many shapes."""
    if isinstance(solution.X, Matrix):
        return np.asarray(solution.decision(X))
    n, d = solution.X.shape
    frame = frame_of(solution.problem, solution.hp, n, d)
    new = X if solution.problem.kernel.needs_all_rows() else Frame(_rounded(len(X)), frame.columns).fill(X)
    filled = solution.replace(X=frame.fill(np.asarray(solution.X)), z=frame.weights(solution.z))
    return np.asarray(filled.decision(new))[..., : len(X)]


def host_arrays(tree: Any) -> Any:
    """Every JAX array of a tree as a NumPy array."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def _rounded(n: int) -> int:
    """The rows of the frame: at most an eighth more, from the smallest frame on."""
    if n > LARGEST:
        return n
    step = 1 << max(n.bit_length() - 4, 0)
    return max(SMALLEST, -(-n // step) * step)


def _blind(kernel: Any) -> bool:
    """Whether columns of zeros change neither the kernel nor the shapes of its hyperparameters."""
    if kernel.columns is not None:
        return False
    return type(kernel) in BLIND or (type(kernel) in MIXTURES and all(_blind(part) for part in kernel.kernels))
