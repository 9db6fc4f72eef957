"""hyperjax: hyperparameters of support vector machines by exact gradients, in JAX."""

from . import criteria, datasets, domains, folds, kernels, losses, methods, solvers
from .adjoint import HypergradientInfo, hypergradient_info
from .conformance import check_criterion, check_kernel, check_loss, check_solver
from .folds import Folds
from .history import History
from .loo import loo_decision
from .nested import NestedScore, nested_score
from .problem import Problem
from .results import Code
from .sensitivity import Sensitivity
from .solve import Solution, cross_decision, cross_solve, solve
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
    "domains",
    "folds",
    "hypergradient_info",
    "kernels",
    "loo_decision",
    "losses",
    "methods",
    "nested_score",
    "solve",
    "solvers",
    "static",
    "tune",
]
