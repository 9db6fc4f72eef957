"""A bare callable as a kernel."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ..types import static
from .base import Kernel

__all__ = ["Function"]


class Function(Kernel):
    """A kernel given by a callable of two rows.

    Problem: k(x, z) = function(x, z), symmetric and positive semidefinite, x and z of shape (d,).  It
    has no hyperparameters; a kernel that has some subclasses `Kernel`.
    Derivative: in X, by JAX through the callable.
    Source: none; symmetry and definiteness are tried on a few rows, beyond them they are the caller's word.
    """

    function: Callable[[Any, Any], Any] = static()

    def k(self, x, z, hp):
        return jnp.asarray(self.function(x, z), x.dtype)

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))

    def _formula(self, x, z, hp):
        return self.function(x, z)


def _inverse_multiquadric(x, z):
    return 1.0 / (1.0 + jnp.sum((x - z) ** 2))


EXAMPLES = [Function(_inverse_multiquadric), Function(_inverse_multiquadric, columns=(0, 1))]
