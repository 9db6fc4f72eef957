"""The weighted sum of kernels: multiple kernel learning."""

import functools
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ..domains import Domain, NonNegative
from .composite import Composite
from .linear import Linear
from .pairs import start
from .rbf import RBF

__all__ = ["Weighted"]


class Weighted(Composite):
    """Multiple kernels: a sum with weights, themselves hyperparameters.

    Problem: k(x, z) = sum_p beta_p k_p(x, z), beta (P,) not negative and not all 0; beta starts at 1/P.
    Derivative: dK/dbeta_p = K_p; the kernels' own are scaled by beta_p.
    Source: Klatzer & Pock, Continuous hyper-parameter learning for support vector machines, CVWW 2015.
    """

    beta: float | None = None

    domains: ClassVar[dict[str, Domain]] = {"beta": NonNegative()}

    def init(self, X, y):
        count = len(self.kernels)
        beta = start(self.beta, 1.0 / max(count, 1), X)
        return {"beta": jnp.broadcast_to(beta, (count,)) if beta.ndim == 0 else beta, **super().init(X, y)}

    def cross(self, hp, X, Z):
        return self._weigh(hp, self.crosses(hp, X, Z))

    def diagonal(self, hp, X):
        return self._weigh(hp, self.diagonals(hp, X))

    def problem_with(self, X, hp):
        beta, count = np.asarray(hp["beta"]), len(self.kernels)
        if beta.shape != (count,):
            return f"Weighted needs beta with one entry a kernel, shape ({count},), and found shape {beta.shape}"
        if np.all(beta == 0):
            return "Weighted has all beta 0, which makes the kernel 0; give at least one kernel a positive weight"
        return super().problem_with(X, hp)

    def sound(self, X, hp):
        return jnp.any(hp["beta"] != 0) & super().sound(X, hp)

    def _weigh(self, hp, parts):
        return functools.reduce(jnp.add, [hp["beta"][p] * part for p, part in enumerate(parts)])


EXAMPLES = [Weighted([Linear(), RBF(), RBF(gamma=2.0, columns=(1,))])]
