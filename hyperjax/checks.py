"""What is checked before a traced function runs: on concrete arguments only, with words for people.

Every message names the argument, says what was found and what to do.  Traced arguments pass: under jit a bad value
becomes a code of the solution.
"""

import contextlib
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .domains import NonNegative
from .folds import Folds
from .kernels.base import Kernel
from .kernels.composite import Composite
from .kernels.function import Function
from .kernels.linear import Linear
from .kernels.scaled import Scaled
from .losses.base import Loss
from .losses.wrapped import Wrapped
from .problem import Problem, begun
from .results import Code
from .solvers.loop import Solver
from .sparse import Matrix, is_sparse, matrix
from .types import Array, Hyperparameters

__all__ = [
    "elementwise", "inputs", "instance", "known", "n_rows", "new_rows", "parts", "remedy", "same_folds", "sound",
    "start", "tolerance", "values",
]  # fmt: skip


def inputs(
    problem: Problem,
    hp: Hyperparameters,
    X: Any,
    y: Any,
    weights: Any,
    folds: Folds | None = None,
    solver: Solver | None = None,
) -> tuple[Array, Array, Hyperparameters, Array | None]:
    """X, y, hp and weights as arrays of one float type, checked where they are concrete; `folds` have been before."""
    parts(problem, solver)
    X = rows(problem, X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: give it two dimensions, rows and columns")
    n, d = X.shape
    if n < 2:
        raise ValueError(f"X has {n} row{'' if n == 1 else 's'}: a fit needs at least two")
    if d == 0:
        raise ValueError("X has no columns: give it at least one feature")
    y = array("y", y, X.dtype)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape} and X has {n} rows: give y one value a row, shape ({n},)")
    hp = hyperparameters(problem, hp, X, y)
    if weights is not None:
        weights = array("weights", weights, X.dtype)
        several = folds is None and weights.ndim == 2 and weights.shape[0] > 0 and weights.shape[1] == n
        if weights.shape != (n,) and not several:
            raise ValueError(f"weights has shape {weights.shape}: give it one weight a row, shape ({n},)")
    with jax.ensure_compile_time_eval():
        values(problem, hp, X, y, weights, folds)
    return X, y, hp, weights


def rows(problem: Problem, X: Any) -> Any:
    """X as an array, or as a `sparse.Matrix` where it is sparse and the kernel can do with products alone."""
    if not is_sparse(X):
        return array("X", X)
    kernel = problem.kernel
    if type(kernel) is not Linear or kernel.columns is not None:
        of = f"{_named(kernel)} over chosen columns" if type(kernel) is Linear else _named(kernel)
        raise ValueError(
            f"X is sparse and the kernel is {of}: sparse rows go with hyperjax.kernels.Linear() alone; "
            "pass X.toarray() for another kernel"
        )
    return matrix(X)


def parts(problem: Any, solver: Any) -> None:
    """Refuse whatever is not an instance of the class its place asks for."""
    if type(problem).__name__ == "CrammerSinger":
        raise ValueError("problem is a CrammerSinger: its verbs are those of hyperjax.multiclass, such as solve")
    if not isinstance(problem, Problem):
        raise ValueError(f"problem is {_named(problem)}: pass hyperjax.Problem(loss=.., kernel=.., bias=..)")
    if not (isinstance(problem.bias, bool) or (isinstance(problem.bias, str) and problem.bias == "regularised")):
        raise ValueError(f'bias={problem.bias!r}: choose True, False or "regularised"')
    instance("loss", problem.loss, Loss, "losses.Hinge()")
    instance("kernel", problem.kernel, Kernel, "kernels.RBF() or a callable k(x, z)")
    if solver is not None:
        instance("solver", solver, Solver, "solvers.Newton()")
        steps = getattr(solver, "max_steps", 1)
        if not isinstance(steps, numbers.Integral) or steps < 1:
            raise ValueError(f"solver.max_steps is {steps!r}: give it a whole number of steps, at least 1")


def instance(name: str, part: Any, wanted: type, example: str) -> None:
    """Refuse a part, or one inside it, that is no instance of its class."""
    if isinstance(part, Function) and isinstance(part.function, type):
        part = part.function
    if not isinstance(part, wanted):
        hint = "pass an instance of it" if isinstance(part, type) else "pass an instance"
        raise ValueError(f"{name} is {_named(part)}: {hint}, such as hyperjax.{example}")
    if isinstance(part, Composite):
        if not isinstance(part.kernels, tuple):
            raise ValueError(f"{name}.kernels is {_named(part.kernels)}: pass a list of kernels")
        for i, kernel in enumerate(part.kernels):
            instance(f"{name}.kernels[{i}]", kernel, wanted, example)
    elif isinstance(part, (Scaled, Wrapped)):
        inside = "kernel" if isinstance(part, Scaled) else "loss"
        instance(f"{name}.{inside}", getattr(part, inside), wanted, example)


