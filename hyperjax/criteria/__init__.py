"""Validation functions, one file each; the package is walked, so a new file needs no entry anywhere."""

from typing import TYPE_CHECKING, Any

from .. import plugins
from .base import Criterion

__all__ = ["Criterion", "EXAMPLES", "by_name", "names"]

EXAMPLES: list[Criterion]
"""Small instances of every criterion, for the tests and for `by_name`."""

_found, EXAMPLES = plugins.collect(__name__, __path__, Criterion)
globals().update(_found)
__all__ += [name for name in _found if name not in __all__]  # pyright: ignore[reportUnsupportedDunderAll]


def names() -> list[str]:
    """The names `by_name` knows: every criterion that needs no argument."""
    return list(plugins.plain(EXAMPLES))


def by_name(name: str, **fields: Any) -> Criterion:
    """The criterion of that name, its class in small letters with underscores; `fields` go to the class."""
    return plugins.find("criterion", EXAMPLES, name, fields)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Type checkers cannot see names that a walk collects."""
