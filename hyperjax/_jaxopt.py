"""The one door to jaxopt, which is archived and warns when it is imported.

It serves as an oracle and a baseline; no hypergradient goes through it.
"""

import importlib
import warnings
from types import ModuleType

__all__ = ["load"]


def load() -> ModuleType:
    """The module jaxopt, imported on first use with its deprecation warning kept quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module("jaxopt")
