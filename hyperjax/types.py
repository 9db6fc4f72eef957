"""Shared vocabulary: array aliases and `Module`, the base of every plug-in.

A `Module` subclass is a frozen dataclass and a pytree at once.  Annotated class attributes
are its fields; a field declared with `static(...)` belongs to the structure (it must be
hashable), every other field is a leaf or a subtree.  Nothing else is needed to pass an
instance through jit, vmap or grad.
"""

import dataclasses
from typing import Any, dataclass_transform

import jax
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PyTree, Shaped

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Hyperparameters", "Int", "Module", "PyTree", "Shaped", "static"]

Hyperparameters = dict[str, Any]


def static(**kwargs: Any) -> Any:
    """A dataclass field that is part of the pytree's structure instead of a leaf."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(static, dataclasses.field))
class Module:
    """Base of losses, kernels, operators, solvers and criteria: a frozen dataclass pytree."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            raise TypeError(
                f"{cls.__name__} defines __init__: declare its arrays as annotated class attributes "
                "(`width: float = 1.0`) and its switches with `hyperjax.static(default=...)` instead"
            )
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        _register(cls)

    def replace(self, **changes: Any):
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]  # every Module is a dataclass


def _register(cls: type) -> None:
    """Make a dataclass a pytree whose structure names the class.

    JAX's own dataclass nodes compare equal whatever their class (jaxlib 0.10.2): two losses with the same fields would
    share one entry of a jit cache, and one could run the other's program.
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # `cls` is a dataclass by now
    meta = [f.name for f in fields if f.metadata.get("static", False)]
    data = [f.name for f in fields if not f.metadata.get("static", False)]

    def structure(obj: Any) -> tuple[type, tuple[Any, ...]]:
        return cls, tuple(getattr(obj, name) for name in meta)

    def flatten(obj: Any) -> tuple[tuple[Any, ...], Any]:
        return tuple(getattr(obj, name) for name in data), structure(obj)

    def flatten_with_keys(obj: Any) -> tuple[tuple[Any, ...], Any]:
        return tuple((jax.tree_util.GetAttrKey(name), getattr(obj, name)) for name in data), structure(obj)

    def unflatten(aux: tuple[type, tuple[Any, ...]], leaves: Any) -> Any:
        obj = object.__new__(cls)
        for name, value in (*zip(meta, aux[1], strict=True), *zip(data, leaves, strict=True)):
            object.__setattr__(obj, name, value)
        return obj

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
