"""Kernels, one a file: every module of this folder is collected, so a new file is all a new kernel needs."""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from .base import Kernel, as_kernel

EXAMPLES: list[Kernel] = []
"""Small instances of every kernel that reads features; they accept any X of three positive columns."""

__all__ = ["EXAMPLES", "Kernel", "as_kernel"]

for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    EXAMPLES.extend(getattr(_module, "EXAMPLES", []))
    for _name, _value in vars(_module).items():
        if isinstance(_value, type) and issubclass(_value, Kernel) and _value.__module__ == _module.__name__:
            globals()[_name] = _value
            if _name not in __all__:
                __all__.append(_name)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Type checkers cannot see names that a walk collects."""
