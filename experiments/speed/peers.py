"""What people use instead, with its best settings: LIBSVM, LIBLINEAR, grid search, halving, TPE, ThunderSVM."""

import contextlib
import io
import warnings
from typing import Any

import numpy as np

from experiments.speed.task import splits

CACHE = 4000
"""Megabytes of LIBSVM's kernel cache."""
C, GAMMA = 2.0 ** np.arange(-5, 10), 2.0 ** np.arange(-12, 3)
GRIDS = {
    "svc": {"C": C, "gamma": GAMMA},
    "svr": {
        "C": 2.0 ** np.linspace(-5, 9, 10),
        "epsilon": 2.0 ** np.arange(-8, 1, 2),
        "gamma": 2.0 ** np.linspace(-12, 2, 10),
    },
}
"""15 x 15 points for classification, 10 x 5 x 10 for regression."""


def machine(kind: str, **values: float) -> Any:
    """scikit-learn's LIBSVM."""
    from sklearn.svm import SVC, SVR

    return (SVC if kind == "svc" else SVR)(cache_size=CACHE, **values)


def fit(task: tuple[Any, Any, float, float]) -> Any:
    """One call of LIBSVM; picklable for a pool."""
    X, y, cost, width = task
    return machine("svc", C=cost, gamma=width).fit(X, y)


def fits(tasks: list[Any]) -> list[Any]:
    """Calls one after the other."""
    return [fit(task) for task in tasks]


def tasks(X: Any, y: Any, folds: Any, cost: float, width: float) -> list[Any]:
    """What `fit` gets for every fold."""
    return [(X[rows], y[rows], cost, width) for rows in splits(folds)]


def thunder() -> Any:
    """The SVC of thundersvm-cpu, None where it is not installed."""
    try:
        from thundersvm import SVC
    except (ImportError, OSError):
        return None
    return SVC


def thunders(X: Any, y: Any, folds: Any, cost: float, width: float) -> list[Any]:
    """Calls of ThunderSVM one after the other."""
    return [thunder()(C=cost, gamma=width).fit(*task[:2]) for task in tasks(X, y, folds, cost, width)]


def liblinear(data: list[Any], arguments: str) -> list[Any]:
    """One call of LIBLINEAR a fold on rows in its own structure, which `folded` builds untimed."""
    from liblinear.liblinear import parameter
    from liblinear.liblinearutil import train

    option = parameter(arguments)
    with contextlib.redirect_stdout(io.StringIO()):
        return [train(fold, option) for fold in data]


def folded(rows: Any, y: Any, folds: Any = None) -> list[Any]:
    """LIBLINEAR's own structure of CSR rows with -B 1, one a fold or one of all rows."""
    from liblinear.liblinear import problem

    if folds is None:
        return [problem(y, rows, bias=1)]
    return [problem(y[chosen], rows[chosen], bias=1) for chosen in splits(folds)]


def weights(models: list[Any]) -> np.ndarray:
    """w with the bias as its last entry, (T, d + 1), for the label +1."""
    out = []
    for model in models:
        w, b = model.get_decfun()
        out.append(np.r_[w, b] * (1.0 if model.get_labels()[0] == 1 else -1.0))
    return np.array(out)


def pairs(folds: Any) -> list[Any]:
    """(training rows, test rows) of every fold, as scikit-learn's cv= takes them."""
    train, test = np.asarray(folds.train) > 0, np.asarray(folds.test) > 0
    return [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in zip(train, test, strict=True)]


def scoring(kind: str) -> str:
    return "accuracy" if kind == "svc" else "neg_mean_squared_error"


def grid(kind: str, X: Any, y: Any, folds: Any, every: int = 1) -> dict[str, float]:
    """GridSearchCV with two jobs."""
    from sklearn.model_selection import GridSearchCV

    values = {name: axis[::every] for name, axis in GRIDS[kind].items()}
    search = GridSearchCV(machine(kind), values, scoring=scoring(kind), cv=pairs(folds), n_jobs=2, refit=False)
    return search.fit(X, y).best_params_


def halving(kind: str, X: Any, y: Any, folds: Any, seed: int) -> dict[str, float]:
    """HalvingRandomSearchCV over the grid's box, with two jobs."""
    from scipy.stats import loguniform
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401  its import is the switch
    from sklearn.model_selection import HalvingRandomSearchCV

    box = {name: loguniform(axis[0], axis[-1]) for name, axis in GRIDS[kind].items()}
    search = HalvingRandomSearchCV(
        machine(kind), box, scoring=scoring(kind), cv=pairs(folds), n_jobs=2, refit=False, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y).best_params_


def tpe(kind: str, X: Any, y: Any, folds: Any, trials: int, seed: int) -> dict[str, float]:
    """Optuna's TPE over the grid's box, folds in two jobs."""
    import optuna
    from sklearn.model_selection import cross_val_score

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    split = pairs(folds)

    def objective(trial: Any) -> float:
        values = {name: trial.suggest_float(name, axis[0], axis[-1], log=True) for name, axis in GRIDS[kind].items()}
        scores = cross_val_score(machine(kind, **values), X, y, scoring=scoring(kind), cv=split, n_jobs=2)
        return -float(scores.mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=trials)
    return study.best_params


def cv_score(kind: str, X: Any, y: Any, folds: Any, values: dict[str, float]) -> float:
    """What a search found, in points: CV error in per cent, or squared error in per cent of the variance of y."""
    return float(np.mean([score(kind, X[a], y[a], X[b], y[b], values) for a, b in pairs(folds)]))


def score(kind: str, X: Any, y: Any, X_test: Any, y_test: Any, values: dict[str, float]) -> float:
    """The same on given rows; the variance is that of the training rows."""
    found = machine(kind, **values).fit(X, y).predict(X_test)
    return 100.0 * float(np.mean(found != y_test if kind == "svc" else (found - y_test) ** 2 / np.var(y)))
