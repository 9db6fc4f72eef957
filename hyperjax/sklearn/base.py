"""What all estimators share: reading data, one search in 64 bits, and its result under scikit-learn's names."""

import dataclasses
import numbers
from typing import Any

import jax
import numpy as np
import scipy.sparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import criteria, kernels, losses, plugins
from ..criteria.base import Criterion
from ..folds import Folds
from ..problem import Problem
from ..sparse import Matrix
from ..tune import TuneResult, tune
from ..types import Hyperparameters
from . import frames, names
from .splits import make_folds

__all__ = ["Tuned", "named_kernel", "store", "weights_of"]

IN_UNITS = (criteria.AbsoluteError, criteria.SquaredError)  # pyright: ignore[reportAttributeAccessIssue]
"""Criteria in the units of y; all others that ship report one minus something that is best at 1."""


class Tuned(BaseEstimator):
    """A support vector machine that tunes its hyperparameters by gradients while it is fitted.

    Parameters of all estimators (and see `hyperjax.tune`, whose arguments most of them are):

    criterion: what cross-validation makes small: a name of `hyperjax.criteria.names()`, an instance, a callable of
        (o, y); by default the smoothed error rate, for regression one minus R2.
    cv: an int, a splitter or an iterable of (train, test) as scikit-learn has it; an int with `groups` given to `fit`
        means (Stratified)GroupKFold.
    optimizer, stages, prior, starts, solver, max_steps, max_seconds, tol: as in `hyperjax.tune`.
    bounds, hold, init: by the names of `best_params_`: {"C": (1e-3, 1e3)}, ["gamma"], {"C": 10.0}.
    random_state: decides further starts (`starts` > 1); an int, a RandomState, or None for 0.
    verbose: 1 shows a progress bar.

    After `fit`: `best_params_` and `best_score_` (greater is better: accuracy, R2, F, ..; a criterion in units of y or
    of your own counts negative); `cv_results_`, one entry a step of the search, with `best_index_`; `result_`, the
    whole TuneResult in NumPy arrays; `n_iter_`; `support_`, the rows with a coefficient.  Everything runs in 64 bits,
    whatever JAX is set to.
    """

    kernel: Any
    loss: Any
    bias: Any
    criterion: Any
    cv: Any
    optimizer: Any
    bounds: Any
    hold: Any
    stages: Any
    prior: Any
    starts: int
    solver: Any
    init: Any
    max_steps: int
    max_seconds: float | None
    tol: float
    random_state: Any
    verbose: int
    result_: TuneResult

    def __sklearn_tags__(self):
        """Sparse X is read; X is a kernel matrix for a Precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(getattr(self, "kernel", None), kernels.Precomputed)
        return tags

    def _problem(self) -> Problem:
        """The inner problem the parameters describe."""
        loss = losses.by_name(self.loss) if isinstance(self.loss, str) else self.loss
        return Problem(loss, self._kernel(), self.bias)

    def _kernel(self) -> Any:
        return named_kernel(self.kernel)

    def _default_criterion(self) -> Criterion:
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X dense, or sparse where products with it suffice; y a vector, weights of zero or more, all checked."""
        numeric = not is_classifier(self)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero everywhere: give at least some rows a weight above zero")
        problem = self._problem()
        products = type(problem.kernel) is kernels.Linear and problem.loss.smooth
        return X if products and scipy.sparse.issparse(X) else _dense(X), y, weights

    def _search(
        self, X: np.ndarray, targets: np.ndarray, y: np.ndarray, weights: np.ndarray, sample_weight: Any, groups: Any
    ) -> TuneResult:
        """Tune on targets (n,) or (k, n); `weights` count in training and criterion, y divides the folds."""
        n, d = X.shape
        problem = self._problem()
        folds = make_folds(self.cv, X, y, groups, is_classifier(self))
        first = np.atleast_2d(targets)[0]
        start = self._start(problem, X, first, sample_weight)
        criterion = self._criterion()
        start["criterion"] = dict(criterion.init(first)) if isinstance(criterion, Criterion) else {}
        begin = names.merge(self.init, start)
        # a function of (o, y) alone could not tell the rows added from the others
        known = isinstance(criterion, Criterion)
        known = known and not scipy.sparse.issparse(X)  # adding rows to sparse ones is work of its own
        frame = frames.frame_of(problem, start, n, d) if known else frames.Frame(n, d)
        sides = (frame.weights(side) for side in (folds.train, folds.test))
        result = tune(
            problem,
            frame.fill(X),
            frame.targets(targets),
            folds=Folds(*sides, repeats=folds.repeats),  # type: ignore[arg-type]  # host arrays become JAX's in there
            criterion=criterion,
            init=begin,
            weights=frame.weights(weights),
            optimizer=self.optimizer,
            bounds=names.full(self.bounds, start),
            hold=names.full(self.hold, start),
            stages=_staged(self.stages, start),
            prior=self.prior,
            starts=self.starts,
            solver=self.solver,
            max_steps=self.max_steps,
            max_seconds=self.max_seconds,
            tol=self.tol,
            seed=self._seed(),
            progress=bool(self.verbose),
        )
        changes = {name: frames.host_arrays(getattr(result, name)) for name in ("problem", "hp", "criterion", "start")}
        changes |= {"folds": frames.host_arrays(folds), "solution": frames.shrink(result.solution, n, d)}
        return dataclasses.replace(result, **changes)

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, numbers.Integral):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _criterion(self) -> Any:
        if self.criterion is None:
            return self._default_criterion()
        return criteria.by_name(self.criterion) if isinstance(self.criterion, str) else self.criterion

    def _start(self, problem: Problem, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Hyperparameters:
        """The problem's own start values, as if every row stood there as often as its weight says."""
        hp = problem.init(X, y)
        if scipy.sparse.issparse(X):
            return hp
        if np.ptp(weights) > 0 and not any(len(X) in np.shape(leaf) for leaf in jax.tree.leaves(hp)):
            present = weights > 0
            X, y, w = X[present], y[present], weights[present] / weights.sum()
            variance = w @ ((X - np.mean(w @ X)) ** 2).mean(axis=1)
            # start widths follow the variance over all entries: rows of that variance stand for weighted ones
            if variance > 0 and np.var(X) > 0:
                hp = problem.init(X * np.sqrt(variance / np.var(X)), y)
        return hp

    def _report(self, result: TuneResult) -> None:
        """Set the attributes of a fitted estimator."""
        self.result_ = result
        self.best_params_ = names.params(result.hp)
        history = result.history
        self.n_iter_ = max(len(history) - 1, 1)
        steps = [names.params(record["hp"]) for record in history]
        scores = np.asarray([_score(result.criterion, r["hard"], r["value"]) for r in history])
        self.cv_results_ = {
            **{f"param_{name}": _column([step[name] for step in steps]) for name in self.best_params_},
            "params": steps,
            "mean_test_score": scores,
            "rank_test_score": rankdata(-scores, method="min").astype(int),
            **{name: np.asarray([r[name] for r in history]) for name in ("value", "gradient_norm", "seconds", "step")},
            "stage": np.asarray([r["stage"] for r in history], dtype=object),
        }
        best = history.best
        self.best_index_ = next(i for i, record in enumerate(history) if record is best)
        self.best_score_ = _score(result.criterion, result.hard, result.value)
        self.support_ = np.flatnonzero((np.atleast_2d(result.solution.z) != 0).any(axis=0))

    def _outputs(self, X: Any) -> np.ndarray:
        """Outputs at new rows, (m,) or (k, m)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        X = X if isinstance(self.result_.solution.X, Matrix) else _dense(X)
        with jax.enable_x64(True):
            return frames.decision(self.result_.solution, X)


def store(estimator: Any, arguments: dict[str, Any]) -> None:
    """Keep the arguments of __init__ as they are, which is all that scikit-learn lets it do."""
    vars(estimator).update({name: value for name, value in arguments.items() if name not in ("self", "__class__")})


def named_kernel(kernel: Any) -> Any:
    """The kernel of a name; an instance or a callable k(x, z) passes through."""
    return plugins.find("kernel", kernels.EXAMPLES, kernel, {}) if isinstance(kernel, str) else kernel


def weights_of(solution: Any) -> np.ndarray:
    """w = X'z of a linear model on the host, (d,) or (k, d)."""
    X, z = solution.X, np.asarray(solution.z)
    return (X.to_scipy().T @ z.T).T if isinstance(X, Matrix) else z @ np.asarray(X)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def _staged(stages: Any, hp: Hyperparameters) -> Any:
    """Stages with full names in place of short ones."""
    if stages is None or isinstance(stages, str):
        return stages
    return [stage if isinstance(stage, str) else names.full(stage, hp) for stage in stages]


def _score(criterion: Any, hard: float | None, value: float) -> float:
    """The score of a value that tuning makes small."""
    ships = type(criterion).__module__.startswith(criteria.__name__)
    if hard is None or not ships or isinstance(criterion, IN_UNITS):
        return -(value if hard is None else hard)
    return 1.0 - hard


def _column(values: list[Any]) -> np.ndarray:
    """Numbers as they are, arrays as objects."""
    if np.ndim(values[0]) == 0:
        return np.asarray(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
