"""K = X X' with sparse rows X: only products, K and X'X are never formed."""

from ..sparse import Matrix
from ..types import Array, Float, Int
from .base import Operator

__all__ = ["Sparse"]


class Sparse(Operator):
    """K = Phi Phi' with a sparse Phi (n, p): a product costs two passes over its entries a fold.

    Systems are solved by conjugate gradients alone, so it serves differentiable losses with Newton in p unknowns, and
    with Trust and the derivative rule in n, where ProxGrad serves kinked ones too.
    """

    phi: Matrix

    @property
    def n(self) -> int:
        return self.phi.shape[0]

    def matmul(self, v: Float[Array, "T n"]) -> Float[Array, "T n"]:
        return v @ self.phi @ self.phi.T

    def whole(self) -> Float[Array, "n n"]:
        raise ValueError(
            "X is sparse and this needs its n x n kernel matrix: use solver=None, folds in place of leave-one-out, or "
            "pass X.toarray()"
        )

    def block(self, index: Int[Array, " m"]) -> Float[Array, "m m"]:
        return self.whole()

    def diagonal(self) -> Float[Array, " n"]:
        return self.phi.diagonal()

    def factors(self) -> Matrix:
        # it stands for an array: `v @ phi`, `w @ phi.T`, shape and dtype are there, rows one by one are not
        return self.phi
