"""Codes: how a solve ended, one integer a fold, the same under jit and outside."""

import enum

__all__ = ["Code"]


class Code(enum.IntEnum):
    """How the solve of one fold ended; the worst of several wins."""

    OK = 0
    """kkt <= tol."""
    MAX_STEPS = 1
    """Stopped by the step limit or by rounding before kkt reached tol."""
    NONFINITE = 2
    """NaN, infinity or a value outside its domain in the data, the hyperparameters or the solution."""
    SINGULAR = 3
    """The kernel matrix is not positive semidefinite along the solution."""
    BIAS_INTERVAL = 4
    """kkt <= tol; no sample is free, the bias is the midpoint (or finite end) of an interval.  Informative."""
    DEGENERATE = 5
    """kkt <= tol; a sample sits on a kink with no slack, derivatives there are one-sided.  Informative."""

    @property
    def failed(self) -> bool:
        """Whether the solution must not be differentiated."""
        return self in (Code.MAX_STEPS, Code.NONFINITE, Code.SINGULAR)
