"""Pictures of a search, as display objects: `Display.from_result(result, ..)`, then `.figure_` and `.axes_`.

matplotlib is imported when the first picture is drawn, never before.
"""

from .bars import KernelWeightsDisplay, RelevanceDisplay
from .convergence import ConvergenceDisplay
from .curves import CurvesDisplay
from .path import PathDisplay

__all__ = [
    "ConvergenceDisplay",
    "CurvesDisplay",
    "KernelWeightsDisplay",
    "PathDisplay",
    "RelevanceDisplay",
]
