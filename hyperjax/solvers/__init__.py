"""Searches for the solution; each returns (z, b) and statistics, the derivative is found elsewhere."""

from .dcd import DCD
from .decomposition import Decomposition
from .loop import Solver
from .newton import Newton
from .proxgrad import ProxGrad
from .sgd import SGD
from .trust import Trust

__all__ = ["DCD", "SGD", "Decomposition", "Newton", "ProxGrad", "Solver", "Trust"]
