"""A multiple of a kernel."""

from typing import Any, ClassVar

import jax.numpy as jnp

from ..domains import Domain, Positive
from .base import Kernel, as_kernel
from .pairs import start
from .rbf import RBF

__all__ = ["Scaled"]


class Scaled(Kernel):
    """A multiple of a kernel.

    Problem: k(x, z) = scale k_1(x, z), scale > 0, 1 at the start; hyperparameters {"scale", "kernel"}.
    Derivative: dK/dscale = K_1.
    Source: textbook.
    """

    kernel: Any
    scale: float | None = None

    domains: ClassVar[dict[str, Domain]] = {"scale": Positive()}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kernel", as_kernel(self.kernel))

    @property
    def held(self) -> tuple[str, ...]:  # type: ignore[override]  # a composite holds what its child holds
        """Dotted paths of the hyperparameters that the child holds."""
        return tuple(f"kernel.{name}" for name in self.kernel.held)

    def k(self, x, z, hp):
        return self.replace(columns=None).cross(hp, x[None, :], z[None, :])[0, 0]

    def init(self, X, y):
        return {"scale": start(self.scale, 1.0, X), "kernel": self.kernel.init(self.select(X), y)}

    def domain_tree(self, hp):
        return {**super().domain_tree({"scale": hp["scale"]}), "kernel": self.kernel.domain_tree(hp["kernel"])}

    def cross(self, hp, X, Z):
        return hp["scale"] * self.kernel.cross(hp["kernel"], self.select(X), self.select(Z))

    def diagonal(self, hp, X):
        return hp["scale"] * self.kernel.diagonal(hp["kernel"], self.select(X))

    def features(self, hp, X):
        phi = self.kernel.features(hp["kernel"], self.select(X))
        return None if phi is None else jnp.sqrt(hp["scale"]) * phi

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        message = self.kernel.problem_with(self.select(X), hp["kernel"])
        return None if message is None else f"kernel: {message}"

    def sound(self, X, hp):
        return self.kernel.sound(self.select(X), hp["kernel"])


EXAMPLES = [Scaled(RBF(), 2.0)]
