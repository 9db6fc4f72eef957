"""Solutions of the multi-class machine against LIBLINEAR and plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.svm import LinearSVC

import hyperjax as hj

needs_x64 = pytest.mark.skipif(not jax.config.jax_enable_x64, reason="held to twelve digits")
KINDS = [(hj.kernels.Linear(), False), (hj.kernels.Linear(), "regularised"), (hj.kernels.RBF(gamma=0.3), False)]


def wine(n=60):
    """Three classes of wines, standardised, 13 columns."""
    from sklearn.datasets import load_wine

    X, labels = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))[:n]
    X = X[order]
    return (X - X.mean(axis=0)) / X.std(axis=0), labels[order]


def objective(W, X, labels, C, weights):
    """The primal of a linear machine, W (k, d)."""
    out = X @ W.T
    own = out[np.arange(len(labels)), labels]
    worst = np.max(out + (np.arange(len(W))[None, :] != labels[:, None]), axis=1)
    return 0.5 * np.sum(W * W) + C * np.sum(weights * (worst - own))


@needs_x64
@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("bias", [False, "regularised"])
def test_equals_liblinear(C, bias):
    X, labels = wine()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(labels))
    problem = hj.multiclass.CrammerSinger(3, hj.kernels.Linear(), bias)
    found = hj.multiclass.solve(problem, {"loss": {"C": C}, "kernel": {}}, X, labels, weights, tol=1e-9)
    peer = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=bool(bias), tol=1e-10, max_iter=2_000_000, random_state=0
    ).fit(X, labels, sample_weight=weights)
    rows, W, V = X, np.asarray(found.z).T @ X, peer.coef_
    if bias:
        rows, W, V = np.c_[X, np.ones(len(X))], np.c_[W, found.b], np.c_[V, peer.intercept_]
    ours, theirs = (objective(A, rows, labels, C, weights) for A in (W, V))
    assert found.converged and ours <= theirs * (1.0 + 1e-12)
    np.testing.assert_allclose(theirs, ours, rtol=1e-7)
    np.testing.assert_allclose(W, V, atol=1e-5 * np.abs(V).max())
    np.testing.assert_allclose(found.decision(X), peer.decision_function(X), atol=1e-5 * np.abs(found.outputs).max())


@needs_x64
@pytest.mark.parametrize(("kernel", "bias"), KINDS, ids=["linear", "linear with bias", "rbf"])
def test_optimality_in_plain_numpy(kernel, bias):
    """Rows of z lie in s C (own class - simplex), and only classes at the maximum are in use."""
    X, labels = wine()
    weights = np.random.default_rng(2).uniform(0.0, 2.0, len(labels))
    weights[:5] = 0.0
    problem = hj.multiclass.CrammerSinger(3, kernel, bias)
    hp = {"loss": {"C": 2.0}, "kernel": {} if isinstance(kernel, hj.kernels.Linear) else {"gamma": 0.3}}
    found = hj.multiclass.solve(problem, hp, X, labels, weights, tol=1e-11)
    Z, most, own = np.asarray(found.z), 2.0 * weights, np.eye(3)[labels]
    K = X @ X.T if isinstance(kernel, hj.kernels.Linear) else np.exp(
        -0.3 * np.sum((X[:, None] - X[None]) ** 2, axis=2)
    )  # fmt: skip
    out = (K + (1.0 if bias else 0.0)) @ Z
    np.testing.assert_allclose(found.outputs, out, atol=1e-10)
    np.testing.assert_allclose(Z.sum(axis=1), 0.0, atol=1e-12)
    used = most[:, None] * own - Z
    assert used.min() > -1e-12 and np.abs(Z[:5]).max() == 0.0
    raised = out + 1.0 - own
    short = raised.max(axis=1, keepdims=True) - raised
    assert np.abs(short[used > 1e-9]).max() < 1e-9
    loss = np.sum(most * (raised.max(axis=1) - np.sum(own * out, axis=1)))
    inside = 0.5 * np.sum(Z * out)
    dual = -inside - np.sum(Z * (1.0 - own))
    assert abs(inside + loss - dual) < 1e-10 * (inside + loss)
    assert found.gap < 1e-10 and found.kkt < 1e-11
    free = np.sum((np.sort(used, axis=1)[:, -2] > 1e-9) & (most > 0))
    assert found.n_free == free and found.degenerate == 0


@needs_x64
def test_two_classes_are_the_hinge_with_half_the_margin():
    """With k = 2 and outputs o, -o: the loss is C (1 - 2 m)_+ and the norm is counted twice."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * draw.normal(size=40) > 0, 1.0, -1.0)
    kernel, hp = hj.kernels.RBF(), {"gamma": 0.5}
    two = hj.multiclass.CrammerSinger(2, kernel)
    found = hj.multiclass.solve(two, {"loss": {"C": 1.5}, "kernel": hp}, X, (y > 0).astype(int), tol=1e-10)
    hinge = hj.solve(hj.Problem(kernel=kernel, bias=False), {"loss": {"C": 3.0}, "kernel": hp}, X, y, tol=1e-10)
    np.testing.assert_allclose(2.0 * np.asarray(found.outputs)[:, 1], hinge.outputs, atol=1e-8)
    np.testing.assert_allclose(found.outputs[:, 0], -found.outputs[:, 1], atol=1e-10)


