"""Tune an SVM by its exact hypergradient on scikit-learn's breast cancer data: `make tune`.

The model is the hinge with a bias and the Gaussian kernel.  log C and log gamma go down the smooth
cross-validation loss mean log(1 + e^{-y o}) over the held-out outputs o of five stratified folds.
Columns are standardised by the training rows; the test rows are looked at once, at the end.
"""

import time

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import minimize  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

import hyperjax as hj  # noqa: E402

SEED = 0
GRID = {"C": 10.0 ** np.arange(-2, 4), "gamma": 10.0 ** np.arange(-5, 1)}
BOUNDS = [(np.log(1e-3), np.log(1e3)), (np.log(1e-6), np.log(1e1))]
STOP = {"maxiter": 25, "maxfun": 40, "ftol": 1e-4, "gtol": 1e-4}
PROBLEM = hj.Problem(loss=hj.losses.Hinge(), kernel=hj.kernels.RBF(), bias=True)


def data():
    """Training and test rows, standardised by the training rows; +1 is benign."""
    X, y = load_breast_cancer(return_X_y=True)
    y = np.where(y == 1, 1.0, -1.0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def hyperparameters(theta):
    C, gamma = jnp.exp(theta)
    return {"loss": {"C": C}, "kernel": {"gamma": gamma}}


def tune(X, y):
    """The start, the best point and one line a step; L-BFGS asks for values and exact gradients."""
    folds = hj.folds.stratified(y, 5, seed=SEED)
    X, y = jnp.asarray(X), jnp.asarray(y)

    @jax.jit
    def validation(theta):
        o = hj.cross_decision(PROBLEM, hyperparameters(theta), X, y, folds)
        return jnp.mean(jnp.logaddexp(0.0, -y * o))

    step = jax.jit(jax.value_and_grad(validation))
    history = []

    def evaluate(theta):
        value, gradient = step(theta)
        history.append((np.exp(theta), float(value), np.asarray(gradient), time.perf_counter() - begun))
        _line(len(history), *history[-1])
        return history[-1][1], history[-1][2]

    begun = time.perf_counter()
    init = PROBLEM.init(X, y)
    start = np.log([float(init["loss"]["C"]), float(init["kernel"]["gamma"])])
    print("compiling ..", flush=True)
    minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=BOUNDS, options=STOP)
    return history


def _line(number, values, loss, gradient, seconds):
    if number == 1:
        print(f"{'call':>6}{'C':>10}{'gamma':>11}{'CV loss':>10}{'d/dlog C':>11}{'d/dlog gamma':>14}{'seconds':>10}")
    C, gamma = values
    print(f"{number:6d}{C:10.4g}{gamma:11.4g}{loss:10.5f}{gradient[0]:11.1e}{gradient[1]:14.1e}{seconds:10.2f}")


def scores(outputs, y):
    """Accuracy and the mean of log(1 + e^{-y o}), the validation loss, on the test rows."""
    margins = y * np.asarray(outputs)
    return float(np.mean(margins > 0)), float(np.mean(np.logaddexp(0.0, -margins)))


def fitted(X, y, X_test, y_test, values):
    """Test scores of the model with these hyperparameters on all training rows."""
    solution = hj.solve(PROBLEM, hyperparameters(jnp.log(jnp.asarray(values))), X, y).raise_if_failed()
    return scores(solution.decision(X_test), y_test)


def peers(X, y, X_test, y_test):
    """scikit-learn's default SVC and a grid search over as many folds, with seconds."""
    begun = time.perf_counter()
    default = SVC().fit(X, y)
    seconds, gamma = time.perf_counter() - begun, 1.0 / (X.shape[1] * X.var())
    yield "scikit-learn SVC, defaults", (1.0, gamma), scores(default.decision_function(X_test), y_test), 0, seconds
    begun = time.perf_counter()
    splits = StratifiedKFold(5, shuffle=True, random_state=SEED)
    search = GridSearchCV(SVC(), GRID, cv=splits).fit(X, y)
    seconds, best = time.perf_counter() - begun, search.best_params_
    found = scores(search.best_estimator_.decision_function(X_test), y_test)
    yield "scikit-learn grid search", (best["C"], best["gamma"]), found, len(search.cv_results_["params"]), seconds


def main():
    X, y, X_test, y_test = data()
    print(f"breast cancer: {len(y)} training rows, {len(y_test)} test rows, {X.shape[1]} features")
    print("hinge SVM, Gaussian kernel, bias; five stratified folds, one adjoint solve a gradient\n")
    history = tune(X, y)
    start, best = history[0], min(history, key=lambda record: record[1])
    compiling, whole = start[3], history[-1][3]
    print(f"\nCV loss {start[1]:.5f} -> {best[1]:.5f} in {len(history)} calls: {whole:.1f} s, of which")
    print(f"{compiling:.1f} s for the first one, which compiles, and {whole - compiling:.2f} s for the others\n")
    rows = [
        ("hyperjax, start values", start[0], fitted(X, y, X_test, y_test, start[0]), 0, float("nan")),
        ("hyperjax, tuned", best[0], fitted(X, y, X_test, y_test, best[0]), len(history), whole),
        *peers(X, y, X_test, y_test),
    ]
    print(f"{'':28}{'C':>8}{'gamma':>10}{'test accuracy':>15}{'test loss':>11}{'CV runs':>9}{'seconds':>9}")
    for name, (C, gamma), (hits, loss), runs, seconds in rows:
        cost = f"{runs or '-':>9}" + (f"{'-':>9}" if np.isnan(seconds) else f"{seconds:9.2f}")
        print(f"{name:28}{C:8.4g}{gamma:10.4g}{hits:15.4f}{loss:11.4f}{cost}")


if __name__ == "__main__":
    main()
