"""One trace for any number of calls that differ only in values, and nothing heavy imported for it."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import hyperjax as hj
from tests.transforms.common import FOLDS, N, X, Y, run, softplus, values


class Counted(hj.kernels.RBF):
    """The Gaussian kernel, counting how often Python asks for a matrix: only while a trace is made."""

    count: ClassVar[list[int]] = [0]
    works: ClassVar[list[bool]] = [False]

    def cross(self, hp, X, Z):
        self.count[0] += 1
        self.works[0] = True
        return super().cross(hp, X, Z)


PROBLEM = hj.Problem(hj.losses.Hinge(), Counted(), bias=True)
OTHERS = [(0.5, 0.2), (2.0, 1.0), (30.0, 0.1)]


def traces_after_the_first(call):
    """How many matrices are asked for by calls with new values, once one call has been made."""
    call(1.0, 0.5, X, Y)
    assert Counted.works[0], "no trace was ever counted"
    Counted.count[0] = 0
    for number, (C, gamma) in enumerate(OTHERS):
        call(C, gamma, X[::-1] + number, Y[::-1].copy())
    return Counted.count[0]


def test_solve_and_decision():
    def call(C, gamma, X, y):
        return hj.solve(PROBLEM, values(C, gamma), X, y).decision(X[:4])

    assert traces_after_the_first(call) == 0


def test_arguments_of_other_kinds_share_the_trace():
    hp = {"loss": {"C": 1}, "kernel": {"gamma": np.float64(0.5)}}
    hj.solve(PROBLEM, values(), X, Y)
    Counted.count[0] = 0
    dtype = jnp.result_type(float)
    hj.solve(PROBLEM, hp, jnp.asarray(X, dtype), Y.astype(int), tol=2e-3)
    hj.solve(hj.Problem(hj.losses.Hinge(), Counted(), bias=True), values(), X.tolist(), list(Y), tol=5e-3)
    assert Counted.count[0] == 0


def test_cross_decision():
    other = hj.folds.stratified(Y, FOLDS.train.shape[0], seed=7)

    def call(C, gamma, X, y):
        return hj.cross_decision(PROBLEM, values(C, gamma), X, y, FOLDS if C == 1.0 else other)

    assert traces_after_the_first(call) == 0


def test_gradients_under_the_users_own_jit():
    def loss(hp, X, y):
        return softplus(hj.cross_decision(PROBLEM, hp, X, y, FOLDS), y)

    step = jax.jit(jax.value_and_grad(loss))
    dtype = jnp.result_type(float)
    assert traces_after_the_first(lambda C, g, X, y: step(values(C, g), X.astype(dtype), y.astype(dtype))) == 0


def test_eager_gradients():
    """Outside the user's jit the rule itself is compiled once."""

    def call(C, gamma, X, y):
        return jax.grad(lambda hp: softplus(hj.cross_decision(PROBLEM, hp, X, y, FOLDS), Y))(values(C, gamma))

    assert traces_after_the_first(call) == 0


def test_a_warm_start_costs_one_more_trace_and_no_other():
    first = hj.solve(PROBLEM, values(), X, Y)
    second = hj.solve(PROBLEM, values(1.1), X, Y, init=first)
    Counted.count[0] = 0
    for C in (1.2, 1.3):
        second = hj.solve(PROBLEM, values(C), X, Y, init=second)
    hj.solve(PROBLEM, values(), X, Y, init=(np.zeros((1, N), X.dtype), np.zeros(1, X.dtype)))
    assert Counted.count[0] == 0


def test_no_optional_or_heavy_module_comes_with_the_library():
    """The seconds themselves are measured by experiments/speed."""
    code = """
import sys
import jax
before = set(sys.modules)
import hyperjax
new = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(new & {"jaxopt", "optax", "sklearn", "matplotlib", "optuna", "pandas", "IPython", "flax", "beartype"}))
"""
    assert run(code).split() == []