@pytest.mark.float32
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_duplicates_empty_rows_and_padding_are_no_trouble(C):
    draw = np.random.default_rng(5)
    dtype = jnp.result_type(float)
    X, labels = draw.normal(size=(24, 3)), draw.integers(4, size=24)
    X[3:9], X[10] = X[2], 0.0
    weights = np.where(np.arange(24) < 20, 1.0, 0.0)
    problem = hj.multiclass.CrammerSinger(4)
    hp = {"loss": {"C": jnp.asarray(C, dtype)}, "kernel": {}}

    def total(hp, X, weights):
        found = hj.multiclass.solve(problem, hp, X, labels, weights)
        return jnp.sum(jnp.sin(found.outputs[:20])), found

    given = hp, jnp.asarray(X, dtype), jnp.asarray(weights, dtype)
    (_, found), slopes = jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))(*given)
    assert not hj.Code(int(found.code)).failed, (found.code, found.kkt)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))
    np.testing.assert_array_equal(np.asarray(found.z)[20:], 0.0)


@pytest.mark.float32
@pytest.mark.parametrize("C", [1e3, 1e4, 1e5])
def test_a_matrix_of_low_rank_and_a_large_C_are_solved_to_rounding(C):
    """slack / p falls below what K's own rounding leaves of it: only refined steps arrive."""
    problem, dtype = hj.multiclass.CrammerSinger(4), jnp.result_type(float)
    for seed in range(8):
        draw = np.random.default_rng(seed)
        X, labels = draw.normal(size=(24, 3)), draw.integers(4, size=24)
        X[3:9] = X[2]
        hp = {"loss": {"C": jnp.asarray(C, dtype)}, "kernel": {}}
        found = hj.multiclass.solve(problem, hp, jnp.asarray(X, dtype), labels)
        assert not hj.Code(int(found.code)).failed, (seed, found.code, found.kkt)
        assert found.kkt <= max(1e-3, 40.0 * np.finfo(dtype).eps * C)


@pytest.mark.float32
def test_a_traced_value_out_of_range_is_a_code():
    problem = hj.multiclass.CrammerSinger(3)
    X, labels = jnp.asarray(np.random.default_rng(6).normal(size=(12, 2)), jnp.result_type(float)), np.arange(12) % 3

    @jax.jit
    def code(C, labels, weights):
        return hj.multiclass.solve(problem, {"loss": {"C": C}, "kernel": {}}, X, labels, weights).code

    one, ones = jnp.ones((), X.dtype), jnp.ones(12, X.dtype)
    assert code(one, labels, ones) in (hj.Code.OK, hj.Code.DEGENERATE)
    assert code(-one, labels, ones) == hj.Code.NONFINITE
    assert code(one, labels + 1, ones) == hj.Code.NONFINITE
    assert code(one, labels, -ones) == hj.Code.NONFINITE
    assert code(one * jnp.nan, labels, ones) == hj.Code.NONFINITE


GOOD = (
    hj.multiclass.CrammerSinger(3),
    {"loss": {"C": 1.0}, "kernel": {}},
    np.arange(12.0).reshape(6, 2),
    [0, 1, 2] * 2,
)
BAD = {
    "problem is a Problem": (0, hj.Problem()),
    "problem is the class": (0, hj.multiclass.CrammerSinger),
    "classes=1": (0, hj.multiclass.CrammerSinger(1)),
    "bias=True": (0, hj.multiclass.CrammerSinger(3, bias=True)),
    "kernel is a str": (0, hj.multiclass.CrammerSinger(3, "rbf")),
    r"hp\['loss'\] lacks \['C'\]": (1, {"loss": {}, "kernel": {}}),
    r"hp\['loss'\]\['C'\] is -1": (1, {"loss": {"C": -1.0}, "kernel": {}}),
    "X has shape": (2, np.ones(6)),
    "X holds 1 NaN": (2, np.where(np.arange(12).reshape(6, 2) == 3, np.nan, 1.0)),
    "labels holds 3 at 5": (3, [0, 1, 2, 0, 1, 3]),
    "labels holds 0.5 at 0": (3, [0.5, 1, 2, 0, 1, 2]),
    "labels holds values of type": (3, list("abcabc")),
    "labels has shape": (3, [0, 1, 2]),
    "labels is None": (3, None),
    "weights has shape": (4, np.ones((2, 6))),
    "weights holds 6 negative": (4, -np.ones(6)),
    "weights are all zero": (4, np.zeros(6)),
    "tol=0": (5, 0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_names_the_argument(message):
    place, value = BAD[message]
    arguments = [*GOOD, None, None]
    arguments[place] = value
    problem, hp, X, labels, weights, tol = arguments
    with pytest.raises(ValueError, match=message):
        hj.multiclass.solve(problem, hp, X, labels, weights, tol=tol)


def test_start_values_and_a_failed_solution():
    problem = hj.multiclass.CrammerSinger(3, hj.kernels.RBF())
    hp = problem.init(GOOD[2], GOOD[3])
    assert set(hp) == {"loss", "kernel"} and hp["loss"]["C"] == 1.0 and hp["kernel"]["gamma"] > 0
    found = hj.multiclass.solve(problem, hp, GOOD[2], GOOD[3]).raise_if_failed()
    with pytest.raises(ValueError, match="X_new has shape"):
        found.decision(np.ones((2, 5)))
    with pytest.raises(RuntimeError, match="problem 0 failed: MAX_STEPS"):
        found.replace(code=jnp.asarray(1)).raise_if_failed()