def _named(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def array(name: str, value: Any, dtype: Any = None) -> Array:
    """A JAX array of a float type: that of `value` if it has one, else the default (or the one given)."""
    if value is None:
        raise ValueError(f"{name} is None: pass real numbers")
    if hasattr(value, "toarray"):
        raise ValueError(f"{name} is a sparse matrix: pass {name}.toarray()")
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries: remove or impute them first")
    if not isinstance(value, jax.Array):
        try:
            value = np.asarray(value) if concrete(value) else jnp.asarray(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name} is not a rectangular array of numbers, make it one: {error}") from None
    kind = value.dtype
    real = any(jnp.issubdtype(kind, real) for real in (jnp.floating, jnp.integer, jnp.bool_))
    if not real or kind.kind == "m":  # NumPy counts a length of time among the integers
        what = "complex numbers" if jnp.issubdtype(kind, jnp.complexfloating) else f"values of type {kind}"
        raise ValueError(f"{name} holds {what}: convert it to real numbers first")
    if dtype is None:
        dtype = kind if kind in (np.dtype("float32"), np.dtype("float64")) else np.dtype(float)
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if isinstance(value, np.ndarray):
        with np.errstate(over="ignore"):  # what leaves the range becomes infinite, and is refused as such
            value = value.astype(dtype, copy=False)  # on the host: JAX would compile a program for each shape
    with contextlib.nullcontext() if isinstance(value, Tracer) else jax.ensure_compile_time_eval():
        return jnp.asarray(value, dtype)


def concrete(*trees: Any) -> bool:
    """Whether no leaf is being traced."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def known(what: str, **values: Any) -> None:
    """Refuse traced values where numbers themselves are needed: `what` says by whom."""
    for name, value in values.items():
        if not concrete(value):
            raise ValueError(f"{name} is being traced: {what}, outside jit, grad and vmap")


def hyperparameters(problem: Problem, hp: Any, X: Array, y: Array) -> Hyperparameters:
    """hp with the structure of problem.init, as arrays of X's float type; the criterion's own are left to it."""
    if not isinstance(hp, dict):
        raise ValueError(f'hp is {_named(hp)}: pass a dict {{"loss": {{..}}, "kernel": {{..}}}} like problem.init')
    wanted = begun.eval_shape(problem, X, y)
    return _conform("hp", {name: part for name, part in hp.items() if name != "criterion"}, wanted, X.dtype)


def _conform(where: str, found: Any, wanted: Any, dtype: Any) -> Any:
    """`found` as arrays in the structure and shapes of `wanted`; a scalar may stand for an array of equal values."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            raise ValueError(f"{where} is {_named(found)}: it must be a dict with {sorted(wanted)}")
        missing, unknown = sorted(set(wanted) - set(found)), sorted(map(str, set(found) - set(wanted)))
        if missing or unknown:
            parts = [f"lacks {missing}"] if missing else []
            parts += [f"has unknown {unknown}"] if unknown else []
            raise ValueError(f"{where} {' and '.join(parts)}: its names must be {sorted(wanted)}, as in problem.init")
        return {name: _conform(f"{where}[{name!r}]", found[name], inside, dtype) for name, inside in wanted.items()}
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            raise ValueError(f"{where} must be a list of {len(wanted)}, one entry a kernel, found {found!r}")
        return [_conform(f"{where}[{i}]", *pair, dtype) for i, pair in enumerate(zip(found, wanted, strict=True))]
    if isinstance(found, dict):
        raise ValueError(f"{where} is a dict: it must be numbers of shape {wanted.shape}, as problem.init gives")
    leaf = array(where, found, dtype)
    if leaf.shape not in (wanted.shape, ()):
        raise ValueError(f"{where} has shape {leaf.shape}: it must have shape {wanted.shape}, as problem.init gives")
    return leaf


def values(
    problem: Problem, hp: Hyperparameters, X: Array, y: Array, weights: Array | None, folds: Folds | None
) -> None:
    """Everything that needs the numbers themselves, where they are known."""
    leaves = {"hp" + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(hp)}
    _finite({"X": X.by_row.value if isinstance(X, Matrix) else X, "y": y, "weights": weights, **leaves})
    if weights is not None and concrete(weights):
        _weights(np.asarray(weights), folds)
    if problem.loss.labels and concrete(y):
        _labels(np.asarray(y))
    jax.tree_util.tree_map_with_path(_inside, hp, problem.domains(hp))
    for part, plugin, name, data in (("kernel", problem.kernel, "X", X), ("loss", problem.loss, "y", y)):
        if concrete(hp[part], plugin, data):
            host: Any = data if isinstance(data, Matrix) else np.asarray(data)
            message = plugin.problem_with(host, jax.tree.map(np.asarray, hp[part]))
            if message is not None:
                raise ValueError(f"{name}, hp['{part}']: {message}")


def _finite(arrays: dict[str, Array | None]) -> None:
    """Refuse NaN and infinity in the arrays that are known."""
    known = {name: value for name, value in arrays.items() if value is not None and concrete(value)}
    if all(map(_beside_host, known.values())):
        # a sum tells at once that all is finite; one that is not may have overflowed
        with np.errstate(all="ignore"):
            fine = all(np.isfinite(v.sum()) or np.isfinite(v).all() for v in map(np.asarray, known.values()))
    else:
        fine = bool(_all_finite(list(known.values())))
    if fine:
        return
    for name, value in known.items():
        host = np.asarray(value)
        bad = np.argwhere(~np.isfinite(host))
        if len(bad) and not host.ndim:
            raise ValueError(f"{name} is {host}: give it a finite value")
        if len(bad):
            at = tuple(int(i) for i in bad[0])
            raise ValueError(
                f"{name} holds {len(bad)} NaN or infinite value(s), the first {host[at]} at {at}: "
                f"{'remove or impute them first' if name in ('X', 'y', 'X_new') else 'give finite values'}"
            )


def _beside_host(value: Array) -> bool:
    """Whether NumPy sees the array without a copy: no program needs compiling to look at it then."""
    return value.is_fully_addressable and len(value.devices()) == 1 and next(iter(value.devices())).platform == "cpu"


@jax.jit
def _all_finite(arrays: list[Array]) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in arrays]))


def _weights(w: np.ndarray, folds: Folds | None) -> None:
    if (w < 0).any():
        raise ValueError(f"weights holds {int((w < 0).sum())} negative value(s): give weights of zero or more")
    empty = np.flatnonzero(~(np.atleast_2d(w) > 0).any(axis=1))
    if empty.size:
        which = f"[{empty[0]}]" if w.ndim == 2 else ""
        raise ValueError(f"weights{which} are all zero: at least one sample must have a positive weight")
    if folds is not None and concrete(folds.train):
        empty = np.flatnonzero(~((np.asarray(folds.train) > 0) & (w > 0)).any(axis=1))
        if empty.size:
            raise ValueError(f"weights leave fold {empty[0]} without a training row: give one a positive weight")


def _labels(y: np.ndarray) -> None:
    if not ((y == 1) | (y == -1)).all():
        values = np.unique(y)
        shown = ", ".join(f"{v:g}" for v in values[:5]) + (", .." if len(values) > 5 else "")
        raise ValueError(f"y holds the labels {shown}: a margin loss needs -1 and +1; map the two classes to them")
    if y.min() == y.max():
        raise ValueError(f"y holds one class only ({y[0]:g}): a classifier needs both -1 and +1")


def _inside(path: Any, value: Array, domain: Any) -> None:
    if not concrete(value):
        return
    host = np.asarray(value)
    wrong = domain.problem_with(host)
    if wrong:
        raise ValueError(f"hp{jax.tree_util.keystr(path)} is {host}: it {wrong}")


def new_rows(problem: Problem, X_new: Any, X: Array) -> Any:
    """Rows to predict, with the training rows' float type and columns."""
    if is_sparse(X_new):
        rows(problem, X_new)
        X_new = matrix(X_new, X.dtype, "X_new")
    else:
        X_new = array("X_new", X_new, X.dtype)
    if X_new.ndim != 2 or X_new.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_new has shape {X_new.shape}: it must be two-dimensional with {X.shape[1]} columns, as in training"
        )
    with jax.ensure_compile_time_eval():
        _finite({"X_new": X_new.by_row.value if isinstance(X_new, Matrix) else X_new})
    return X_new


def start(init: Any, folds: int, y: Array) -> tuple[Array, Array]:
    """The coefficients (T, n) and biases (T,) of a warm start; those of one problem serve all folds."""
    try:
        z, b = (init.z, init.b) if hasattr(init, "z") else init
    except (TypeError, ValueError):
        raise ValueError(f"init is {_named(init)}: pass a Solution, a pair (z, b), or None") from None
    z, b = jnp.atleast_2d(array("init: z", z, y.dtype)), jnp.atleast_1d(array("init: b", b, y.dtype))
    n = y.shape[0]
    if z.shape not in ((folds, n), (1, n)) or b.shape not in ((folds,), (1,)):
        wanted = f"({folds}, {n}) and ({folds},)" if folds > 1 else f"({n},) and ()"
        raise ValueError(f"init has z of shape {z.shape} and b of shape {b.shape}: give shapes {wanted}, or None")
    with jax.ensure_compile_time_eval():
        _finite({"init: z": z, "init: b": b})
    return z, b


