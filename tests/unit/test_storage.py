"""Solution.save and load: the same predictions and derivatives, support vectors only, every bad file in words."""

import json
import os
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hyperjax as hj
from hyperjax import kernels, losses

X64 = jax.config.jax_enable_x64
RTOL = 1e-12 if X64 else 1e-5
N, D = 30, 3
_draw = np.random.default_rng(7)
X = _draw.uniform(0.1, 1.5, (N, D))
Y = np.where(X[:, 0] - X[:, 1] + 0.2 * _draw.normal(size=N) > 0, 1.0, -1.0)
NEW = _draw.uniform(0.1, 1.5, (8, D))
GROUPS = np.arange(N) % 3


class Mine(losses.Loss):
    """A loss the library does not ship."""

    labels = True

    def phi(self, o, y, hp):
        return hp["C"] * jnp.logaddexp(0.0, -y * o)

    def init(self, X, y):
        return {"C": 2.0}


def made(problem, X=X, weights=None):
    """A solution object with planted coefficients: storage does not ask whether it is optimal."""
    dtype = jnp.result_type(float)
    X, y = jnp.asarray(X, dtype), jnp.asarray(Y, dtype)
    folds = 1 if weights is None else len(weights)
    z = np.random.default_rng(3).normal(size=(folds, N)) * (np.arange(N) % 4 == 1)
    facts = {name: jnp.full((folds,), 0.5) for name in ("kkt", "gap", "distance")}
    counts = {name: jnp.full((folds,), 2, jnp.int32) for name in ("code", "iterations", "n_free", "degenerate")}
    parts = {"z": jnp.asarray(z, dtype), "b": jnp.arange(1.0, 1.0 + folds, dtype=dtype), **facts, **counts}
    parts["outputs"] = jnp.asarray(z + 1.0, dtype)
    parts = parts if weights is not None else jax.tree.map(lambda v: v[0], parts)
    return hj.Solution(problem, problem.init(X, y), X, **parts)


SHIPPED = [
    hj.Problem(),
    hj.Problem(losses.PerSample(losses.Hinge(C=2.0)), kernels.ARD(), bias=False),
    hj.Problem(losses.Grouped(losses.SquaredEpsilonInsensitive(), GROUPS), kernels.Linear(), bias="regularised"),
    hj.Problem(
        losses.WeightedHinge(C_pos=2.0),
        kernels.Weighted([kernels.RBF(columns=(0, 2)), kernels.Scaled(kernels.Polynomial(degree=2.0), 3.0)]),
    ),
]


@pytest.mark.parametrize("problem", SHIPPED, ids=["default", "per sample", "grouped", "nested kernels"])
def test_round_trip(problem, tmp_path):
    solution = made(problem)
    solution.save(tmp_path / "model.npz")
    loaded = hj.Solution.load(tmp_path / "model.npz")
    np.testing.assert_allclose(loaded.decision(NEW), solution.decision(NEW), rtol=RTOL, atol=RTOL)
    assert type(loaded.problem.loss) is type(problem.loss) and type(loaded.problem.kernel) is type(problem.kernel)
    assert loaded.problem.bias == problem.bias
    support = np.flatnonzero(np.asarray(solution.z))
    np.testing.assert_array_equal(loaded.X, np.asarray(solution.X)[support])
    np.testing.assert_array_equal(loaded.z, np.asarray(solution.z)[support])
    np.testing.assert_array_equal(loaded.outputs, np.asarray(solution.outputs)[support])
    for name in ("b", "kkt", "gap", "code", "iterations", "n_free", "degenerate", "distance"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(solution, name))
        assert getattr(loaded, name).dtype == getattr(solution, name).dtype
    assert jax.tree.structure(loaded.hp) == jax.tree.structure(solution.hp)
    loaded.problem.loss.phi(loaded.outputs, jnp.asarray(Y, loaded.X.dtype)[support], loaded.hp["loss"])


