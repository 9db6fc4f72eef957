"""How programs are compiled for a CPU: seconds of compiling against speed of running.

Compiling takes longer than most searches.  XLA's options can be given to a program as a whole, not to a part of one, so
they are set where a program of the library itself begins; inside a caller's jit the caller's options hold.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

__all__ = ["COMPILATIONS", "compiled", "jitted"]

COMPILATIONS = {
    "quick": {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False},
    "balanced": {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False},
    "full": {"xla_backend_optimization_level": 1, "xla_cpu_prefer_vector_width": 512},
}
"""From the least compile time to the fastest program.  Wide vectors shorten SMO's steps where there are any."""


@functools.cache
def _options(compilation: str) -> dict[str, Any] | None:
    """None where the backend is no CPU, or where this version of XLA no longer knows one of the options."""
    options = COMPILATIONS[compilation]
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return None
    return options


def jitted(function: Callable[..., Any], compilation: str = "full", static: tuple[str, ...] = ()) -> Any:
    """The jitted function; `compilation` is a key of COMPILATIONS, of effect on a CPU and outside of every trace."""
    inside = jax.jit(function, static_argnames=static)

    @functools.cache
    def outside() -> Any:
        return jax.jit(function, static_argnames=static, compiler_options=_options(compilation))

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        # inside a jit even a constant is traced
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, jnp.zeros(()))))
        return (inside if traced else outside())(*args)

    return call


compiled = functools.cache(jitted)
"""The same once for a function that lives as long as the module it stands in."""
