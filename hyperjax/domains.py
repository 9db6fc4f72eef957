"""The ranges hyperparameters live in, and their unconstrained coordinates.

A domain maps a natural value to an unconstrained one (`to_real`) and back (`from_real`), and
says what is wrong with a value (`problem_with`, on the host).  A tree of domains lies beside
the tree of values; the values stay plain arrays.
"""

import jax.numpy as jnp
import numpy as np

from .types import Array, Module, static

__all__ = ["Domain", "Interval", "NonNegative", "Positive", "Real", "Simplex"]


class Domain(Module):
    """A range with unconstrained coordinates; subclasses fill the three methods."""

    def to_real(self, value: Array) -> Array:
        raise NotImplementedError

    def from_real(self, theta: Array) -> Array:
        raise NotImplementedError

    def problem_with(self, value: np.ndarray) -> str | None:
        """What keeps `value` out of the domain, in words; None when it lies inside."""
        return None


class Positive(Domain):
    """value > 0, tuned as theta = log(value)."""

    def to_real(self, value):
        return jnp.log(value)

    def from_real(self, theta):
        return jnp.exp(theta)

    def problem_with(self, value):
        return None if np.all(value > 0) else "must be positive"


class Real(Domain):
    """Any finite value, tuned as it is."""

    def to_real(self, value):
        return jnp.asarray(value)

    def from_real(self, theta):
        return theta


class NonNegative(Real):
    """value >= 0, tuned as it is with a bound at 0 (a logarithm could not hold the zero)."""

    def problem_with(self, value):
        return None if np.all(value >= 0) else "must not be negative"


class Interval(Domain):
    """low < value < high, tuned through the logistic map."""

    low: float = static(default=0.0)
    high: float = static(default=1.0)

    def to_real(self, value):
        return jnp.log(value - self.low) - jnp.log(self.high - value)

    def from_real(self, theta):
        return self.low + (self.high - self.low) / (1.0 + jnp.exp(-theta))

    def problem_with(self, value):
        inside = np.all((value > self.low) & (value < self.high))
        return None if inside else f"must lie strictly between {self.low} and {self.high}"


class Simplex(Domain):
    """A vector of positive numbers that sum to 1, tuned as logarithms up to a common shift."""

    def to_real(self, value):
        theta = jnp.log(value)
        return theta - jnp.mean(theta)

    def from_real(self, theta):
        weights = jnp.exp(theta - jnp.max(theta))
        return weights / jnp.sum(weights)

    def problem_with(self, value):
        if np.any(value <= 0):
            return "must be positive"
        return None if abs(float(np.sum(value)) - 1.0) < 1e-3 else "must sum to 1"
