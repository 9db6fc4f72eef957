"""A small problem, and what it means to be refused."""

from typing import Any

import numpy as np
import pytest

import hyperjax as hj

N, D, T = 12, 3, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
PROBLEM = hj.Problem(kernel=hj.kernels.RBF())
FOLDS = hj.folds.stratified(Y, T, seed=0)
NAN, INF = float("nan"), float("inf")


def hp(C: Any = 1.0, gamma: Any = 0.5, **more: Any) -> dict[str, Any]:
    return {"loss": {"C": C}, "kernel": {"gamma": gamma}, **more}


def with_entry(array: np.ndarray, at: Any, value: float) -> np.ndarray:
    array = np.array(array)
    array[at] = value
    return array


def refused(call: Any, *words: str) -> None:
    """`call` raises a ValueError whose one line holds all words: the argument, what was found, what to do."""
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is ValueError
    for word in words:
        assert word in message, f"{word!r} is missing in {message!r}"
    assert "\n" not in message and len(message) < 400, message


def refused_everywhere(*words: str, problem: Any = PROBLEM, folds: Any = FOLDS, **arguments: Any) -> None:
    """Refused by solve, cross_solve and cross_decision alike."""
    given = {"hp": hp(), "X": X, "y": Y, **arguments}
    places = [given[name] for name in ("hp", "X", "y")]
    options = {name: value for name, value in given.items() if name not in ("hp", "X", "y")}
    refused(lambda: hj.solve(problem, *places, **options), *words)
    refused(lambda: hj.cross_solve(problem, *places, folds, **options), *words)
    refused(lambda: hj.cross_decision(problem, *places, folds, **options), *words)
