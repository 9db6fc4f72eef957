"""Regressors."""

from typing import Any

import jax
import numpy as np
from sklearn.base import RegressorMixin

from .. import kernels
from ..criteria.r2 import R2
from ..losses.epsilon_insensitive import EpsilonInsensitive
from ..problem import Problem
from ..types import Hyperparameters
from .base import Tuned, store, weights_of

__all__ = ["TunedLinearSVR", "TunedSVR"]


class TunedRegressor(RegressorMixin, Tuned):
    """What the regressors share."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None):
        """Tune on (X, y), then train on all rows.  `groups` reach the splitter; rows of one are never divided."""
        X, y, sample_weight = self._read(X, y, sample_weight)
        y = np.asarray(y, float)
        with jax.enable_x64(True):
            self._report(self._search(X, y, y, sample_weight, sample_weight, groups))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The regression function at every row."""
        return np.array(self._outputs(X))

    def _default_criterion(self) -> R2:
        return R2()

    def _problem(self) -> Problem:
        problem = super()._problem()
        if problem.loss.labels:
            raise ValueError(f"loss={self.loss!r} is for classes: a regressor needs one such as 'epsilon_insensitive'")
        return problem

    def _start(self, problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Hyperparameters:
        """A loss given by name starts at its usual values for y of unit spread, put into the units of y."""
        hp = super()._start(problem, X, y, weights)
        spread = float(np.sqrt(np.cov(y, aweights=weights, ddof=0)))
        if not isinstance(self.loss, str) or spread == 0:
            return hp
        units = {"eps": spread, "C": spread if type(problem.loss) is EpsilonInsensitive else 1.0}
        return {**hp, "loss": {name: value * units.get(name, 1.0) for name, value in hp["loss"].items()}}


class TunedSVR(TunedRegressor):
    """Support vector regression with a kernel.

    `kernel` is "rbf", "ard" (one width a feature), "linear", "polynomial", "laplacian", an instance of
    `hyperjax.kernels.Kernel` or a callable k(x, z) of two rows; `loss` a name of `hyperjax.losses.names()` or an
    instance; `bias` True, False or "regularised".  The tube and the Gaussian kernel make it scikit-learn's SVR.
    """

    def __init__(
        self,
        kernel="rbf",
        loss="epsilon_insensitive",
        bias=True,
        *,
        criterion=None,
        cv=5,
        optimizer="bfgs",
        bounds=None,
        hold=None,
        stages=None,
        prior="auto",
        starts=1,
        solver=None,
        init=None,
        max_steps=50,
        max_seconds=None,
        tol=1e-3,
        random_state=None,
        verbose=0,
    ):
        store(self, locals())


class TunedLinearSVR(TunedRegressor):
    """Linear support vector regression: the squared tube of LIBLINEAR, with an unregularised bias.

    `coef_` (d,) and `intercept_` are the weights and the bias.
    """

    coef_: np.ndarray
    intercept_: float

    def __init__(
        self,
        loss="squared_epsilon_insensitive",
        bias=True,
        *,
        criterion=None,
        cv=5,
        optimizer="bfgs",
        bounds=None,
        hold=None,
        stages=None,
        prior="auto",
        starts=1,
        solver=None,
        init=None,
        max_steps=50,
        max_seconds=None,
        tol=1e-3,
        random_state=None,
        verbose=0,
    ):
        store(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None):
        """Tune on (X, y), then train on all rows.  `groups` reach the splitter; rows of one are never divided."""
        super().fit(X, y, sample_weight, groups)
        solution = self.result_.solution
        self.coef_ = weights_of(solution)
        self.intercept_ = float(solution.b)
        return self

    def _kernel(self) -> Any:
        return kernels.Linear()
