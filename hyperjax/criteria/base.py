"""What a criterion is: held-out outputs to a scalar that tuning makes small."""

import inspect
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..folds import Folds
from ..types import Array, Hyperparameters, Module

__all__ = ["Criterion", "apply"]


class Criterion(Module):
    """A validation function of held-out outputs o and targets y.

    Subclass it with `value(self, o, y, w, hp)`, o, y and the weights w of shape (n,); rows no fold tests come with
    w = 0.  Calling an instance takes care of folds and averages over repeats.  hp is the criterion's own part of
    the hyperparameters, hp["criterion"], empty unless it has some.
    """

    smooth: ClassVar[bool] = True
    """Whether the value is differentiable in o."""

    def value(self, o: Array, y: Array, w: Array, hp: Hyperparameters) -> Array:
        """The value of one repeat, a scalar."""
        raise NotImplementedError(f"{type(self).__name__} must define value(self, o, y, w, hp)")

    def __call__(self, o: Array, y: Array, folds: Folds | None = None, hp: Hyperparameters | None = None) -> Array:
        """The value at outputs (n,), or its mean over repeats (R, n)."""
        own = (hp or {}).get("criterion", {})
        y = jnp.asarray(y, o.dtype)
        if folds is None:
            tested = jnp.ones_like(o)
        else:
            tested = (jnp.sum(folds.test.reshape(folds.repeats, -1, y.shape[0]), axis=1) > 0).astype(o.dtype)
            tested = tested.reshape(o.shape)
        if o.ndim == 1:
            return self.value(o, y, tested, own)
        return jnp.mean(jax.vmap(lambda o, w: self.value(o, y, w, own))(o, tested))


def apply(criterion: Any, o: Array, y: Array, folds: Folds, hp: Hyperparameters) -> Array:
    """The value of a Criterion, or of any callable of (o, y), with folds and hp passed to those that take them."""
    if isinstance(criterion, Criterion):
        return criterion(o, y, folds, hp)
    names = inspect.signature(criterion).parameters
    extra = {name: value for name, value in (("folds", folds), ("hp", hp)) if name in names}
    return criterion(o, y, **extra)
