"""Input that is unusual but sound, and input that is bad under jit: codes instead of errors."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from tests.robustness.given import FOLDS, INF, NAN, PROBLEM, N, X, Y, hp, refused, with_entry


class Frame:
    """The part of a pandas object that numpy uses."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


def test_numbers_of_other_kinds_are_taken():
    """Integers, booleans, lists, frames and Python numbers become the working float type, with the same result."""
    whole = np.round(3 * X).astype(int)
    expected = hj.solve(PROBLEM, hp(1.0, 1.0), whole.astype(float), Y, weights=np.ones(N))
    for given in (
        (hp(1, 1), whole, Y.astype(int), np.ones(N, bool)),
        (hp(True, np.int32(1)), whole.tolist(), Y.tolist(), [1] * N),
        (hp(np.float32(1), jnp.float32(1)), Frame(whole), Frame(Y), Frame(np.ones(N))),
        (hp(), jnp.asarray(whole), jnp.asarray(Y, jnp.float32), jnp.ones(N, jnp.int32)),
    ):
        h, *data, weights = given
        found = hj.solve(PROBLEM, h | {"kernel": {"gamma": 1}}, *data, weights=weights)
        assert found.z.dtype == expected.z.dtype
        np.testing.assert_array_equal(found.z, expected.z)
    single = hj.solve(PROBLEM, hp(), X.astype(np.float32), Y.astype(int))
    assert {leaf.dtype for leaf in (single.z, single.b, single.kkt)} == {jnp.dtype("float32")}
    assert hj.solve(PROBLEM, hp(), X.astype(np.float16), Y).z.dtype == jnp.result_type(float)


def test_the_same_badness_under_jit_is_a_code():
    """No exception and no hang: NaN and infinity anywhere give NONFINITE for every fold they reach."""

    @jax.jit
    def codes(h: Any, X: Any, y: Any, weights: Any) -> Any:
        solution = hj.solve(PROBLEM, h, X, y, weights=weights)
        return solution.code, hj.cross_decision(PROBLEM, h, X, y, FOLDS, weights=weights)

    good = {"h": jax.tree.map(jnp.asarray, hp()), "X": X, "y": Y, "weights": np.ones(N)}
    code, outputs = codes(**good)
    assert not hj.Code(int(code)).failed and np.all(np.isfinite(outputs))
    for bad in (NAN, INF, -INF):
        for change in (
            {"X": with_entry(X, (3, 1), bad)},
            {"y": with_entry(Y, 2, bad)},
            {"weights": with_entry(np.ones(N), 1, bad)},
            {"h": jax.tree.map(jnp.asarray, hp(C=bad))},
            {"h": jax.tree.map(jnp.asarray, hp(gamma=bad))},
        ):
            code, outputs = codes(**{**good, **change})
            assert hj.Code(int(code)) is hj.Code.NONFINITE, (bad, list(change), hj.Code(int(code)))
            assert np.any(np.isnan(outputs)), (bad, list(change))


def test_values_out_of_their_domain_under_jit_fail():
    """What eager calls refuse must not come out of a jit as a solution."""

    @jax.jit
    def code(h: Any, y: Any, weights: Any) -> Any:
        return hj.solve(PROBLEM, h, X, y, weights=weights).code

    as_arrays = lambda **values: jax.tree.map(jnp.asarray, hp(**values))
    ones = np.ones(N)
    for what, arguments in {
        "C = 0": (as_arrays(C=0.0), Y, ones),
        "C < 0": (as_arrays(C=-1.0), Y, ones),
        "gamma < 0": (as_arrays(gamma=-1.0), Y, ones),
        "negative weight": (as_arrays(), Y, with_entry(ones, 3, -1.0)),
        "no weight": (as_arrays(), Y, 0.0 * ones),
        "labels 0 and 1": (as_arrays(), (Y + 1) / 2, ones),
    }.items():
        found = hj.Code(int(code(*arguments)))
        assert found.failed, f"{what}: {found.name}"


def test_margins_that_a_constant_function_meets_are_a_code_under_jit():
    """m_pos + m_neg <= 0: w = 0 has no loss, and no gradient means anything."""
    problem = hj.Problem(hj.losses.WeightedHinge(), hj.kernels.RBF(), bias=True)

    @jax.jit
    def code(m_neg: Any) -> Any:
        loss = {"C_pos": 1.0, "C_neg": 1.0, "m_pos": 1.0, "m_neg": m_neg}
        return hj.solve(problem, {"loss": jax.tree.map(jnp.asarray, loss), "kernel": {"gamma": 1.0}}, X, Y).code

    assert [hj.Code(int(code(m))).failed for m in (-1.5, -1.0, -0.5)] == [True, True, False]
    assert hj.Code(int(code(-1.0))) is hj.Code.NONFINITE


def test_an_indefinite_kernel_matrix_under_jit_fails():
    problem = hj.Problem(kernel=hj.kernels.Precomputed())
    given = {"loss": {"C": jnp.asarray(1.0)}, "kernel": {}}
    code = jax.jit(lambda K: hj.solve(problem, given, K, Y).code)
    assert hj.Code(int(code(X @ X.T - 3.0 * np.eye(N)))) is hj.Code.SINGULAR
    assert hj.Code(int(code(-(X @ X.T)))).failed


def test_data_a_jit_closes_over_are_still_checked():
    """Concrete data inside a traced function are checked, a callable kernel too."""
    problem = hj.Problem(kernel=lambda x, z: jnp.sum(x * z))

    def outputs(C: Any, X: Any = X) -> Any:
        return hj.solve(problem, {"loss": {"C": C}, "kernel": {}}, X, Y).outputs

    assert np.all(np.isfinite(jax.jit(outputs)(1.0)))
    refused(lambda: jax.jit(lambda C: outputs(C, with_entry(X, (0, 0), NAN)))(1.0), "X holds 1 NaN")


def test_what_needs_the_numbers_themselves_says_so_under_jit():
    problem, X, y = hj.Problem(), jnp.asarray(np.random.default_rng(0).normal(size=(12, 2))), np.tile([-1.0, 1.0], 6)
    hp = problem.init(X, y)
    for call, words in (
        (lambda X: hj.solve(problem, hp, X, y).raise_if_failed().z, "code is being traced: call raise_if_failed"),
        (lambda X: hj.tune(problem, X, y, folds=2).value, "X is being traced: a search runs on the host"),
    ):
        with pytest.raises(ValueError, match=words):
            jax.jit(call)(X)
