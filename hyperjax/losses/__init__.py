"""Losses, one file each; the package is walked, so a new file needs no entry anywhere."""

import importlib
import pkgutil

from .base import Loss

__all__ = ["EXAMPLES", "Loss"]

EXAMPLES: list[Loss] = []
"""Small instances of every loss, for the tests."""

for _info in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    EXAMPLES.extend(getattr(_module, "EXAMPLES", ()))
    for _name in _module.__all__:
        if _name not in __all__:
            globals()[_name] = getattr(_module, _name)
            __all__.append(_name)