def elementwise(loss: Loss, hp: Any, y: Array) -> None:
    """Refuse a phi that sums or mixes rows, while tracing: broadcast, another problem would be solved without a word.

    `loss` and `hp` are expanded, y is (T, n).
    """
    if type(loss).prox is not Loss.prox:  # more than phi is known
        return
    name, y = f"loss: phi of {type(loss).__name__}", y[0]
    try:
        out = jax.eval_shape(loss.phi, y, y, hp)
    except KeyError as error:
        raise ValueError(f"{name} asks for hp[{error}], which `init` does not give: add it there") from error
    except (TypeError, ValueError) as error:
        what = str(error).splitlines()[0][:150]
        hint = "write it with jax.numpy" if "__array__" in what else "make it elementwise"
        raise ValueError(f"{name} fails on {len(y)} outputs, {hint}: {what}") from error
    if out is None:
        raise ValueError(f"{name} returns nothing: end it with `return`")
    if getattr(out, "shape", None) != y.shape:
        found = f"shape {out.shape}" if hasattr(out, "shape") else f"a {type(out).__name__}"
        raise ValueError(
            f"{name} must return one value an output, shape {y.shape}, and returned {found}; do not sum or average"
        )


def sound(problem: Problem, hp: Hyperparameters, X: Any, y: Array, s: Array) -> Array:
    """Whether the values of each fold (T,) are ones an eager call accepts: what a code must tell under jit."""
    inside = [jnp.asarray(True), *jax.tree.leaves(jax.tree.map(_lies_inside, hp, problem.domains(hp)))]
    in_play = s > 0
    inside.append(jnp.asarray(problem.kernel.sound(X, hp["kernel"])))
    good = jnp.all(s >= 0, axis=1) & jnp.any(in_play, axis=1) & jnp.all(jnp.stack(inside))
    if problem.loss.labels:
        good = good & jnp.all(~in_play | (jnp.abs(jnp.broadcast_to(y, s.shape)) == 1.0), axis=1)
    return good


def _lies_inside(value: Array, domain: Any) -> Array:
    inside = jnp.all(jnp.isfinite(domain.to_real(value)))
    return inside & jnp.all(value >= 0) if isinstance(domain, NonNegative) else inside


def same_folds(folds: Folds, outputs: Array) -> None:
    """Refuse to read the outputs of one set of folds with the test masks of another."""
    if outputs.ndim != 2 or outputs.shape != folds.test.shape:
        raise ValueError(
            f"folds has {folds.n_folds} folds of {folds.n_samples} rows, and the solution outputs of shape "
            f"{outputs.shape}: pass the folds that cross_solve was given"
        )
    if concrete(folds.test) and not np.any(np.asarray(folds.test)):
        raise ValueError("folds test no row, so no row has a held-out output: give test sets, or read `outputs`")


def tolerance(tol: Any, dtype: Any, name: str = "tol") -> Array:
    """The tolerance and how far rounding may loosen it, shape (2,): not at all where the caller gave one.

    By default 1e-8 in float64 and 1e-3 in float32, loosened to the rounding of products with K (`Inner.loosened`).
    """
    if tol is None:
        return jnp.asarray([1e-8 if dtype == jnp.float64 else 1e-3, jnp.inf], dtype)
    if not concrete(tol):
        # no solution is within an infinite tolerance, as none is within NaN
        return jnp.full((2,), jnp.where(jnp.isfinite(tol), tol, jnp.nan), dtype)
    value = np.asarray(tol)
    if value.ndim or value.dtype.kind not in "iuf" or not 0 < value < np.inf:
        raise ValueError(f"{name}={tol!r}: give one positive number, in units of the outputs")
    least = 20.0 * float(jnp.finfo(dtype).eps)
    if value < least:
        more = "" if dtype == jnp.float64 else (
            ', or enable float64 (jax.config.update("jax_enable_x64", True)) and pass float64 arrays'
        )
        raise ValueError(f"{name}={tol} cannot be reached in {jnp.dtype(dtype).name}: give at least {least:.1e}{more}")
    return jnp.full((2,), tol, dtype)


def n_rows(X: Any) -> int:
    """The number of rows of something array-like."""
    shape = X.shape if hasattr(X, "shape") else array("X", X).shape
    if len(shape) == 0:
        raise ValueError(f"X is {X!r}: pass an array of rows and columns")
    if len(shape) != 2:
        raise ValueError(f"X has shape {shape}: give it two dimensions, rows and columns")
    return int(shape[0])


def remedy(code: Code) -> str:
    """What to do about a failed solve."""
    return {
        Code.MAX_STEPS: "Scale the features, lower C, loosen tol, or use float64",
        Code.NONFINITE: "Look for NaN, infinity or overflow in the data and hyperparameters",
        Code.SINGULAR: "The kernel matrix is not positive semidefinite: check the kernel",
    }[code]