def test_folds_keep_every_row_that_any_of_them_uses(tmp_path):
    solution = made(hj.Problem(), weights=np.ones((2, N)))
    z = np.zeros((2, N))
    z[0, 3], z[1, 8] = 1.5, -2.5
    solution = solution.replace(z=jnp.asarray(z, solution.X.dtype))
    solution.save(tmp_path / "folds")
    loaded = hj.Solution.load(tmp_path / "folds")
    np.testing.assert_array_equal(loaded.z, [[1.5, 0.0], [0.0, -2.5]])
    np.testing.assert_allclose(loaded.decision(NEW), solution.decision(NEW), rtol=RTOL, atol=RTOL)


def test_a_solution_without_support_vectors_predicts_its_bias(tmp_path):
    solution = made(hj.Problem())
    solution.replace(z=jnp.zeros_like(solution.z)).save(tmp_path / "flat")
    np.testing.assert_array_equal(hj.Solution.load(tmp_path / "flat").decision(NEW), np.ones(8))


def test_the_loaded_decision_is_differentiable(tmp_path):
    solution = made(hj.Problem())
    solution.save(tmp_path / "model")
    loaded = hj.Solution.load(tmp_path / "model")

    def total(solution):
        def of(gamma, rows):
            return jnp.sum(jnp.sin(solution.replace(hp={**solution.hp, "kernel": {"gamma": gamma}}).decision(rows)))

        return of

    at = (solution.hp["kernel"]["gamma"], jnp.asarray(NEW, solution.X.dtype))
    for ours, theirs in zip(*(jax.grad(total(s), (0, 1))(*at) for s in (loaded, solution)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10 if X64 else 1e-3, atol=1e-10 if X64 else 1e-4)


@pytest.mark.parametrize("mixed", [False, True])
def test_kernel_matrices_keep_their_columns(mixed, tmp_path):
    K, K_new = X @ X.T, NEW @ X.T
    kernel = kernels.Precomputed()
    if mixed:
        K, K_new = np.hstack([K, X]), np.hstack([K_new, NEW])
        kernel = kernels.Precomputed(columns=range(N)) + kernels.RBF(columns=range(N, N + D))
    solution = made(hj.Problem(kernel=kernel), X=K)
    solution.save(tmp_path / "model")
    loaded = hj.Solution.load(tmp_path / "model")
    expected = K_new[:, :N] @ np.asarray(solution.z) + 1.0
    if mixed:
        gamma = float(solution.hp["kernel"]["kernels"][1]["gamma"])
        distances = np.sum((NEW[:, None, :] - X[None, :, :]) ** 2, axis=2)
        expected = expected + np.exp(-gamma * distances) @ np.asarray(solution.z)
    np.testing.assert_allclose(loaded.decision(K_new), expected, rtol=10 * RTOL, atol=10 * RTOL)
    with zipfile.ZipFile(tmp_path / "model.npz") as file, file.open("X.npy") as stored:
        assert np.lib.format.read_array(stored).shape == (np.count_nonzero(solution.z), K.shape[1])


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (hj.Problem(Mine()), "Mine"),
        (hj.Problem(losses.PerSample(Mine())), "Mine"),
        (hj.Problem(kernel=lambda x, z: jnp.sum(x * z) + 1.0), "<lambda>"),
    ],
)
def test_what_is_defined_outside_must_be_given_again(problem, name, tmp_path):
    solution = made(problem)
    solution.save(tmp_path / "model")
    with pytest.raises(ValueError, match=rf"{name}.*pass problem="):
        hj.Solution.load(tmp_path / "model")
    loaded = hj.Solution.load(tmp_path / "model", problem)
    np.testing.assert_allclose(loaded.decision(NEW), solution.decision(NEW), rtol=RTOL, atol=RTOL)


