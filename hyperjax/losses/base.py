"""What a loss is: one convex function of one output, and what the library derives from it."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .. import prox as automatic
from ..domains import Domain, Positive
from ..types import Array, Float, Hyperparameters, Module

__all__ = ["Loss"]


class Loss(Module):
    """A convex loss phi(o, y; hp) of one output.

    Subclass it with two methods, nothing else is required:

        class Mine(hj.losses.Loss):
            def phi(self, o, y, hp):          # elementwise; every leaf of hp is a scalar or (n,)
                return hp["C"] * jnp.logaddexp(0.0, -y * o)
            def init(self, X, y):             # start values, a dict
                return {"C": 1.0}

    Everything else has an automatic version: the proximal map and its slope, the outputs at
    which a coefficient is optimal, whether phi has kinks.  Closed forms are only faster.
    """

    labels: ClassVar[bool] = False
    """True for margin losses: y must be -1 or +1."""
    smooth: ClassVar[bool | None] = None
    """True: phi is differentiable in o.  False: it has kinks.  None: found out by probing phi."""
    flat: ClassVar[bool] = True
    """False for losses without linear pieces, where the bias can never be an interval."""
    domains: ClassVar[dict[str, Domain]] = {}
    """Domains of hyperparameters; an undeclared one is positive."""
    held: ClassVar[tuple[str, ...]] = ()
    """Hyperparameters that tuning leaves alone unless asked."""

    def phi(self, o: Float[Array, " n"], y: Float[Array, " n"], hp: Hyperparameters) -> Float[Array, " n"]:
        """Loss values, elementwise, shape (n,)."""
        raise NotImplementedError(f"{type(self).__name__} must define phi(self, o, y, hp)")

    def init(self, X: Any, y: Any) -> Hyperparameters:
        """Start values of the hyperparameters."""
        raise NotImplementedError(f"{type(self).__name__} must define init(self, X, y)")

    def expand(self, hp: Hyperparameters) -> "tuple[Loss, Hyperparameters]":
        """The loss and hyperparameters the solvers see: leaves scalar or one value a sample."""
        return self, hp

    def prox(
        self, v: Float[Array, " n"], y: Float[Array, " n"], ts: Float[Array, " n"], hp: Hyperparameters
    ) -> Float[Array, " n"]:
        """argmin_p ts * phi(p, y; hp) + (p - v)^2 / 2, elementwise, differentiable in v, y, ts, hp."""
        return automatic.prox(self, v, y, ts, hp)

    def interval(
        self, z: Float[Array, " n"], y: Float[Array, " n"], s: Float[Array, " n"], hp: Hyperparameters
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The closed interval [lo, hi] of outputs o with -z in s * d phi(o); infinite ends allowed.

        z outside the range of -s * d phi is first moved to its nearest end.
        """
        return automatic.interval(self, z, y, s, hp)

    def scale(self, y: Float[Array, " n"], hp: Hyperparameters) -> Float[Array, " n"]:
        """Slope scale c (n,): the larger |phi'| one unit to either side of the target.

        The target is 0 for margin losses (outputs -1 and 1) and y for regression.
        """
        centre = jnp.zeros_like(y) if self.labels else y
        one = jnp.ones_like(y)
        below = automatic.slope(self, centre - one, y, hp)
        above = automatic.slope(self, centre + one, y, hp)
        return jnp.maximum(jnp.abs(below), jnp.abs(above))

    def domain_tree(self, hp: Hyperparameters) -> dict[str, Any]:
        """The domain of every hyperparameter, a tree of the same shape as hp."""

        def fill(name: str, value: Any) -> Any:
            domain = self.domains.get(name, Positive())
            return jax.tree.map(lambda _: domain, value)

        return {name: fill(name, value) for name, value in hp.items()}

    def problem_with(self, y: np.ndarray, hp: dict[str, Any]) -> str | None:
        """Anything else wrong with labels and hyperparameters, in words (called on the host)."""
        return None
