"""What a criterion is: held-out outputs to a scalar that tuning makes small."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..domains import Domain, Positive
from ..folds import Folds
from ..plugins import traceable
from ..types import Array, ArrayLike, Float, Hyperparameters, Module, Shaped

__all__ = ["Criterion", "apply", "hard", "number", "refuse"]


class Criterion(Module):
    """A validation function of held-out outputs o and targets y: at least 0, and small is good.

    Subclass it with `value(self, o, y, w, hp)`, o, y and the weights w of shape (n,); rows no fold tests come with
    w = 0.  Calling an instance takes care of folds, weights, averages over repeats, and of outputs that are not
    finite (a fold that failed), which give NaN.  hp is the criterion's own part of the hyperparameters,
    hp["criterion"], empty unless `init` gives it some.
    """

    smooth: ClassVar[bool] = True
    """Whether the value is continuously differentiable in o."""
    labels: ClassVar[bool] = False
    """Whether it judges two classes: y must then be -1 and +1."""
    domains: ClassVar[dict[str, Domain]] = {}
    """Domains of its own hyperparameters; an undeclared one is positive."""

    def value(
        self, o: Float[Array, " n"], y: Float[Array, " n"], w: Float[Array, " n"], hp: Hyperparameters
    ) -> Float[Array, ""]:
        """The value of one repeat, a scalar."""
        raise NotImplementedError(f"{type(self).__name__} must define value(self, o, y, w, hp)")

    def hard(
        self, o: Float[Array, " n"], y: Float[Array, " n"], w: Float[Array, " n"], hp: Hyperparameters
    ) -> Float[Array, ""]:
        """What people report in its place, for one repeat: the value itself unless a subclass says otherwise."""
        return self.value(o, y, w, hp)

    def init(self, y: Any) -> Hyperparameters:
        """Start values of its own hyperparameters, hp["criterion"]."""
        return {}

    def domain_tree(self, hp: Hyperparameters) -> dict[str, Any]:
        """The domain of each of its own hyperparameters, a tree of the same shape."""

        def fill(name: str, value: Any) -> Any:
            domain = self.domains.get(name, Positive())
            return jax.tree.map(lambda _: domain, value)

        return {name: fill(name, value) for name, value in hp.items()}

    def problem_with(self, y: np.ndarray) -> str | None:
        """What keeps it from judging outputs for y, its own fields included, in words (called on the host)."""
        return None

    def __call__(
        self,
        o: Shaped[ArrayLike, "*repeats n"],
        y: Shaped[ArrayLike, " n"],
        folds: Folds | None = None,
        hp: Hyperparameters | None = None,
        weights: Shaped[ArrayLike, " n"] | None = None,
    ) -> Float[Array, ""]:
        """The value at outputs (n,), or its mean over repeats (R, n); weights (n,) count a row more or less."""
        return _evaluate(self.value, o, y, folds, hp, weights)

    def hard_value(
        self,
        o: Shaped[ArrayLike, "*repeats n"],
        y: Shaped[ArrayLike, " n"],
        folds: Folds | None = None,
        hp: Hyperparameters | None = None,
        weights: Shaped[ArrayLike, " n"] | None = None,
    ) -> Float[Array, ""]:
        """The same call for `hard`."""
        return _evaluate(self.hard, o, y, folds, hp, weights)


def _evaluate(measure: Callable[..., Array], o: Any, y: Any, folds: Folds | None, hp: Any, weights: Any) -> Array:
    """The measure of one repeat, or its mean over several."""
    own = (hp or {}).get("criterion", {})
    o = jnp.asarray(o)
    o = o if jnp.issubdtype(o.dtype, jnp.floating) else o.astype(float)
    y = jnp.asarray(y, o.dtype)
    w = jnp.ones_like(o)
    if folds is not None:
        tested = jnp.sum(folds.test.reshape(folds.repeats, -1, y.shape[0]), axis=1) > 0
        w = tested.reshape(o.shape).astype(o.dtype)
    if weights is not None:
        given = jnp.asarray(weights, o.dtype)
        w = w * (given if o.ndim == 1 else given[None, :])

    def one(o: Array, w: Array) -> Array:
        counts = w > 0
        # an absent row shows neither its output nor its target, so that not even a NaN of either gets through
        seen, target = jnp.where(counts, o, 0.0), jnp.where(counts, y, 1.0)
        finite = jnp.all(jnp.isfinite(seen))
        # a comparison swallows NaN, and a factor passes it on to the gradient as well
        return jnp.where(finite, 1.0, jnp.nan).astype(o.dtype) * measure(seen, target, w, own)

    return one(o, w) if o.ndim == 1 else jnp.mean(jax.vmap(one)(o, w))


def refuse(criterion: Any) -> None:
    """A ValueError where `criterion` is neither a Criterion nor a callable of (o, y)."""
    if isinstance(criterion, type) or not callable(criterion):
        what = f"the class {criterion.__name__}" if isinstance(criterion, type) else repr(criterion)
        raise ValueError(f"criterion is {what}: pass an instance, as hyperjax.criteria.SmoothError(), or a callable")
    try:
        inspect.signature(criterion).bind(None, None)
    except TypeError as error:
        names = {"folds", "hp", "weights"}
        if len([n for n in inspect.signature(criterion).parameters if n not in names]) != 2:
            raise ValueError(f"criterion must be callable as criterion(o, y): {error}") from None
    except ValueError:  # a function of another language, whose arguments nobody can list
        return


def apply(criterion: Any, o: Array, y: Array, folds: Folds, hp: Hyperparameters, weights: Any = None) -> Array:
    """The value of a Criterion, or of any callable of (o, y).

    Folds, hp and weights reach those that name them among their arguments.
    """
    given = {"folds": folds, "hp": hp, "weights": weights}
    try:
        parameters = inspect.signature(criterion).parameters
    except ValueError:  # a function of another language, whose arguments nobody can list
        parameters = {}
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    given = {name: value for name, value in given.items() if anything or name in parameters}
    with traceable(f"criterion {getattr(criterion, '__name__', type(criterion).__name__)}"):
        return criterion(o, y, **given)


def number(value: Any) -> Array:
    """What a criterion returned, refused in words where it is no number that can be differentiated."""
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        what = f"shape {value.shape}, {value.dtype}" if hasattr(value, "shape") else repr(value)
        raise ValueError(f"criterion returned {what}: it must return one real number, a scalar of jax.numpy")
    return value


def hard(criterion: Any, o: Array, y: Array, folds: Folds, hp: Hyperparameters, weights: Any = None) -> Array | None:
    """The hard counterpart of a Criterion; None for a bare callable, which has none."""
    return criterion.hard_value(o, y, folds, hp, weights) if isinstance(criterion, Criterion) else None
