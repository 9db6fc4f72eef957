"""Products with sparse rows: the library's, other formulations in JAX, and SciPy's.

    python -m experiments.speed.sparse_products [--quick] [--output FILE]

Of each set and each direction (X w and X' v, one column and five) every formulation is timed in turn, so that whatever
else the machine does falls on all of them; float32; the least and the median of the rounds.  SciPy runs CSR rows one
way and the same matrix transposed (CSC) the other, as LIBLINEAR's users would.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.experimental.sparse import BCOO, BCSR

from experiments import common
from hyperjax import sparse

OUTPUT = Path(__file__).with_name("sparse_products.json")
SETS = ("pcmac", "reuters_moneyfx", "a9a", "sector")
COLUMNS = (1, 5)


def buckets(A: Any, growth: float = 1.25) -> tuple[list[tuple[Any, Any]], Any]:
    """Rows sorted by length into blocks (rows, longest) of indices and values, and where each row went."""
    lengths = np.diff(A.indptr)
    order = np.argsort(lengths, kind="stable")
    ends, parts, begin = lengths[order], [], 0
    while begin < len(order):
        most = max(int(np.ceil(growth * ends[begin])), 1)
        end = int(np.searchsorted(ends, most, side="right"))
        rows, width = order[begin:end], max(int(ends[end - 1]), 1)
        slots = np.arange(width)[None, :]
        there = slots < lengths[rows][:, None]
        at = (A.indptr[rows][:, None] + slots)[there]
        index, value = np.zeros(there.shape, np.int32), np.zeros(there.shape, A.dtype)
        index[there], value[there] = A.indices[at], A.data[at]
        parts.append((jnp.asarray(index), jnp.asarray(value)))
        begin = end
    return parts, jnp.asarray(np.argsort(order))


def padded(state: Any, v: Any) -> Any:
    """Blocks of padded rows."""
    parts, place = state
    sums = [jnp.einsum("nl,nlt->nt", value, v[index]) for index, value in parts]
    return jnp.concatenate(sums)[place]


def segments(state: Any, v: Any) -> Any:
    """One sorted segment sum over all entries."""
    row, column, value, size = state
    return jax.ops.segment_sum(value[:, None] * v[column], row, size, indices_are_sorted=True)


def cumulated(state: Any, v: Any) -> Any:
    """Differences of one cumulated sum, which loses digits as the sum grows."""
    starts, column, value, _ = state
    total = jnp.concatenate([jnp.zeros((1, v.shape[1]), v.dtype), jnp.cumsum(value[:, None] * v[column], axis=0)])
    return total[starts[1:]] - total[starts[:-1]]


def formulations(A: Any) -> dict[str, Callable[[Any], Any]]:
    """{name: v (k, t) -> A v} for a CSR matrix A, each compiled with its arrays as arguments."""
    row, column, value = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices, A.data
    coo = tuple(map(jnp.asarray, (row.astype(np.int32), column.astype(np.int32), value)))
    starts = jnp.asarray(A.indptr.astype(np.int32))
    size = A.shape[0]
    product = jax.jit(lambda X, v: v.T @ X.T)
    in_segments = jax.jit(lambda s, v: segments((*s, size), v))
    differences = jax.jit(lambda s, v: cumulated((*s, size), v))
    blocks, own = jax.jit(padded), sparse.matrix(A)
    state, state_blocks = coo, buckets(A)
    bcoo = BCOO((coo[2], jnp.stack(coo[:2], axis=1)), shape=A.shape, indices_sorted=True, unique_indices=True)
    bcsr = BCSR((coo[2], coo[1], starts), shape=A.shape)
    multiply = jax.jit(lambda M, v: M @ v)
    return {
        "hyperjax": lambda v: product(own, v).T,
        "segment_sum": lambda v: in_segments(state, v),
        "padded blocks": lambda v: blocks(state_blocks, v),
        "cumsum": lambda v: differences((starts, *coo[1:]), v),
        "BCOO": lambda v: multiply(bcoo, v),
        "BCSR": lambda v: multiply(bcsr, v),
    }


def timed(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every call in every round, one after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        jax.block_until_ready(call())
        jax.block_until_ready(call())
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(1e3 * (time.perf_counter() - began))
    return seconds


def measure(name: str, rounds: int) -> list[dict[str, Any]]:
    """The rows of one set."""
    X = scipy.sparse.csr_matrix(common.arrays(name)["X"], dtype=np.float32)
    X.sort_indices()
    rows = []
    for direction, A, peer in (("X w", X, X), ("X' v", X.T.tocsr(), X.T)):
        forms = formulations(A)
        for count in COLUMNS:
            v = np.random.default_rng(0).normal(size=(A.shape[1], count)).astype(np.float32)
            known, given = peer @ v, jnp.asarray(v)
            calls = {"SciPy": lambda peer=peer, v=v: peer @ v}
            calls |= {form: lambda call=call, given=given: call(given) for form, call in forms.items()}
            scale = float(np.max(np.abs(known)))
            errors = {form: float(np.max(np.abs(np.asarray(calls[form]()) - known))) / scale for form in forms}
            found = timed(calls, rounds)
            least = {form: min(times) for form, times in found.items()}
            for form, times in found.items():
                rows.append(
                    {
                        "set": name, "entries": int(X.nnz), "direction": direction, "columns": count, "form": form,
                        "least_ms": least[form], "median_ms": float(np.median(times)),
                        "least_over_scipy": least[form] / least["SciPy"], "error": errors.get(form, 0.0),
                    }
                )  # fmt: skip
    return rows


def main(argv: list[str] | None = None) -> int:
    """Measure, print the ratios, write the table."""
    options = common.arguments(__doc__, ("products",), OUTPUT).parse_args(argv)
    names = options.data or (("pcmac",) if options.quick else SETS)
    for name in names:
        rows = measure(name, 7 if options.quick else 41)
        common.merge(options.output, "products", rows, common.settings(), key=("set", "direction", "columns", "form"))
        for row in rows:
            print(
                f"{row['set']:16} {row['direction']:5} {row['columns']} {row['form']:14} "
                f"{row['least_ms']:8.3f} ms  {row['least_over_scipy']:6.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
