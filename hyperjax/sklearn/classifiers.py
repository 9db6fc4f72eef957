"""Classifiers: two classes, or one against the rest with one set of hyperparameters."""

from typing import Any

import jax
import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from .. import kernels
from ..criteria.smooth_error import SmoothError
from ..solve import cross_solve
from . import frames
from .base import Tuned, named_kernel, store, weights_of
from .platt import fit_sigmoid, probabilities

__all__ = ["TunedLinearSVC", "TunedMKLClassifier", "TunedSVC"]


def _wants_probabilities(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError(f"predict_proba needs {type(estimator).__name__}(probability=True) before fit")
    return True


class TunedClassifier(ClassifierMixin, Tuned):
    """What the classifiers share.

    Of k > 2 classes each is set against the rest; the k problems share kernel matrix and hyperparameters, and the
    criterion is the mean of theirs.  `class_weight` (None, "balanced" or a dict) multiplies `sample_weight`; both count
    in training and in the criterion.  `probability` adds `predict_proba`: Platt's sigmoid, fitted to the held-out
    outputs of the cross-validation at the tuned hyperparameters.
    """

    class_weight: Any
    probability: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None):
        """Tune on (X, y), then train on all rows.  `groups` reach the splitter; rows of one are never divided."""
        X, y, sample_weight = self._read(X, y, sample_weight)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        present = np.unique(numbers[sample_weight > 0])
        if len(present) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_[present[0]]!r} (rows of weight zero do not count): a classifier "
                "needs at least two classes"
            )
        targets = np.where(numbers == np.arange(len(self.classes_))[:, None], 1.0, -1.0)
        targets = targets[1] if len(self.classes_) == 2 else targets
        weights = sample_weight * self._of_classes(y, numbers, sample_weight)[numbers]
        with jax.enable_x64(True):
            self._report(self._search(X, targets, y, weights, sample_weight, groups))
            if self.probability:
                self.sigmoids_ = self._calibrate(X, np.atleast_2d(targets), weights, sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Outputs less the tuned threshold: (m,) for two classes, positive for `classes_[1]`; (m, k) for more."""
        return self._outputs(X).T - self._threshold()

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row."""
        outputs = self.decision_function(X)
        return self.classes_[np.argmax(outputs, axis=1) if outputs.ndim == 2 else (outputs > 0).astype(int)]

    @available_if(_wants_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (m, k) of the classes in the order of `classes_`."""
        return probabilities(self._outputs(X).T, self.sigmoids_)

    @available_if(_wants_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _default_criterion(self) -> SmoothError:
        return SmoothError()

    def _of_classes(self, y: np.ndarray, numbers: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """One factor a class; "balanced" gives every class the same total weight."""
        if not (isinstance(self.class_weight, str) and self.class_weight == "balanced"):
            return compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        totals = np.bincount(numbers, sample_weight)
        return totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0))

    def _threshold(self) -> float:
        """The outputs above which a row is positive: 0 unless the criterion tunes it."""
        return float(self.result_.hp.get("criterion", {}).get("threshold", 0.0))

    def _calibrate(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, sample_weight: np.ndarray) -> Any:
        """One sigmoid (a, b) a class, from outputs of folds that did not train on the row."""
        n, d = X.shape
        result = self.result_
        sparse = scipy.sparse.issparse(X)
        frame = frames.Frame(n, d) if sparse else frames.frame_of(result.problem, result.hp, n, d)
        folds = result.folds.replace(train=frame.weights(result.folds.train), test=frame.weights(result.folds.test))
        tested = result.folds.test.reshape(folds.repeats, -1, n).sum(axis=1) > 0
        counts = np.broadcast_to(sample_weight, tested.shape)
        hp = {name: part for name, part in result.hp.items() if name != "criterion"}
        sigmoids = []
        for target in targets:
            solved = cross_solve(
                result.problem,
                hp,
                frame.fill(X),
                frame.targets(target),
                folds,
                frame.weights(weights),
                solver=self.solver,
            ).raise_if_failed()
            o = np.atleast_2d(np.asarray(solved.held_out(folds)))[:, :n]
            positive = np.broadcast_to(target > 0, tested.shape)
            sigmoids.append(fit_sigmoid(o[tested], positive[tested], counts[tested]))
        return np.asarray(sigmoids)


class TunedSVC(TunedClassifier):
    """A support vector classifier with a kernel.

    `kernel` is "rbf", "ard" (one width a feature), "linear", "polynomial", "laplacian", an instance of
    `hyperjax.kernels.Kernel` or a callable k(x, z) of two rows; `loss` a name of `hyperjax.losses.names()` or an
    instance; `bias` True, False or "regularised".  The hinge and the Gaussian kernel make it scikit-learn's SVC.
    """

    def __init__(
        self,
        kernel="rbf",
        loss="hinge",
        bias=True,
        *,
        class_weight=None,
        probability=False,
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


class TunedLinearSVC(TunedClassifier):
    """A linear support vector classifier, LIBLINEAR's: squared hinge, regularised bias.

    `coef_` (1 or k, d) and `intercept_` (1 or k,) are the weights and the bias.
    """

    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        loss="squared_hinge",
        bias="regularised",
        *,
        class_weight=None,
        probability=False,
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
        self.coef_ = np.atleast_2d(weights_of(solution))
        self.intercept_ = np.atleast_1d(solution.b) - self._threshold()
        return self

    def _kernel(self) -> Any:
        return kernels.Linear()


class TunedMKLClassifier(TunedClassifier):
    """Multiple kernel learning: a weighted sum of kernels whose weights and own hyperparameters are all tuned.

    `kernels` lists names, instances or callables as `TunedSVC.kernel` takes them; by default a linear, a Gaussian and
    a Laplacian kernel.  `kernel_weights_` are the tuned weights, in that order.
    """

    kernels: Any
    kernel_weights_: np.ndarray

    def __init__(
        self,
        kernels=("linear", "rbf", "laplacian"),
        loss="hinge",
        bias=True,
        *,
        class_weight=None,
        probability=False,
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
        self.kernel_weights_ = np.asarray(self.result_.hp["kernel"]["beta"])
        return self

    def _kernel(self) -> Any:
        return kernels.Weighted([named_kernel(kernel) for kernel in self.kernels])
