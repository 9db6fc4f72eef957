"""An honest estimate: an outer cross-validation around the whole of tuning."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from . import checks, plan
from .criteria.base import apply, hard
from .folds import Folds
from .kernels.precomputed import Precomputed
from .problem import Problem
from .tune import TuneResult, tune

__all__ = ["NestedScore", "nested_score"]


@dataclasses.dataclass(frozen=True)
class NestedScore:
    """What tuning is worth on rows it has not seen."""

    value: float
    """Mean of the criterion over the outer folds."""
    hard: float | None
    """Mean of its hard counterpart, None where there is none."""
    values: np.ndarray
    hards: np.ndarray | None
    results: tuple[TuneResult, ...]
    """The search of each outer fold."""
    folds: Folds

    @property
    def standard_error(self) -> float:
        """Of the mean of what is reported: the hard counterpart where there is one."""
        scores = self.values if self.hards is None else self.hards
        return float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")


def nested_score(
    problem: Problem, X: Any, y: Any, outer: Any = 5, folds: Any = 5, criterion: Any = None, weights: Any = None,
    groups: Any = None, seed: int = 0, transform: Any = None, **settings: Any,
) -> NestedScore:  # fmt: skip
    """Tune on the training rows of every outer fold, and score the model on the rows of that fold.

    `outer` is a number of folds or a Folds; `folds` a number for the inner cross-validations; both keep `groups`
    together.  `transform(X_train) -> function of X` is fitted on every outer fold's training rows, a scaling say.
    The other settings are those of `tune`.  The same criterion judges the outer folds, one by one.
    """
    checks.known("a nested score is several searches on the host; call it", X=X, y=y, weights=weights)
    if settings.get("checkpoint") is not None:
        raise ValueError("checkpoint: a nested score is several searches, and a file holds one; leave it out")
    if isinstance(problem.kernel, Precomputed):
        raise ValueError("the kernel is Precomputed: a nested score divides rows of features; pass those and a kernel")
    rows = scipy.sparse.csr_matrix(X) if scipy.sparse.issparse(X) else np.asarray(checks.array("X", X))
    y = checks.array("y", y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}: a nested score takes one value a row; score the classes one by one")
    if isinstance(folds, Folds) or np.ndim(folds) != 0:
        raise ValueError("folds must be a number: the rows to divide differ from one outer fold to the next")
    outside = plan.split(outer, np.asarray(y), groups, seed)
    given = None if weights is None else np.asarray(checks.array("weights", weights))
    results, values, hards = [], [], []
    for train, test in zip(np.asarray(outside.train) > 0, np.asarray(outside.test) > 0, strict=True):
        move = (lambda rows: rows) if transform is None else transform(rows[train])
        parts = {"weights": given, "groups": groups}
        own = {name: np.asarray(part)[train] for name, part in parts.items() if part is not None}
        result = tune(problem, move(rows[train]), np.asarray(y)[train], folds, criterion, seed=seed, **own, **settings)
        o = result.decision(move(rows[test]))
        one = np.ones((1, int(test.sum())))
        facts = (result.criterion, o, jnp.asarray(y[test], o.dtype), Folds(jnp.asarray(0 * one), jnp.asarray(one)))
        w = None if given is None else jnp.asarray(given[test], o.dtype)
        values.append(float(apply(*facts, result.hp, w)))
        counterpart = hard(*facts, result.hp, w)
        hards.append(np.nan if counterpart is None else float(counterpart))
        results.append(result)
    known = not np.isnan(hards).any()
    return NestedScore(
        float(np.mean(values)), float(np.mean(hards)) if known else None, np.asarray(values),
        np.asarray(hards) if known else None, tuple(results), outside,
    )  # fmt: skip
