"""Products with sparse rows: hyperjax's matrix against SciPy's CSR in the same precision, both ways."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from experiments.speed.cost_rows import rows
from experiments.speed.task import SEED, WARM, Options, Race, clock, peak, permuted

TIMES = 20
"""Products a repeat: one alone is too short for the clock."""


def products(options: Options, name: str) -> Iterator[dict[str, Any]]:
    """X w for five weight vectors and X' v for five vectors of coefficients, as a batch of five folds needs them."""
    X, y = rows(name, options.small)
    generator = np.random.default_rng(SEED)
    w, v = (generator.normal(size=(5, size)).astype(np.float32) for size in X.shape[::-1])
    forward, backward = jax.jit(lambda A, w: w @ A.T), jax.jit(lambda A, v: v @ A)
    given = {"matmul": (forward, jnp.asarray(w)), "rmatmul": (backward, jnp.asarray(v))}
    races = {key: Race(options) for key in given}
    facts: dict[str, dict[str, Any]] = {key: {} for key in given}
    others: dict[str, dict[str, Any]] = {}
    for repeat in range(-1, options.repeats):
        A = permuted(X, y, WARM if repeat < 0 else SEED + repeat)[0].astype(np.float32).tocsr()
        mine = hj.sparse.matrix(A)
        theirs = {"matmul": partial(_csr, A, w.T.copy()), "rmatmul": partial(_csr, A.T.tocsr(), v.T.copy())}
        for key, (run, right) in given.items():
            calls = {"ours": partial(_times, run, mine, right), "SciPy": theirs[key]}
            if repeat < 0:
                others[key] = calls
                facts[key]["first"], _ = clock(calls["ours"])
                continue
            found = races[key].round(repeat, calls, others[key])
            if "SciPy" in found:
                off = np.max(np.abs(np.asarray(found["ours"]).T - found["SciPy"])) / np.max(np.abs(found["SciPy"]))
                facts[key].setdefault("difference", []).append(float(off))
        if repeat >= 0:
            yield {key: race.row("SciPy", **facts[key], memory=peak()) for key, race in races.items()}


def _times(run: Any, A: Any, right: Any) -> Any:
    for _ in range(TIMES):
        out = jax.block_until_ready(run(A, right))
    return out


def _csr(A: Any, right: np.ndarray) -> Any:
    for _ in range(TIMES):
        out = A @ right
    return out
