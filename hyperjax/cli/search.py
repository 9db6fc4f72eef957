"""The search itself: `tune` or a published method, asked with the options that were given and no others."""

import argparse
import contextlib
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..problem import Problem
from .failures import UNSOLVED, USAGE, Failure, blamed_on
from .progress import clear

__all__ = ["arguments", "function", "search", "spoken_warnings", "takes"]

OPTIONS = ("optimizer", "stages", "prior", "starts", "max_steps", "max_seconds", "tol", "checkpoint", "hold", "bounds")


def function(name: str) -> Callable[..., Any]:
    """`tune`, or the method of hyperjax.methods with this name."""
    if name == "tune":
        from ..tune import tune

        return tune
    from .. import methods

    with blamed_on(USAGE):
        return methods.by_name(name)


def takes(name: str) -> Any:
    """What the method was made for, and its default loss, kernel and bias."""
    if name == "tune":
        # without the room of the methods, whose import takes its time
        return types.SimpleNamespace(losses=(), problem=Problem)
    from .. import methods

    return methods.takes(name)


def arguments(options: argparse.Namespace, method: Callable[..., Any]) -> dict[str, Any]:
    """The options of the search that were given, as arguments of the method."""
    found: dict[str, Any] = {name: getattr(options, name) for name in OPTIONS if hasattr(options, name)}
    if "bounds" in found:
        found["bounds"] = dict(found["bounds"])
    if "hold" in found:
        found["hold"] = [path.strip() for paths in found["hold"] for path in paths.split(",")]
    if found.get("optimizer") == "adam":
        import optax

        found["optimizer"] = optax.adam(0.1)
    if hasattr(options, "criterion"):
        found["criterion"] = None
    known = _takes(method)
    for name in found:
        if not known(name):
            raise Failure(USAGE, f"--{name.replace('_', '-')}: the method {options.method} has no such option")
    found.pop("criterion", None)
    return found


def search(job: Any, options: argparse.Namespace, line: Callable[[dict[str, Any]], Any]) -> Any:
    """The TuneResult of a job; `line` is called after every step."""
    method = function(options.method)
    known = _takes(method)
    settings = arguments(options, method)
    offered = {"seed": options.seed, "progress": False, "callback": line}
    settings |= {name: value for name, value in offered.items() if known(name)}
    if job.criterion is not None:
        settings["criterion"] = job.criterion
    with blamed_on(USAGE), spoken_warnings(quiet=options.quiet):
        result = method(job.problem, job.X, job.y, folds=job.folds, **settings)
    if not result.value < float("inf"):
        raise Failure(UNSOLVED, f"no step of the search gave a finite value ({result.value}): see --bounds, --scale")
    return result


def _takes(method: Callable[..., Any]) -> Callable[[str], bool]:
    parameters = inspect.signature(method).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return lambda name: anything or name in parameters


@contextlib.contextmanager
def spoken_warnings(quiet: bool = False) -> Iterator[None]:
    """Warnings as one line each on standard error, without the source line Python adds."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            clear()
            print("hyperjax: warning:", " ".join(str(message).split()), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield
