"""What is checked before a traced function runs: on concrete arguments only, with words for people.

Every message names the argument, says what was found and what to do.  Traced arguments pass: under jit a bad value
becomes a code of the solution.
"""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .folds import Folds
from .folds import check as check_folds
from .problem import Problem
from .results import Code
from .types import Array, Hyperparameters

__all__ = ["inputs", "n_rows", "new_rows", "remedy", "tolerance"]

BIASES = (True, False, "regularised")


def inputs(
    problem: Problem, hp: Hyperparameters, X: Any, y: Any, weights: Any, folds: Folds | None = None
) -> tuple[Array, Array, Hyperparameters, Array | None]:
    """X, y, hyperparameters and weights as arrays of one float type, checked where they are concrete."""
    if not isinstance(problem, Problem):
        raise ValueError(f"problem is a {type(problem).__name__}: pass hyperjax.Problem(loss=.., kernel=.., bias=..)")
    if not any(problem.bias is b or problem.bias == b for b in BIASES):
        raise ValueError(f'bias={problem.bias!r}: choose True, False or "regularised"')
    X = array("X", X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: give it two dimensions, rows and columns")
    dtype = X.dtype
    y = array("y", y, dtype)
    n = X.shape[0]
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape} and X has {n} rows: give y one value a row, shape ({n},)")
    if n < 2:
        raise ValueError(f"X has {n} row{'' if n == 1 else 's'}: a fit needs at least two")
    if X.shape[1] == 0:
        raise ValueError("X has no columns: give it at least one feature")
    hp = hyperparameters(problem, hp, X, y)
    if weights is not None:
        weights = array("weights", weights, dtype)
        wanted = [(n,)] if folds is not None else [(n,)]
        if weights.shape not in wanted and not (folds is None and weights.ndim == 2 and weights.shape[1] == n):
            raise ValueError(f"weights has shape {weights.shape}: give it one weight a row, shape ({n},)")
    _values(problem, hp, X, y, weights)
    if folds is not None and concrete(folds.train):
        check_folds(folds, n)
    return X, y, hp, weights


def array(name: str, value: Any, dtype: Any = None) -> Array:
    """A JAX array of a float type: that of `value` if it has one, else the default (or the one given)."""
    if hasattr(value, "toarray"):
        raise ValueError(f"{name} is a sparse matrix: pass {name}.toarray()")
    if not isinstance(value, jax.Array):
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
    kind = np.dtype(value.dtype) if value.dtype != jax.dtypes.float0 else np.dtype("O")
    if not (jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer) or kind == np.dtype(bool)):
        what = "complex numbers" if jnp.issubdtype(kind, jnp.complexfloating) else f"values of type {kind}"
        raise ValueError(f"{name} holds {what}: convert it to real numbers first")
    if dtype is None:
        dtype = kind if kind in (np.dtype("float32"), np.dtype("float64")) else np.dtype(float)
    with contextlib.nullcontext() if isinstance(value, jax.core.Tracer) else jax.ensure_compile_time_eval():
        return jnp.asarray(value, jax.dtypes.canonicalize_dtype(dtype))


def concrete(*trees: Any) -> bool:
    """Whether no leaf is being traced."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def hyperparameters(problem: Problem, hp: Any, X: Array, y: Array) -> Hyperparameters:
    """hp with the structure of problem.init, as arrays of X's float type."""
    if not isinstance(hp, dict):
        raise ValueError(f'hp is a {type(hp).__name__}: pass a dict {{"loss": {{..}}, "kernel": {{..}}}} like problem.init')
    shapes = jax.eval_shape(problem.init, X, y)
    _same_names("hp", {k: v for k, v in hp.items() if k != "criterion"}, shapes)
    out = {}
    for part, wanted in shapes.items():
        out[part] = jax.tree_util.tree_map_with_path(
            lambda path, leaf, like, part=part: _leaf(f"hp['{part}']{jax.tree_util.keystr(path)}", leaf, like, X.dtype),
            hp[part],
            wanted,
        )
    return out


def _same_names(where: str, found: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            raise ValueError(f"{where} is a {type(found).__name__}: it must be a dict with {sorted(wanted)}")
        missing, unknown = sorted(set(wanted) - set(found)), sorted(map(str, set(found) - set(wanted)))
        if missing or unknown:
            parts = [f"lacks {missing}"] if missing else []
            parts += [f"has unknown {unknown}"] if unknown else []
            raise ValueError(f"{where} {' and '.join(parts)}: its names must be {sorted(wanted)}, as problem.init gives")
        for name, inside in wanted.items():
            _same_names(f"{where}[{name!r}]", found[name], inside)
    elif isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            raise ValueError(f"{where} must be a list of {len(wanted)}, one entry a kernel, found {found!r}")
        for i, inside in enumerate(wanted):
            _same_names(f"{where}[{i}]", found[i], inside)


def _leaf(where: str, value: Any, like: Any, dtype: Any) -> Array:
    value = array(where, value, dtype)
    if value.shape != like.shape and value.shape != ():
        raise ValueError(f"{where} has shape {value.shape}: it must have shape {like.shape}, as problem.init gives")
    return value


def _values(problem: Problem, hp: Hyperparameters, X: Array, y: Array, weights: Array | None) -> None:
    """Everything that needs the numbers themselves; one fused reduction decides whether to look closer."""
    known = {
        name: leaf
        for name, leaf in (("X", X), ("y", y), ("weights", weights))
        if leaf is not None and concrete(leaf)
    }
    _finite(known)
    if "weights" in known:
        w = np.asarray(weights)
        if (w < 0).any():
            raise ValueError(f"weights holds {int((w < 0).sum())} negative value(s): weights must be zero or positive")
        if not (w > 0).any(axis=-1).all():
            raise ValueError("weights are all zero: at least one sample must have a positive weight")
    if "y" in known and problem.loss.labels:
        _labels(np.asarray(y))
    if concrete(hp):
        _domains(problem, hp)
        host = jax.tree.map(np.asarray, hp)
        if "X" in known:
            _complain("kernel", problem.kernel.problem_with(np.asarray(X), host["kernel"]))
        if "y" in known:
            _complain("loss", problem.loss.problem_with(np.asarray(y), host["loss"]))


def _finite(arrays: dict[str, Array]) -> None:
    """Refuse NaN and infinity in concrete arrays."""
    arrays = {name: a for name, a in arrays.items() if concrete(a)}
    with jax.ensure_compile_time_eval():
        verdict = jax.device_get(_all_finite(arrays))
    for name, ok in verdict.items():
        if not ok:
            host = np.asarray(arrays[name])
            bad = np.argwhere(~np.isfinite(host))
            at = tuple(int(i) for i in bad[0])
            raise ValueError(
                f"{name} holds {len(bad)} NaN or infinite value(s), the first {host[at]} at {at}: "
                "remove or impute them first"
            )


@jax.jit
def _all_finite(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: jnp.all(jnp.isfinite(a)) for name, a in arrays.items()}


def _complain(what: str, message: str | None) -> None:
    if message is not None:
        raise ValueError(message)


def _labels(y: np.ndarray) -> None:
    values = np.unique(y)
    if not np.isin(values, (-1.0, 1.0)).all():
        shown = ", ".join(f"{v:g}" for v in values[:5]) + (", .." if len(values) > 5 else "")
        raise ValueError(f"y holds the labels {shown}: a margin loss needs -1 and +1; map the two classes to them")
    if len(values) < 2:
        raise ValueError(f"y holds one class only ({values[0]:g}): a classifier needs both -1 and +1")


def _domains(problem: Problem, hp: Hyperparameters) -> None:
    def look(path: Any, value: Array, domain: Any) -> None:
        host = np.asarray(value)
        where = "hp" + jax.tree_util.keystr(path)
        if not np.isfinite(host).all():
            raise ValueError(f"{where} is {host}: hyperparameters must be finite")
        wrong = domain.problem_with(host)
        if wrong:
            raise ValueError(f"{where} is {host}: it {wrong}")

    jax.tree_util.tree_map_with_path(look, hp, problem.domains(hp))


def new_rows(problem: Problem, X_new: Any, X: Array) -> Array:
    """Rows to predict, with the training rows' float type and columns."""
    X_new = array("X_new", X_new, X.dtype)
    if X_new.ndim != 2 or X_new.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_new has shape {X_new.shape}: it must be two-dimensional with {X.shape[1]} columns, as in training"
        )
    _finite({"X_new": X_new})
    return X_new


def tolerance(tol: Any, dtype: Any) -> Array:
    """The tolerance as an array; by default 1e-8 in float64 and 1e-3 in float32."""
    if tol is None:
        tol = 1e-8 if dtype == jnp.float64 else 1e-3
    if concrete(tol):
        least = 20.0 * float(jnp.finfo(dtype).eps)
        if np.ndim(tol) or not float(tol) >= least:
            raise ValueError(
                f"tol={tol} cannot be reached in {jnp.dtype(dtype).name}: give at least {least:.1e}, or enable float64 "
                '(jax.config.update("jax_enable_x64", True)) and pass float64 arrays'
            )
    return jnp.asarray(tol, dtype)


def n_rows(X: Any) -> int:
    """The number of rows of something array-like."""
    shape = np.shape(X)
    if len(shape) == 0:
        raise ValueError(f"X is {X!r}: pass an array of rows and columns")
    return int(shape[0])


def remedy(code: Code) -> str:
    """What to do about a failed solve."""
    return {
        Code.MAX_STEPS: "Scale the features, lower C, loosen tol, or use float64",
        Code.NONFINITE: "Look for NaN, infinity or overflow in the data and hyperparameters",
        Code.SINGULAR: "The kernel matrix is not positive semidefinite: check the kernel",
    }[code]
