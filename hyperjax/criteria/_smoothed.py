"""The base of criteria that count rows on either side of a threshold, smoothed by a sigmoid."""

import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..domains import Domain, Real
from ..types import Array, Hyperparameters, static
from ._smoothing import calibrated, classes, not_positive, platt_targets, spread
from .base import Criterion

__all__ = ["Smoothed"]

THRESHOLDS = ("fixed", "tuned", "fitted")


class Smoothed(Criterion):
    """A function of false negatives fn and false positives fp, each row counting 1 - p_l = sigma(-s1 y_l (o_l - s0)).

    `threshold` says where s0 comes from:

    - "fixed": s0 = 0.
    - "tuned": s0 is the hyperparameter hp["criterion"]["threshold"], any real number, 0 at the start; a search that
      finds it there begins at the best cut of its first outputs, where rows lie on both sides.
    - "fitted": s0 and s1 >= 0 minimise the negative log-likelihood of the outputs with Platt's targets; derivatives
      are those of the implicit function.  A fit to likelihood balances the two kinds of error, so that a criterion
      which weighs them differently loses its meaning: such a class warns.

    In the first two s1 = steepness / std(o), the population's, so that V does not change when outputs and s0 are
    scaled together.  Outputs that are all equal give the value of the constant classifier and a zero gradient.
    The hard counterpart predicts +1 where o >= s0.
    """

    labels: ClassVar[bool] = True
    steepness: float = 10.0
    threshold: str = static(default="fixed")
    domains: ClassVar[dict[str, Domain]] = {"threshold": Real()}
    weighs_errors: ClassVar[bool] = False
    """Whether the two kinds of error count differently."""

    def __post_init__(self):
        if self.threshold not in THRESHOLDS:
            raise ValueError(
                f"threshold of {type(self).__name__} must be one of {', '.join(THRESHOLDS)}, found {self.threshold!r}"
            )
        if self.threshold == "fitted" and self.weighs_errors:
            warnings.warn(
                f"{type(self).__name__} with a fitted threshold: the fit makes smoothed false negatives and false "
                'positives about equal, whatever the criterion prefers; use threshold="tuned"',
                stacklevel=2,
            )

    def measure(self, fn: Array, fp: Array, pos: Array, neg: Array) -> Array:
        """The value from false negatives, false positives and the sizes of the two classes."""
        raise NotImplementedError(f"{type(self).__name__} must define measure(self, fn, fp, pos, neg)")

    def init(self, y):
        return {"threshold": 0.0} if self.threshold == "tuned" else {}

    def problem_with(self, y):
        return not_positive(steepness=self.steepness)

    def value(self, o, y, w, hp):
        odds, informed = self.odds(o, y, w, hp)
        return self._count(jnp.where(informed, jax.nn.sigmoid(-y * odds), lax.stop_gradient(_wrong(odds, y))), y, w)

    def hard(self, o, y, w, hp):
        odds, _ = self.odds(o, y, w, hp)
        return self._count(_wrong(odds, y), y, w)

    def best_cut(self, o: np.ndarray, y: np.ndarray, w: np.ndarray) -> float | None:
        """The threshold with the least hard value of those that leave rows on both sides; None if there is none."""
        order = np.argsort(o)
        order = order[w[order] > 0]
        o, positive, negative = o[order], np.where(y > 0, w, 0.0)[order], np.where(y > 0, 0.0, w)[order]
        fn, tn = np.cumsum(positive)[:-1], np.cumsum(negative)[:-1]
        counts: Any = fn, negative.sum() - tn, positive.sum(), negative.sum()
        values = np.asarray(self.measure(*counts), float)
        values = np.where((o[1:] > o[:-1]) & np.isfinite(values), values, np.inf)
        if not np.isfinite(values).any():
            return None
        at = int(np.argmin(values))
        return float(0.5 * (o[at] + o[at + 1]))

    def constant(self, y: np.ndarray, w: np.ndarray) -> float:
        """The better hard value of the two predictions that are the same for every row."""
        pos, neg = w[y > 0].sum(), w[y < 0].sum()
        counts: Any = ((0.0, neg), (pos, 0.0))
        values = [float(self.measure(fn, fp, pos, neg)) for fn, fp in counts]
        return min((value for value in values if np.isfinite(value)), default=np.inf)

    def odds(self, o: Array, y: Array, w: Array, hp: Hyperparameters) -> tuple[Array, Array]:
        """s1 (o - s0), and whether the outputs are more than a constant."""
        if self.threshold == "fitted":
            return calibrated(o, platt_targets(y, w), w), jnp.ones((), bool)
        _, std, differ = spread(o, w)
        return self.steepness / std * (o - self._s0(o, hp)), differ

    def _s0(self, o: Array, hp: Hyperparameters) -> Any:
        if self.threshold == "fixed":
            return jnp.zeros((), o.dtype)
        if "threshold" not in hp:
            raise ValueError(
                f'{type(self).__name__}(threshold="tuned") needs hp["criterion"]["threshold"]; start from '
                'hp["criterion"] = criterion.init(y)'
            )
        return jnp.asarray(hp["threshold"], o.dtype)

    def _count(self, wrong: Array, y: Array, w: Array) -> Array:
        """The measure of rows that are wrong to a degree in [0, 1]."""
        positive, negative = classes(y, w)
        return self.measure(jnp.sum(positive * wrong), jnp.sum(negative * wrong), jnp.sum(positive), jnp.sum(negative))


def _wrong(odds: Array, y: Array) -> Array:
    """1 where the prediction, +1 for odds of at least 0, misses the label."""
    return ((odds >= 0) != (y > 0)).astype(odds.dtype)
