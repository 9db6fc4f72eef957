"""What a kernel is: a pairwise formula with hyperparameters."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..domains import Domain, Positive
from ..types import Array, Float, Hyperparameters, Module
from ._matrices import asymmetry, indefiniteness

__all__ = ["Kernel", "as_kernel"]

_ROWS = 8
"""Rows on which a formula is tried."""


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

    def k(self, x: Float[Array, " d"], z: Float[Array, " d"], hp: Hyperparameters) -> Float[Array, ""]:
        """The kernel of two rows (d,), a scalar."""
        raise NotImplementedError(f"{type(self).__name__} must define k(self, x, z, hp)")

    def init(self, X: Any, y: Any) -> Hyperparameters:
        """Start values of the hyperparameters (X has all columns: use `self.select(X)`)."""
        return {}

    def select(self, X: Any) -> Any:
        """The columns this kernel looks at."""
        return X if self.columns is None else X[:, np.asarray(self.columns, int)]

    def cross(self, hp: Hyperparameters, X: Float[Array, "n d"], Z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """The matrix k(x_i, z_j), shape (rows of X, rows of Z)."""
        X, Z = self.select(X), self.select(Z)
        return jax.vmap(lambda x: jax.vmap(lambda z: self.k(x, z, hp))(Z))(X)

    def legible(self, K: Float[Array, "n n"]) -> Array | bool:
        """Whether `again` may be asked, with blocks of this matrix of all rows; otherwise `cross` is, once more."""
        return True

    def again(
        self, hp: Hyperparameters, X: Float[Array, "n d"], Z: Float[Array, "m d"], K: Float[Array, "n m"]
    ) -> Float[Array, "n m"]:
        """`cross` once more, with its values K at hand: for kernels that are differentiated with less work that way."""
        return self.cross(hp, X, Z)

    def diagonal(self, hp: Hyperparameters, X: Float[Array, "n d"]) -> Float[Array, " n"]:
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
        if self.columns is not None:
            d = X.shape[1]
            outside = [c for c in self.columns if not -d <= c < d]
            if outside:
                return f"{type(self).__name__} looks at columns {outside}, and X has columns 0 to {d - 1}"
            if not self.columns:
                return f"{type(self).__name__} has columns=(): give it at least one, or None for all"
        # a kernel that builds its own matrix is the library's, or answers for itself
        return self._tried(X, hp) if type(self).cross is Kernel.cross else None

    def sound(self, X: Array, hp: Hyperparameters) -> Array | bool:
        """The part of `problem_with` that costs next to nothing, for traced values: a code then says no."""
        return True

    @property
    def _name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def _formula(self, x: Array, z: Array, hp: Hyperparameters) -> Any:
        """k as its author wrote it, before it is made a number of X's type."""
        return self.k(x, z, hp)

    def _tried(self, X: np.ndarray, hp: dict[str, Any]) -> str | None:
        """What k does on a few rows that no kernel may; definiteness beyond them is its author's word."""
        rows, hp, name = jnp.asarray(self.select(X)[:_ROWS]), jax.tree.map(jnp.asarray, hp), f"the kernel {self._name}"
        try:
            out = jax.eval_shape(self._formula, rows[0], rows[0], hp)
        except (TypeError, ValueError) as error:
            return f"{name} fails on two rows, make it of jax.numpy operations: {str(error).splitlines()[0][:150]}"
        if getattr(out, "shape", None) != ():
            found = f"shape {out.shape}" if hasattr(out, "shape") else f"a {type(out).__name__}"
            return f"{name} must return a scalar for two rows, and returned {found}; sum over features"
        if jnp.issubdtype(out.dtype, jnp.complexfloating):
            return f"{name} returns complex numbers; take their real part or absolute value"
        K = np.asarray(_matrix(self.replace(columns=None), hp, rows), rows.dtype)
        if not np.all(np.isfinite(K)):
            return f"{name} is not finite on the first {len(rows)} rows of X; guard its divisions"
        found = asymmetry(K)
        if found:
            return f"{name} is not symmetric: k(x, z) and k(z, x) {found}; use (k(x, z) + k(z, x))/2 if that is meant"
        found = indefiniteness(K)
        if found is None:
            return None
        return (
            f"{name} is far from positive semidefinite: its matrix of the first {len(rows)} rows of X has eigenvalue "
            f"{found[0]:.3g} against a largest of {found[1]:.3g}; change its formula or its hyperparameters"
        )

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


@jax.jit
def _matrix(kernel: Kernel, hp: Hyperparameters, rows: Array) -> Array:
    return kernel.cross(hp, rows, rows)
