"""Sparse rows: a matrix kept as its entries other than zero, for text and other wide data.

    X = hj.sparse.matrix(scipy_matrix)        # once; every verb takes X, or the SciPy matrix itself
    v @ X, w @ X.T                            # (T, n) -> (T, d) and back, under jit, vmap and both modes of derivative

Both products are gathers and a short sorted sum: the entries are stored twice, row by row and column by column.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import lax
from jax.core import Tracer

from .types import Array, Module, static

__all__ = ["Matrix", "matrix"]

WIDTH = 8
"""Entries of a piece."""


class Sums(Module):
    """The product A v with a matrix A (m, k) known by its entries, row by row.

    The entries of a row are cut into pieces of WIDTH, the last one filled up with zeros.  The sums of all pieces are
    one elementwise expression, which compilers make vector instructions of; an eighth as many numbers are left for
    the sorted segment sum that ends it.  Of the forms tried this one is nearest to SciPy's compiled loops
    (experiments/speed/sparse_products.py).
    """

    index: Array
    """Columns of the entries, (WIDTH, pieces)."""
    value: Array
    """The entries, zeros where a piece is not full."""
    row: Array
    """The row of every piece, in ascending order."""
    size: int = static()
    """m."""

    @classmethod
    def of(cls, A: Any) -> "Sums":
        """From a canonical CSR matrix of SciPy."""
        counts = np.diff(A.indptr).astype(np.int64)
        pieces = -(-counts // WIDTH)
        first = WIDTH * (np.cumsum(pieces) - pieces)
        place = np.repeat(first - A.indptr[:-1], counts) + np.arange(A.nnz)
        index = np.zeros(WIDTH * pieces.sum(), np.int32)
        value = np.zeros(index.shape, A.dtype)
        index[place], value[place] = A.indices, A.data
        row = np.repeat(np.arange(A.shape[0], dtype=np.int32), pieces)
        index, value = (jnp.asarray(part.reshape(-1, WIDTH).T) for part in (index, value))
        return cls(index, value, jnp.asarray(row), A.shape[0])

    def __call__(self, v: Array) -> Array:
        """A v for v (k,) or (k, T)."""
        return _sum(self, v)


@jax.jit  # traced once for the many products of a solve
def _sum(A: Sums, v: Array) -> Array:
    values = lax.stop_gradient(A.value)

    def term(k: int) -> Array:
        found = v.at[A.index[k]].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return (values[k] if v.ndim == 1 else values[k, :, None]) * found

    out = term(0)
    for k in range(1, WIDTH):
        out = out + term(k)
    return jax.ops.segment_sum(
        out, A.row, A.size, indices_are_sorted=True, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS
    )


class Matrix(Module):
    """A sparse matrix (n, d), immutable, that takes the place of a dense X for linear kernels.

    Made by `hyperjax.sparse.matrix`.  `v @ X` and `w @ X.T` are differentiable in v and w to any order; the entries of
    X are constants.  No dense (n, d) array is ever made of it.
    """

    by_row: Sums
    by_column: Sums
    ones: int = static(default=0)
    """1: a last column of ones follows (a regularised bias); -1: a last row of ones, its transpose."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.by_row.size + (self.ones < 0), self.by_column.size + (self.ones > 0)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def dtype(self) -> Any:
        """The float type of the entries."""
        return self.by_row.value.dtype

    @property
    def T(self) -> "Matrix":
        """The transpose: the same arrays in exchanged roles."""
        return Matrix(self.by_column, self.by_row, -self.ones)

    def __len__(self) -> int:
        return self.shape[0]

    def with_ones(self) -> "Matrix":
        """The matrix with one more column of ones."""
        return self.replace(ones=1)

    def astype(self, dtype: Any) -> "Matrix":
        """The same entries in another float type."""
        return self._map(lambda value: value.astype(dtype))

    def squared(self) -> "Matrix":
        """Every entry squared."""
        return self._map(jnp.square)

    def diagonal(self) -> Array:
        """The squared lengths of the rows (n,): the diagonal of X X'."""
        value, zero = lax.stop_gradient(self.by_row.value), jnp.zeros(self.by_row.size, self.dtype)
        own = zero.at[self.by_row.row].add(jnp.sum(value * value, axis=0), indices_are_sorted=True)
        return own + 1.0 if self.ones > 0 else own

    def __rmatmul__(self, v: Any) -> Array:
        v = jnp.asarray(v)
        n, d = self.shape
        if v.ndim == 0 or v.shape[-1] != n:
            raise ValueError(f"{v.shape} @ {self.shape}: the last axis on the left must have {n} entries")
        return _product(self, v.reshape(-1, n)).reshape(*v.shape[:-1], d)

    def __matmul__(self, v: Any) -> Array:
        if isinstance(v, Matrix):
            raise ValueError(
                f"the product of sparse matrices {self.shape} and {v.shape} would be dense: use folds in place of "
                "leave-one-out, or X.to_scipy().toarray()"
            )
        return (jnp.asarray(v).T @ self.T).T

    __array_ufunc__ = None  # NumPy then leaves `v @ X` to the line above

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise ValueError(
            f"a sparse matrix {self.shape} was about to be made dense: use to_scipy(), and .toarray() of it"
        )

    def to_scipy(self) -> scipy.sparse.csr_matrix:
        """The matrix for SciPy (without the column of ones)."""
        if isinstance(self.by_row.value, Tracer):
            raise ValueError("the matrix is being traced: to_scipy() works outside jit, grad and vmap only")
        index, value = (np.asarray(part).T.ravel() for part in (self.by_row.index, self.by_row.value))
        row = np.repeat(np.asarray(self.by_row.row), WIDTH)
        real, shape = value != 0, (self.by_row.size, self.by_column.size)
        return scipy.sparse.csr_matrix((value[real], (row[real], index[real])), shape=shape)

    def _map(self, change: Any) -> "Matrix":
        rows, columns = (side.replace(value=change(side.value)) for side in (self.by_row, self.by_column))
        return Matrix(rows, columns, self.ones)


