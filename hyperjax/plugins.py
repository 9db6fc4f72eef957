"""Parts that others may write: found in their folders, called by name, and words for what they may not do."""

import contextlib
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import jax

__all__ = ["collect", "find", "plain", "snake", "traceable"]


def collect(package: str, path: Any, base: type) -> tuple[dict[str, Any], list[Any]]:
    """The public classes below `base` that the modules of a package define, by name, and all their EXAMPLES.

    A module whose name starts with an underscore is help for the others.
    """
    found, examples = {}, []
    for info in pkgutil.iter_modules(path):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        examples.extend(getattr(module, "EXAMPLES", ()))
        public = {name: getattr(module, name) for name in module.__all__}
        found |= {name: value for name, value in public.items() if isinstance(value, type) and issubclass(value, base)}
    return found, examples


def snake(name: str) -> str:
    """The name of a class as people type it: SquaredHinge is squared_hinge, RBF is rbf, ExpChi2 is exp_chi2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@contextlib.contextmanager
def traceable(name: str) -> Iterator[None]:
    """Words for what happens where somebody's function decides on a traced value, or hands it to NumPy."""
    try:
        yield
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise ValueError(
            f"{name} looks at the numbers it is given while they are being traced: write it with jax.numpy, jnp.where "
            f"for `if`, and without float(), int() or NumPy ({str(error).splitlines()[0]})"
        ) from error


def plain(examples: list[Any]) -> dict[str, type]:
    """The classes of the examples that need no argument, by their typed name."""
    classes = {snake(type(example).__name__): type(example) for example in examples}
    return {name: cls for name, cls in sorted(classes.items()) if _needs_nothing(cls)}


def find(kind: str, examples: list[Any], name: str, fields: dict[str, Any]) -> Any:
    """The plug-in of that name with these fields; a ValueError lists what there is."""
    named = plain(examples)
    if name not in named:
        raise ValueError(f"there is no {kind} {name!r}; choose one of {', '.join(named)}")
    known = [field.name for field in dataclasses.fields(named[name])]
    for field in fields:
        if field not in known:
            raise ValueError(f"the {kind} {name} has no field {field!r}; it has {', '.join(known) or 'none'}")
    return named[name](**fields)


def _needs_nothing(cls: type) -> bool:
    missing = dataclasses.MISSING
    return all(f.default is not missing or f.default_factory is not missing for f in dataclasses.fields(cls))
