"""Validation functions, one file each; the package is walked, so a new file needs no entry anywhere."""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from .base import Criterion

__all__ = ["EXAMPLES", "Criterion"]

EXAMPLES: list[Criterion] = []
"""Small instances of every criterion, for the tests."""

for _info in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    EXAMPLES.extend(getattr(_module, "EXAMPLES", ()))
    for _name in _module.__all__:
        if isinstance(getattr(_module, _name), type) and _name not in __all__:
            globals()[_name] = getattr(_module, _name)
            __all__.append(_name)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Type checkers cannot see names that a walk collects."""
