"""What `tune` refuses, and that every refusal names the argument, what was found and what to do."""

import numpy as np
import pytest

import hyperjax as hj

pytestmark = pytest.mark.no_extras

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.where(RNG.normal(size=20) > 0, 1.0, -1.0)
PROBLEM = hj.Problem()
ARD = hj.Problem(kernel=hj.kernels.ARD())


def holed(value):
    out = X.copy()
    out[3, 1] = value
    return out


CASES = [
    ({"problem": "svm"}, "problem is a str"),
    ({"problem": hj.Problem(loss=hj.losses.Hinge)}, "loss is the class Hinge"),
    ({"X": holed(np.nan)}, "X holds 1 NaN"),
    ({"X": X[:, 0]}, "X has shape"),
    ({"X": X[:1], "y": Y[:1]}, "1 row"),
    ({"y": Y[:-1]}, "y has shape"),
    ({"y": Y + 1.0}, "labels"),
    ({"y": np.ones(20)}, "one class"),
    ({"y": np.stack([Y, Y + 1])}, "labels"),
    ({"weights": -np.ones(20)}, "weights holds"),
    ({"weights": np.ones(3)}, "weights has shape"),
    ({"folds": 1}, "at least 2 folds"),
    ({"folds": 30}, "folds"),
    ({"folds": "5"}, "folds"),
    ({"folds": np.ones((2, 20))}, "test no row"),
    ({"folds": np.vstack([np.ones(20), np.arange(20) % 2])}, "fold 0 tests no row"),
    ({"groups": np.zeros(20)}, "groups names only 1"),
    ({"groups": np.arange(20), "folds": np.ones((2, 20))}, "groups goes with a number of folds"),
    ({"criterion": "error"}, "criterion is 'error'"),
    ({"criterion": hj.criteria.SmoothError}, "the class SmoothError"),
    ({"criterion": hj.criteria.ErrorRate()}, "ErrorRate is not smooth"),
    ({"criterion": lambda o: o.sum()}, "criterion must be callable as"),
    ({"init": 3.0}, "init is a float"),
    ({"init": {"loss": {"c": 1.0}}}, "unknown"),
    ({"init": {"loss": {"C": -1.0}}}, "must be positive"),
    ({"init": {"loss": {"C": np.nan}}}, "finite"),
    ({"init": {"kernel": {"gamma": [1.0, 2.0]}}}, "shape"),
    ({"bounds": [("loss.C", 1, 2)]}, "bounds is a list"),
    ({"bounds": {"loss.c": (1, 2)}}, "no such hyperparameter: there are"),
    ({"bounds": {"loss": (1, 2)}}, "name one hyperparameter"),
    ({"bounds": {"loss.C": 3}}, "give a pair"),
    ({"bounds": {"loss.C": (2, 1)}}, "must lie below"),
    ({"bounds": {"loss.C": (-1, 1)}}, "must be positive"),
    ({"bounds": {"loss.C": ("a", 1)}}, "give numbers"),
    ({"hold": ["loss.c"]}, "no such hyperparameter"),
    ({"hold": [3]}, "dotted names"),
    ({"hold": ["loss", "kernel"]}, "nothing to tune"),
    ({"stages": []}, "give a list such as"),
    ({"stages": ["some"]}, "stages holds 'some'"),
    ({"stages": [["loss.c"]]}, "no such hyperparameter"),
    ({"prior": -1.0}, "prior=-1.0"),
    ({"prior": "strong"}, "prior='strong'"),
    ({"optimizer": "newton"}, "optimizer='newton'"),
    ({"optimizer": 3}, "optimizer=3"),
    ({"starts": 0}, "starts=0"),
    ({"max_steps": -1}, "max_steps=-1"),
    ({"max_steps": 2.5}, "max_steps=2.5"),
    ({"max_seconds": 0}, "max_seconds=0"),
    ({"tol": 0.0}, "tol=0.0"),
    ({"tol": "small"}, "tol='small'"),
    ({"inner_tol": -1}, "inner_tol=-1"),
    ({"compilation": "slow"}, "compilation='slow'"),
    ({"seed": -1}, "seed"),
    ({"solver": hj.solvers.DCD()}, "DCD does not fit"),
    ({"solver": "smo"}, "solver is a str"),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=[message for _, message in CASES])
def test_bad_input_is_named(change, message):
    given = {"problem": PROBLEM, "X": X, "y": Y, "progress": False, "folds": 3, **change}
    with pytest.raises(ValueError, match=message):
        hj.tune(given.pop("problem"), given.pop("X"), given.pop("y"), **given)


def test_a_start_that_cannot_be_solved_says_what_to_do():
    solver = hj.solvers.ProxGrad(max_steps=1)
    with pytest.raises(RuntimeError, match=r"cannot start.*fold 0: MAX_STEPS.*start elsewhere"):
        hj.tune(PROBLEM, X, Y, 3, solver=solver, progress=False)


def test_ties_and_names_of_a_vector():
    with pytest.raises(ValueError, match=r"bounds\['kernel.gamma'\]"):
        hj.tune(ARD, X, Y, 3, bounds={"kernel.gamma": ([1.0, 2.0], None)}, progress=False)


def test_nested_score_wants_numbers_of_folds():
    with pytest.raises(ValueError, match="folds must be a number"):
        hj.nested_score(PROBLEM, X, Y, folds=hj.folds.stratified(Y, 3))
