"""Cores that BLAS's own threads leave to XLA."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import jax

__all__ = ["one_blas_thread"]

FEW_CORES = 4
"""With more cores than this a thread that waits for work by spinning leaves enough of them free."""
_asked = threading.Lock()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it is open, SciPy's BLAS works with one thread.

    A Cholesky factor on a CPU is SciPy's.  With several threads it wakes workers that go on spinning for a while when
    it is done, on cores that XLA's next operations need.  A search is inside of itself; a loop of your own over
    `jax.value_and_grad` gains as much:

        with hj.one_blas_thread():
            value, gradient = jax.block_until_ready(step(hp))

    It counts for all of the process until it closes; inside of another one it does nothing.  Nor with more than four
    cores, on an accelerator, or where threadpoolctl (scikit-learn brings it) is not installed.
    """
    first = _asked.acquire(blocking=False)
    limits = _limit() if first else None
    try:
        yield
    finally:
        if limits is not None:
            limits.restore_original_limits()
        if first:
            _asked.release()


def _limit() -> Any:
    """What threadpoolctl undoes, or None."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores > FEW_CORES or jax.default_backend() != "cpu":
        return None
    try:
        import scipy.linalg.cython_lapack  # noqa: F401  what is not loaded cannot be limited
        from threadpoolctl import threadpool_limits
    except ImportError:
        return None
    return threadpool_limits(limits=1, user_api="blas")