def test_another_problem_is_refused(tmp_path):
    made(hj.Problem()).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"losses\.Hinge.*losses\.Logistic"):
        hj.Solution.load(tmp_path / "model", hj.Problem(losses.Logistic()))
    with pytest.raises(ValueError, match=r"kernels\.RBF.*kernels\.ARD"):
        hj.Solution.load(tmp_path / "model", hj.Problem(kernel=kernels.ARD()))
    with pytest.raises(ValueError, match="bias=True.*bias=False"):
        hj.Solution.load(tmp_path / "model", hj.Problem(bias=False))


def test_a_scikit_learn_problem_comes_back(tmp_path):
    svm = pytest.importorskip("sklearn.svm")
    problem = hj.Problem.from_sklearn(svm.SVC(gamma="auto"))
    made(problem).save(tmp_path / "model")
    loaded = hj.Solution.load(tmp_path / "model")
    assert type(loaded.problem.kernel) is type(problem.kernel)


def test_traced_arrays_are_refused(tmp_path):
    solution = made(hj.Problem())

    @jax.jit
    def inside(b):
        solution.replace(b=b).save(tmp_path / "model")
        return b

    with pytest.raises(ValueError, match="traced"):
        inside(1.0)
    assert not list(tmp_path.iterdir())


def test_names_and_replacement(tmp_path, monkeypatch):
    first = made(hj.Problem())
    first.save(str(tmp_path / "svm.v1"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["svm.v1.npz"]
    kept = (tmp_path / "svm.v1.npz").read_bytes()

    def full(*_):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="no space"):
            first.replace(b=first.b + 1.0).save(tmp_path / "svm.v1")
    assert [entry.name for entry in tmp_path.iterdir()] == ["svm.v1.npz"]
    assert (tmp_path / "svm.v1.npz").read_bytes() == kept
    first.replace(b=first.b + 1.0).save(tmp_path / "svm.v1.npz")
    assert float(hj.Solution.load(tmp_path / "svm.v1").b) == 2.0


def rewrite(path, **changes):
    """The file again with other values in its header."""
    with np.load(path) as stored:
        arrays = dict(stored)
    header = {**json.loads(str(arrays["header"])), **changes}
    np.savez(path, **{**arrays, "header": np.asarray(json.dumps(header))})


def test_bad_files(tmp_path):
    path = tmp_path / "model.npz"
    made(hj.Problem()).save(path)
    sound = path.read_bytes()

    with pytest.raises(FileNotFoundError, match="absent"):
        hj.Solution.load(tmp_path / "absent.npz")
    for broken in (b"", b"words", sound[: len(sound) // 2], sound[:900] + bytes(64) + sound[964:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"model\.npz is damaged"):
            hj.Solution.load(path)

    np.savez(path, x=np.ones(3))
    with pytest.raises(ValueError, match="lacks the header"):
        hj.Solution.load(path)
    np.savez(path, header=np.asarray('{"format": "photographs"}'))
    with pytest.raises(ValueError, match="another program"):
        hj.Solution.load(path)
    np.savez(path, header=np.asarray([{"a": object()}], dtype=object))
    with pytest.raises(ValueError, match="is damaged"):
        hj.Solution.load(path)

    path.write_bytes(sound)
    rewrite(path, version=99, library="9.9")
    with pytest.raises(ValueError, match=r"version 99, written by hyperjax 9\.9.*install a newer"):
        hj.Solution.load(path)
    for part in ("hp", "problem"):
        path.write_bytes(sound)
        rewrite(path, **{part: {"array": "nothing"}})
        with pytest.raises(ValueError, match="is damaged"):
            hj.Solution.load(path)
    for name in ("os.system", "losses.Loss.phi", "kernels.as_kernel"):
        path.write_bytes(sound)
        rewrite(path, problem={"loss": {"class": name, "fields": {}}, "kernel": None, "bias": True})
        with pytest.raises(ValueError, match="is damaged"):
            hj.Solution.load(path)
