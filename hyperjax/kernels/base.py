"""What a kernel is: a pairwise formula with hyperparameters."""

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np

from ..domains import Domain, Positive
from ..types import Array, Hyperparameters, Module

__all__ = ["Kernel", "as_kernel"]


class Kernel(Module):
    """A kernel k(x, z; hp) between two rows.

    Subclass it with two methods:

        class Mine(hj.kernels.Kernel):
            def k(self, x, z, hp):            # two rows (d,) to a scalar
                return jnp.exp(-hp["gamma"] * jnp.sum(jnp.abs(x - z)))
            def init(self, X, y):
                return {"gamma": 1.0}

    `cross` builds the matrix from `k`; a kernel with a faster formula overrides `cross`.
    `columns` (a tuple of column numbers) makes any kernel look at those columns only.
    """

    domains: ClassVar[dict[str, Domain]] = {}
    """Domains of hyperparameters; an undeclared one is positive."""
    held: ClassVar[tuple[str, ...]] = ()
    """Hyperparameters that tuning leaves alone unless asked."""
    columns: tuple[int, ...] | None = dataclasses.field(default=None, kw_only=True, metadata={"static": True})

    def __post_init__(self) -> None:
        if self.columns is not None:
            columns = np.atleast_1d(np.asarray(self.columns))
            columns = np.flatnonzero(columns) if columns.dtype == bool else columns
            object.__setattr__(self, "columns", tuple(int(c) for c in columns))

    def k(self, x: Array, z: Array, hp: Hyperparameters) -> Array:
        """The kernel of two rows (d,), a scalar."""
        raise NotImplementedError(f"{type(self).__name__} must define k(self, x, z, hp)")

    def init(self, X: Array, y: Array) -> Hyperparameters:
        """Start values of the hyperparameters (X has all columns: use `self.select(X)`)."""
        return {}

    def select(self, X: Any) -> Any:
        """The columns this kernel looks at."""
        return X if self.columns is None else X[:, np.asarray(self.columns)]

    def cross(self, hp: Hyperparameters, X: Array, Z: Array) -> Array:
        """The matrix k(x_i, z_j), shape (rows of X, rows of Z)."""
        X, Z = self.select(X), self.select(Z)
        return jax.vmap(lambda x: jax.vmap(lambda z: self.k(x, z, hp))(Z))(X)

    def diagonal(self, hp: Hyperparameters, X: Array) -> Array:
        """k(x_i, x_i), shape (n,)."""
        return jax.vmap(lambda x: self.k(x, x, hp))(self.select(X))

    def needs_all_rows(self) -> bool:
        """Whether `cross` must be given every training row, as where X is the kernel matrix itself."""
        inside = [v for field in vars(self).values() for v in (field if isinstance(field, (list, tuple)) else [field])]
        return any(v.needs_all_rows() for v in inside if isinstance(v, Kernel))

    def features(self, hp: Hyperparameters, X: Array) -> Array | None:
        """A matrix Phi (n, p) with K = Phi Phi', for kernels that have one with few columns; else None."""
        return None

    def domain_tree(self, hp: Hyperparameters) -> dict[str, Any]:
        """The domains of all hyperparameters, shaped like hp."""
        domains = {name: self.domains.get(name, Positive()) for name in hp}
        return {name: jax.tree.map(lambda _, name=name: domains[name], hp[name]) for name in hp}

    def problem_with(self, X: np.ndarray, hp: dict[str, Any]) -> str | None:
        """Anything wrong with data and hyperparameters beyond their domains, in words (on the host)."""
        if self.columns is None:
            return None
        d = X.shape[1]
        outside = [c for c in self.columns if not -d <= c < d]
        if outside:
            return f"{type(self).__name__} looks at columns {outside}, and X has columns 0 to {d - 1}"
        return None if self.columns else f"{type(self).__name__} has columns=(): give it at least one, or None for all"

    def __add__(self, other: Any) -> "Kernel":
        """k1 + k2: their sum."""
        from .sum import Sum

        return Sum((self, other))

    def __mul__(self, other: Any) -> "Kernel":
        """k1 * k2: their product; with a number, a multiple."""
        from .product import Product
        from .scaled import Scaled

        return Product((self, other)) if callable(other) or isinstance(other, Kernel) else Scaled(self, other)

    __rmul__ = __mul__


def as_kernel(kernel: Any) -> Any:
    """A bare callable k(x, z) becomes a kernel; everything else passes through."""
    from .function import Function

    if callable(kernel) and not isinstance(kernel, (Kernel, jax.Array)):
        return Function(kernel)
    return kernel
