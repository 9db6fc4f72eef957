"""Kernels, one a file: every module of this folder is collected, so a new file is all a new kernel needs."""

from typing import TYPE_CHECKING, Any

from .. import plugins
from .base import Kernel, as_kernel

__all__ = ["EXAMPLES", "Kernel", "as_kernel", "by_name", "names"]

EXAMPLES: list[Kernel]
"""Small instances of every kernel that reads features; they accept any X of three positive columns."""

_found, EXAMPLES = plugins.collect(__name__, __path__, Kernel)
globals().update(_found)
__all__ += [name for name in _found if name not in __all__]  # pyright: ignore[reportUnsupportedDunderAll]


def names() -> list[str]:
    """The names `by_name` knows: every kernel that needs no argument."""
    return list(plugins.plain(EXAMPLES))


def by_name(name: str, **fields: Any) -> Kernel:
    """The kernel of that name, its class in small letters with underscores; `fields` go to the class."""
    return plugins.find("kernel", EXAMPLES, name, fields)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Type checkers cannot see names that a walk collects."""
