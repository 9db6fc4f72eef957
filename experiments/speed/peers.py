"""The searches people use instead, on folds they are given: GridSearchCV and Optuna's TPE over LIBSVM."""

import warnings

import numpy as np

GRID = (2.0 ** np.arange(-5, 10), 2.0 ** np.arange(-12, 3))
"""C and gamma of the 15 x 15 grid."""
CACHE = 4000


def pairs(folds):
    """(training rows, test rows) of every fold, as scikit-learn's cv= takes them."""
    train, test = np.asarray(folds.train) > 0, np.asarray(folds.test) > 0
    return [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in zip(train, test, strict=True)]


def grid_search(X, y, folds, grid):
    """(CV error, C, gamma, fits of a point) of GridSearchCV with two jobs; pooled over folds like ours."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    values = {"C": grid[0], "gamma": grid[1]}
    search = GridSearchCV(SVC(cache_size=CACHE), values, cv=pairs(folds), n_jobs=2, refit=False)
    search.fit(X, y)
    best = search.best_params_
    return 1.0 - float(search.best_score_), float(best["C"]), float(best["gamma"]), len(search.cv_results_["params"])


def tpe(X, y, folds, trials, seed):
    """The same of Optuna's TPE over the grid's box, folds in two jobs."""
    import optuna
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    split = pairs(folds)

    def objective(trial):
        C = trial.suggest_float("C", *GRID[0][[0, -1]], log=True)
        gamma = trial.suggest_float("gamma", *GRID[1][[0, -1]], log=True)
        return 1.0 - cross_val_score(SVC(C=C, gamma=gamma, cache_size=CACHE), X, y, cv=split, n_jobs=2).mean()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=trials)
    return float(study.best_value), study.best_params["C"], study.best_params["gamma"], trials


def fitted_test_error(X, y, X_test, y_test, C, gamma):
    """Test error in percent of LIBSVM at what a peer found."""
    from sklearn.svm import SVC

    return 100.0 * float(np.mean(SVC(C=C, gamma=gamma, cache_size=CACHE).fit(X, y).predict(X_test) != y_test))
