"""A bare callable as a kernel."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import static
from .base import Kernel

__all__ = ["Function"]

_ROWS = 8


class Function(Kernel):
    """A kernel given by a callable of two rows.

    Problem: k(x, z) = function(x, z), symmetric and positive semidefinite, x and z of shape (d,).  It
    has no hyperparameters; a kernel that has some subclasses `Kernel`.
    Derivative: in X, by JAX through the callable.
    Source: none; symmetry is tried on a few rows, definiteness is the caller's word.
    """

    function: Callable[[Any, Any], Any] = static()

    def k(self, x, z, hp):
        return jnp.asarray(self.function(x, z), x.dtype)

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        rows = jnp.asarray(self.select(X)[:_ROWS])
        name = getattr(self.function, "__name__", repr(self.function))
        shape = jnp.shape(jax.eval_shape(self.function, rows[0], rows[0]))
        if shape != ():
            return f"the kernel {name} must return a scalar for two rows, and returned shape {shape}; sum over features"
        K = np.asarray(self.replace(columns=None).cross(hp, rows, rows))
        if not np.all(np.isfinite(K)):
            return f"the kernel {name} is not finite on the first {len(rows)} rows of X; guard its divisions"
        difference, largest = float(np.max(np.abs(K - K.T))), float(np.max(np.abs(K)))
        if difference > max(1e-6, 100 * float(np.finfo(K.dtype).eps)) * largest:
            return (
                f"the kernel {name} is not symmetric: k(x, z) and k(z, x) differ by {difference:.3g} "
                f"(largest entry {largest:.3g}); use (k(x, z) + k(z, x))/2 if that is meant"
            )
        return None


def _inverse_multiquadric(x, z):
    return 1.0 / (1.0 + jnp.sum((x - z) ** 2))


EXAMPLES = [Function(_inverse_multiquadric), Function(_inverse_multiquadric, columns=(0, 1))]
