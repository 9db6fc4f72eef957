"""The polynomial kernel, differentiable in its degree too."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ..domains import Domain, NonNegative, Positive
from ..types import Array
from .base import Kernel
from .pairs import default_gamma, start

__all__ = ["Polynomial"]

_SAMPLE = 200


class Polynomial(Kernel):
    """The inhomogeneous polynomial kernel.

    Problem: k(x, z) = p(gamma x'z + coef0, degree), where p(b, q) = b^q for b >= 0 and
    |b|^q cos(pi q) for b < 0, the real part of the power, equal to it for whole q.  gamma starts at
    1/(d var(X)); coef0 = 1 and degree = 3 are held unless asked.
    Derivative: dp/db = q p(b, q - 1); dp/dq = log|b| p(b, q), for b < 0 less pi sin(pi q) |b|^q;
    0 in q at b = 0.
    Source: textbook (positive semidefinite for whole degrees and coef0 >= 0).
    """

    gamma: float | None = None
    coef0: float | None = None
    degree: float | None = None

    domains: ClassVar[dict[str, Domain]] = {"gamma": Positive(), "coef0": NonNegative(), "degree": Positive()}
    held: ClassVar[tuple[str, ...]] = ("coef0", "degree")

    def k(self, x, z, hp):
        return self._power(hp, jnp.sum(x * z))

    def init(self, X, y):
        X = self.select(X)
        return {
            "gamma": start(self.gamma, default_gamma(X), X),
            "coef0": start(self.coef0, 1.0, X),
            "degree": start(self.degree, 3.0, X),
        }

    def cross(self, hp, X, Z):
        return self._power(hp, self.select(X) @ self.select(Z).T)

    def diagonal(self, hp, X):
        X = self.select(X)
        return self._power(hp, jnp.sum(X * X, axis=1))

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        degree = float(hp["degree"])
        if message is not None or degree == round(degree):
            return message
        rows = self.select(X)[:: max(1, len(X) // _SAMPLE)]
        lowest = float(np.min(float(hp["gamma"]) * (rows @ rows.T) + float(hp["coef0"])))
        if lowest >= 0:
            return None
        return (
            f"Polynomial has degree {degree:g}, not a whole number, while gamma x'z + coef0 reaches {lowest:.3g} in X; "
            "use a whole degree, a larger coef0, or features that are not negative"
        )

    def _power(self, hp, products):
        base = hp["gamma"] * products + hp["coef0"]
        return _power(base, jnp.asarray(hp["degree"], base.dtype))


@jax.custom_jvp
def _power(base: Array, degree: Array) -> Array:
    """p(b, q) of the class docstring, elementwise in b."""
    at_zero = jnp.where(degree == 0, 1.0, 0.0).astype(base.dtype)
    sign = jnp.where(base < 0, jnp.cos(jnp.pi * degree), 1.0)
    return jnp.where(base == 0, at_zero, sign * jnp.power(_magnitude(base), degree))


def _magnitude(base: Array) -> Array:
    """|b|, and 1 where b = 0: safe to take the logarithm of."""
    return jnp.where(base == 0, 1.0, jnp.abs(base))


def _power_jvp(primals, tangents):
    (base, degree), (base_dot, degree_dot) = primals, tangents
    value = _power(base, degree)
    slope = jnp.zeros_like(value)
    if not isinstance(base_dot, SymbolicZero):
        slope = slope + degree * _power(base, degree - 1.0) * base_dot
    if not isinstance(degree_dot, SymbolicZero):
        magnitude = _magnitude(base)
        turning = jnp.where(base < 0, jnp.pi * jnp.sin(jnp.pi * degree) * jnp.power(magnitude, degree), 0.0)
        slope = slope + (value * jnp.log(magnitude) - turning) * degree_dot
    return value, slope


_power.defjvp(_power_jvp, symbolic_zeros=True)

EXAMPLES = [Polynomial(), Polynomial(gamma=0.3, coef0=0.5, degree=2.0), Polynomial(degree=2.5, columns=(0, 1))]
