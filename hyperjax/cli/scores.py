"""How good outputs are: the numbers people compare."""

from typing import Any

import numpy as np

__all__ = ["judged", "of"]


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


def judged(criterion: Any, name: str, outputs: Any, y: Any, folds: Any, hp: Any) -> dict[str, float]:
    """The criterion under its name, and its hard counterpart where it has one."""
    import jax.numpy as jnp

    from ..compiling import jitted
    from ..criteria.base import apply, hard

    def both(o: Any, y: Any, folds: Any, hp: Any) -> dict[str, Any]:
        return {name: apply(criterion, o, y, folds, hp), "hard": hard(criterion, o, y, folds, hp)}

    # as one program: a criterion is dozens of operations, each of which would be compiled by itself
    outputs = jnp.asarray(outputs)
    given = jnp.asarray(y, outputs.dtype), folds, {"criterion": hp.get("criterion", {})}
    found = jitted(both, "quick")(outputs, *given)
    return {name: float(value) for name, value in found.items() if value is not None}
