"""How the kernel matrix is stored and multiplied, and where (B) is solved."""

from typing import Any

import jax.numpy as jnp

from ..sparse import Matrix
from .base import Operator, partial_jvp
from .bordered import DIRECT_SIZES, bordered_solve
from .feature_space import factor_solve, feature_factors, feature_solve
from .features import Features
from .gram import Gram, cross_matmul
from .sparse import Sparse

__all__ = [
    "DIRECT_SIZES",
    "Features",
    "Gram",
    "Operator",
    "Sparse",
    "bordered_solve",
    "build",
    "cross_matmul",
    "factor_solve",
    "feature_factors",
    "feature_solve",
    "partial_jvp",
]


def build(kernel: Any, hp: Any, X: Any, offset: bool = False) -> Operator:
    """The operator of a kernel on the rows of X: factored when that is smaller, stored whole otherwise;
    products alone where X is sparse.

    `offset` adds 1 to every entry, the kernel of a regularised bias.
    """
    if isinstance(X, Matrix):
        return Sparse(X.with_ones() if offset else X)
    phi = kernel.features(hp, X)
    if phi is None or phi.shape[1] + offset >= phi.shape[0]:
        return Gram.build(kernel, hp, X, offset)
    return Features(jnp.concatenate([phi, jnp.ones_like(phi[:, :1])], axis=1) if offset else phi)
