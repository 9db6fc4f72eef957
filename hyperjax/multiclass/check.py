"""What is checked before a multi-class problem is traced: on concrete arguments, with words for people."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import checks
from ..kernels.base import Kernel
from ..types import Array, Hyperparameters
from .problem import CrammerSinger

__all__ = ["inputs"]


def inputs(
    problem: Any, hp: Hyperparameters, X: Any, labels: Any, weights: Any
) -> tuple[Array, Array, Hyperparameters, Array | None]:
    """X, labels, hyperparameters and weights as arrays, checked where they are concrete."""
    _parts(problem)
    X = checks.array("X", X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: give it two dimensions, rows and columns, and none of them empty")
    n = X.shape[0]
    labels = _labels(problem, labels, n)
    hp = checks.hyperparameters(problem, hp, X, labels)
    if weights is not None:
        weights = checks.array("weights", weights, X.dtype)
        if weights.shape != (n,):
            raise ValueError(
                f"weights has shape {weights.shape}: give it one weight a row, shape ({n},), and jax.vmap for several"
            )
    with jax.ensure_compile_time_eval():
        checks.values(problem, hp, X, labels, weights, None)
    return X, labels, hp, weights


def _parts(problem: Any) -> None:
    if not isinstance(problem, CrammerSinger):
        found = f"the class {problem.__name__}" if isinstance(problem, type) else f"a {type(problem).__name__}"
        raise ValueError(f"problem is {found}: pass hyperjax.multiclass.CrammerSinger(classes=.., kernel=..)")
    k = problem.classes
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 2:
        raise ValueError(f"classes={k!r}: give the number of classes, an integer of two or more")
    if not (problem.bias is False or (isinstance(problem.bias, str) and problem.bias == "regularised")):
        raise ValueError(f'bias={problem.bias!r}: a multi-class problem takes False or "regularised"')
    if not isinstance(problem.kernel, Kernel):
        raise ValueError(
            f"kernel is a {type(problem.kernel).__name__}: pass an instance, such as hyperjax.kernels.RBF()"
        )


def _labels(problem: CrammerSinger, labels: Any, n: int) -> Array:
    if labels is None:
        raise ValueError("labels is None: pass one integer a row")
    if not isinstance(labels, jax.Array):
        labels = np.asarray(labels)
    kind = labels.dtype
    if not (jnp.issubdtype(kind, jnp.integer) or jnp.issubdtype(kind, jnp.floating)):
        raise ValueError(
            f"labels holds values of type {kind}: number the classes from 0, with numpy.unique for instance"
        )
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape} and X has {n} rows: give one integer a row, shape ({n},)")
    if checks.concrete(labels):
        host = np.asarray(labels)
        wrong = np.flatnonzero(~((host >= 0) & (host < problem.classes) & (host == np.floor(host))))
        if wrong.size:
            raise ValueError(
                f"labels holds {host[wrong[0]]} at {wrong[0]}: with classes={problem.classes} they must be integers "
                f"from 0 to {problem.classes - 1}"
            )
        if np.all(host == host[0]):
            raise ValueError(f"labels holds one class only ({int(host[0])}): a classifier needs two or more")
    with jax.ensure_compile_time_eval():
        return jnp.asarray(labels).astype(jnp.int32)
