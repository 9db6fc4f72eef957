"""Multi-class machines whose k outputs are fitted together, differentiable like the rest."""

from .problem import CrammerSinger
from .solve import MulticlassSolution, solve

__all__ = ["CrammerSinger", "MulticlassSolution", "solve"]
