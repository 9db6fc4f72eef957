"""Settings of the process that the command line makes and the library never does."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["settings", "version"]

def version() -> str:
    """The library's version; a module inside the package cannot import its top."""
    return sys.modules[__name__.partition(".")[0]].__version__


@contextlib.contextmanager
def settings(float64: bool = False) -> Iterator[None]:
    """JAX's persistent compilation cache, and 64-bit floats where asked for; as before at the end."""
    import jax

    from ..datasets import cache_folder

    wanted: dict[str, Any] = {"jax_enable_x64": True} if float64 else {}
    if jax.config.values["jax_compilation_cache_dir"] is None:  # whoever has chosen a folder keeps it
        # every program: some sixty tiny ones take a second together
        wanted |= {
            "jax_compilation_cache_dir": str(cache_folder() / "compiled"),
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
        }
    before = {name: getattr(jax.config, name) for name in wanted}
    for name, value in wanted.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
