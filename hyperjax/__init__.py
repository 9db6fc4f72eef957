"""hyperjax: hyperparameters of support vector machines by exact gradients, in JAX."""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import criteria, datasets, domains, folds, kernels, losses, methods, multiclass, solvers, sparse
    from .adjoint import HypergradientInfo, hypergradient_info
    from .conformance import check_criterion, check_kernel, check_loss, check_solver
    from .folds import Folds
    from .history import History
    from .loo import loo_decision
    from .nested import NestedScore, nested_score
    from .one_sided import Subdifferential, directional_derivative, subdifferential
    from .problem import Problem
    from .results import Code
    from .sensitivity import Sensitivity
    from .solve import Solution, cross_decision, cross_solve, solve
    from .threads import one_blas_thread
    from .trust import HypergradientReport, check_hypergradient
    from .tune import TuneResult, tune
    from .types import static

__version__ = "0.1.0"

__all__ = [
    "Code",
    "Folds",
    "History",
    "HypergradientInfo",
    "HypergradientReport",
    "NestedScore",
    "Problem",
    "Sensitivity",
    "Solution",
    "Subdifferential",
    "TuneResult",
    "check_criterion",
    "check_hypergradient",
    "check_kernel",
    "check_loss",
    "check_solver",
    "criteria",
    "cross_decision",
    "cross_solve",
    "datasets",
    "directional_derivative",
    "domains",
    "folds",
    "hypergradient_info",
    "kernels",
    "loo_decision",
    "losses",
    "methods",
    "multiclass",
    "nested_score",
    "one_blas_thread",
    "solve",
    "solvers",
    "sparse",
    "static",
    "subdifferential",
    "tune",
]

_ROOMS = ("criteria", "datasets", "domains", "folds", "kernels", "losses", "methods", "multiclass", "solvers", "sparse")
_HOMES = {
    "adjoint": ("HypergradientInfo", "hypergradient_info"),
    "conformance": ("check_criterion", "check_kernel", "check_loss", "check_solver"),
    "folds": ("Folds",),
    "history": ("History",),
    "loo": ("loo_decision",),
    "nested": ("NestedScore", "nested_score"),
    "one_sided": ("Subdifferential", "directional_derivative", "subdifferential"),
    "problem": ("Problem",),
    "results": ("Code",),
    "sensitivity": ("Sensitivity",),
    "solve": ("Solution", "cross_decision", "cross_solve", "solve"),
    "threads": ("one_blas_thread",),
    "trust": ("HypergradientReport", "check_hypergradient"),
    "tune": ("TuneResult", "tune"),
    "types": ("static",),
}
"""Where the public names live; each is imported when it is first used, for `hyperjax --help` needs none, nor JAX."""


if not TYPE_CHECKING:  # a type checker that sees this function takes every misspelt name for one that exists

    def __getattr__(name: str) -> Any:
        """A public name, from its module."""
        if name in _ROOMS:
            return importlib.import_module(f"{__name__}.{name}")
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `solve` and `tune` functions: Python puts a module into its package when it is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES.get(name, ())):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
