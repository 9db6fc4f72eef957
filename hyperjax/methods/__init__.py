"""Published methods and the searches everybody compares with, one file each; the package is walked.

Every method is a function (problem, X, y, folds, .., seed, ..) -> TuneResult; its module's `TAKES` says which losses,
kernels, biases and criteria it was made for, and which it takes when the caller does not say.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

from .base import Takes

__all__ = ["Takes", "by_name", "names", "takes"]

_FOUND: dict[str, tuple[Callable[..., Any], Takes]] = {}

for _info in pkgutil.iter_modules(__path__):
    if _info.name == "base" or _info.name.startswith("_"):
        continue
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    _FOUND[_info.name] = getattr(_module, _info.name), _module.TAKES

for _name, (_function, _) in _FOUND.items():
    globals()[_name] = _function
    __all__.append(_name)


def names() -> tuple[str, ...]:
    """The methods there are."""
    return tuple(sorted(_FOUND))


def by_name(name: str) -> Callable[..., Any]:
    """The method of that name."""
    return _entry(name)[0]


def takes(name: str) -> Takes:
    """What the method of that name was made for."""
    return _entry(name)[1]


def options(name: str) -> tuple[str, ...]:
    """The arguments of a method."""
    return tuple(inspect.signature(by_name(name)).parameters)


def _entry(name: str) -> tuple[Callable[..., Any], Takes]:
    if name not in _FOUND:
        raise ValueError(f"there is no method {name!r}; choose one of {', '.join(names())}")
    return _FOUND[name]
