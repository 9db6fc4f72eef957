"""A criterion of each fold's own outputs, averaged: the other reading of "cross-validation error"."""

from typing import Any

import jax
import jax.numpy as jnp

from ..criteria.base import Criterion

__all__ = ["PerFold"]


class PerFold(Criterion):
    """The mean over folds of another criterion.

    Problem:    V = 1/T sum_t V_t(outputs of the rows fold t tests); a scale or threshold that the other finds from
                outputs is then one a fold, where pooled outputs share one
    Hard:       the mean of the other's hard counterparts
    Derivative: of the formula
    Source:     Keerthi, Sindhwani & Chapelle, section 2, who sum over folds; see papers on pooled and averaged F.
    """

    criterion: Any

    @property
    def smooth(self):  # type: ignore[override]  # answered by the criterion inside
        return self.criterion.smooth

    @property
    def domains(self):  # type: ignore[override]  # what is fixed for a class is computed for a wrapper
        return self.criterion.domains

    def init(self, y):
        return self.criterion.init(y)

    def problem_with(self, y):
        return self.criterion.problem_with(y)

    def __call__(self, o, y, folds=None, hp=None, weights=None):
        return _mean(self.criterion, o, y, folds, hp, weights)

    def hard_value(self, o, y, folds=None, hp=None, weights=None):
        return _mean(self.criterion.hard_value, o, y, folds, hp, weights)


def _mean(measure: Any, o: Any, y: Any, folds: Any, hp: Any, weights: Any) -> Any:
    """The measure fold by fold, or of everything where there are no folds."""
    if folds is None:
        return measure(o, y, None, hp, weights)
    tests = folds.test.astype(o.dtype)
    tests = tests if weights is None else tests * jnp.asarray(weights, o.dtype)[None, :]
    outputs = jnp.repeat(jnp.atleast_2d(o), folds.n_folds // folds.repeats, axis=0)
    return jnp.mean(jax.vmap(lambda o, w: measure(o, y, None, hp, w))(outputs, tests))
