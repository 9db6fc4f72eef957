"""What kernels made of kernels share."""

import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ..types import Array
from .base import Kernel, as_kernel

__all__ = ["Composite"]


class Composite(Kernel):
    """Several kernels on the same columns; hp["kernels"] is the list of theirs.

    `columns` selects first; the children's own `columns` count within that selection.
    """

    kernels: Sequence[Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        # JAX rebuilds instances around placeholders: whatever is no sequence passes untouched.
        if isinstance(self.kernels, (list, tuple)):
            object.__setattr__(self, "kernels", tuple(as_kernel(kernel) for kernel in self.kernels))

    @property
    def held(self) -> tuple[str, ...]:  # type: ignore[override]  # a composite holds what its children hold
        """Dotted paths of the hyperparameters that the children hold."""
        return tuple(f"kernels.{p}.{name}" for p, kernel in enumerate(self.kernels) for name in kernel.held)

    def k(self, x, z, hp):
        return self.replace(columns=None).cross(hp, x[None, :], z[None, :])[0, 0]

    def init(self, X, y):
        X = self.select(X)
        return {"kernels": [kernel.init(X, y) for kernel in self.kernels]}

    def domain_tree(self, hp):
        own = {name: value for name, value in hp.items() if name != "kernels"}
        children = zip(self.kernels, hp["kernels"], strict=True)
        return {**super().domain_tree(own), "kernels": [kernel.domain_tree(part) for kernel, part in children]}

    def problem_with(self, X, hp):
        message = super().problem_with(X, hp)
        if message is not None:
            return message
        if not self.kernels:
            return f"{type(self).__name__} needs at least one kernel"
        X = self.select(X)
        for p, (kernel, part) in enumerate(zip(self.kernels, hp["kernels"], strict=True)):
            message = kernel.problem_with(X, part)
            if message is not None:
                return f"kernels[{p}]: {message}"
        return None

    def sound(self, X, hp):
        X, children = self.select(X), zip(self.kernels, hp["kernels"], strict=True)
        return functools.reduce(jnp.logical_and, [kernel.sound(X, part) for kernel, part in children], True)

    def crosses(self, hp, X, Z) -> list[Array]:
        """The children's matrices."""
        X, Z = self.select(X), self.select(Z)
        return [kernel.cross(part, X, Z) for kernel, part in zip(self.kernels, hp["kernels"], strict=True)]

    def diagonals(self, hp, X) -> list[Array]:
        """The children's diagonals."""
        X = self.select(X)
        return [kernel.diagonal(part, X) for kernel, part in zip(self.kernels, hp["kernels"], strict=True)]
