"""Searches for the solution; each returns (z, b) and statistics, the derivative is found elsewhere."""

from .decomposition import Decomposition
from .loop import Solver
from .newton import Newton

__all__ = ["Decomposition", "Newton", "Solver"]
