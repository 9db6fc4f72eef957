"""How good outputs are: the numbers people compare."""

from typing import Any

import numpy as np

__all__ = ["hard", "of"]


def of(outputs: Any, y: np.ndarray, task: str, threshold: float = 0.0, tested: np.ndarray | None = None) -> dict:
    """error (share of wrong labels) or mse and r2, of outputs (n,), or (R, n) for repeats, on the tested rows."""
    outputs = np.atleast_2d(np.asarray(outputs, float))
    tested = np.ones(outputs.shape, bool) if tested is None else np.atleast_2d(tested)
    rows = [_one(o[w], y[w], task, threshold) for o, w in zip(outputs, tested, strict=True)]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _one(o: np.ndarray, y: np.ndarray, task: str, threshold: float) -> dict[str, float]:
    if task == "classification":
        return {"error": float(np.mean((o >= threshold) != (y > 0)))}
    mse = float(np.mean((o - y) ** 2))
    spread = float(np.var(y))
    return {"mse": mse, "r2": 1.0 - mse / spread if spread > 0 else float("nan")}


def hard(criterion: Any, outputs: Any, y: Any, folds: Any, hp: Any) -> float | None:
    """The hard counterpart of the criterion; None for one without."""
    import jax
    import jax.numpy as jnp

    from ..criteria.base import Criterion, hard
    from ..objective import QUICK

    if not isinstance(criterion, Criterion):
        return None
    # as one program: a criterion is dozens of operations, each of which would be compiled by itself
    judge = jax.jit(lambda *given: hard(criterion, *given), compiler_options=QUICK)
    outputs = jnp.asarray(outputs)
    own = {"criterion": hp.get("criterion", {})}
    return float(judge(outputs, jnp.asarray(y, outputs.dtype), folds, own))