def _product(X: Matrix, v: Array) -> Array:
    """v X for v (T, n), as the part y of the solution of  [I 0; -X' I] (v, y) = (v, 0).

    Transposing gathers gives scatters, many times slower than the product with the transpose that is there already;
    a linear solve knows its transpose, and keeps it in every mode and order of derivative.
    """
    n = X.shape[0]

    def plain(A: Matrix, v: Array) -> Array:
        own = v[:, : A.by_row.size]
        out = A.by_column(own[0])[None, :] if v.shape[0] == 1 else A.by_column(own.T).T
        if A.ones < 0:
            out = out + v[:, -1:]
        return jnp.concatenate([out, jnp.sum(own, axis=1, keepdims=True)], axis=1) if A.ones > 0 else out

    def join(v: Array, y: Array) -> Array:
        return jnp.concatenate([v, y], axis=1)

    def matvec(x: Array) -> Array:
        return join(x[:, :n], x[:, n:] - plain(X, x[:, :n]))

    def solve(_: Any, r: Array) -> Array:
        return join(r[:, :n], r[:, n:] + plain(X, r[:, :n]))

    def transposed(_: Any, r: Array) -> Array:
        return join(r[:, :n] + plain(X.T, r[:, n:]), r[:, n:])

    right = join(v, jnp.zeros((v.shape[0], X.shape[1]), v.dtype))
    return lax.custom_linear_solve(matvec, right, solve, transposed)[:, n:]


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix, SciPy's or this module's."""
    return isinstance(X, Matrix) or scipy.sparse.issparse(X)


def matrix(X: Any, dtype: Any = None, name: str = "X") -> Matrix:
    """A `Matrix` of a SciPy sparse matrix or array; nothing is made dense, and X itself stays as it is.

    Duplicate entries are added up, explicit zeros dropped, columns sorted.  float32 and float64 are kept, integers and
    booleans become the working float type, complex numbers and NaN are refused; `name` is for messages.
    """
    if isinstance(X, Matrix):
        return X if dtype in (None, X.dtype) else X.astype(dtype)
    if not scipy.sparse.issparse(X):
        raise ValueError(f"{name} is a {type(X).__name__}: pass a SciPy sparse matrix, such as scipy.sparse.csr_matrix")
    if X.ndim != 2:
        raise ValueError(f"{name} has shape {X.shape}: give it two dimensions, rows and columns")
    kind = X.dtype
    if kind.kind not in "biuf":
        what = "complex numbers" if kind.kind == "c" else f"values of type {kind}"
        raise ValueError(f"{name} holds {what}: convert it to real numbers first")
    if dtype is None:
        dtype = kind if kind in (np.dtype("float32"), np.dtype("float64")) else np.dtype(float)
    # a copy: SciPy sorts and adds up in place
    rows = scipy.sparse.csr_matrix(X, dtype=jax.dtypes.canonicalize_dtype(dtype), copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if bad.size:
        at = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1, int(rows.indices[bad[0]])
        raise ValueError(
            f"{name} holds {bad.size} NaN or infinite value(s), the first {rows.data[bad[0]]} at {at}: "
            "remove or impute them first"
        )
    with jax.ensure_compile_time_eval():
        return Matrix(Sums.of(rows), Sums.of(rows.T.tocsr()))
