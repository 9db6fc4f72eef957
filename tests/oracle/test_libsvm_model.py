"""LIBSVM's model files: genuine ones predict as svm-predict does, ours as the solution and scikit-learn do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import hyperjax as hj
from hyperjax import kernels, libsvm_model, losses

svm = pytest.importorskip("sklearn.svm")
pairwise = pytest.importorskip("sklearn.metrics.pairwise")

N, D = 40, 4
_draw = np.random.default_rng(11)
X = _draw.normal(size=(N, D)) * (_draw.random((N, D)) < 0.7)
X[:, 3] *= np.arange(N) % 5 == 0
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.4 * _draw.normal(size=N) > 0.4, 1.0, -1.0)
NEW = _draw.normal(size=(9, D))

CLASSES = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 7
rho -0.11955441548807297
label 1 -1
nr_sv 4 3
SV
0.29037185861737863 1:0.4 2:1.1 3:0.1 
0.29504082283498045 1:1.6 2:0.3 3:-1.2 
0.8901092503805853 1:-1 2:1.6 3:0.2 
1.3135202096206431 1:0.6 2:-0.1 3:-0.6 
-0.92891714991700003 1:-0.6 2:-0.8 3:0.7 
-0.67374891641969448 1:-1.7 2:-0.1 3:-1.2 
-1.186376075116893 1:-0.6 2:-0.5 3:-0.7 
"""  # noqa: W291  (svm-train leaves the blanks)
VALUES = """svm_type epsilon_svr
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 2
total_sv 6
rho -0.052502305378892646
SV
0.26741341760920273 1:-0.8 2:-1.3 3:-0.2 
0.7340516789912982 1:0.4 2:1.1 3:0.1 
0.1453822894080628 1:1.6 2:0.3 3:-1.2 
-0.46421980943350499 1:-1 2:1.6 3:0.2 
0.065977670389485391 1:-1.7 2:-0.1 3:-1.2 
-0.74860524696454422 1:0.6 2:-0.1 3:-0.6 
"""  # noqa: W291
ROWS = np.asarray([[0.4, 0.8, -1.6], [-0.3, -1.0, -0.2], [-1.3, 0.0, -0.0], [-0.3, -1.0, -0.4]])
"""Both files are those of svm-train (LIBSVM 3.37), and the numbers below what svm-predict printed for these rows."""


def saved(tmp_path, text, name="m.model"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_genuine_files(tmp_path):
    model = libsvm_model.read(saved(tmp_path, CLASSES))
    expected = [0.6078291466304934, -0.8487107508981777, -0.7856062261993121, -0.8052887093759764]
    np.testing.assert_allclose(model.decision(ROWS), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.decision(scipy.sparse.csr_matrix(ROWS)), expected, rtol=0, atol=1e-12)
    assert model.predict(ROWS).tolist() == [1, -1, -1, -1]
    # svm-predict calls the class 3 in this file what it calls -1 in the one above
    turned = libsvm_model.read(saved(tmp_path, CLASSES.replace("label 1 -1", "label 2 3")))
    np.testing.assert_allclose(turned.decision(ROWS), -np.asarray(expected), rtol=0, atol=1e-12)
    assert turned.predict(ROWS).tolist() == [2, 3, 3, 3]
    regression = libsvm_model.read(saved(tmp_path, VALUES))
    values = [0.055969096914392204, 0.3973663919578674, -0.1775121601387721, 0.3738114466750929]
    np.testing.assert_allclose(regression.decision(ROWS), values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(regression.predict(ROWS), regression.decision(ROWS))


def text_of(estimator, first):
    """The file svm-train would write for a fitted SVC or SVR, the class `first` being that of its first row."""
    kind = {"poly": "polynomial"}.get(estimator.kernel, estimator.kernel)
    classes = hasattr(estimator, "classes_")
    lines = [f"svm_type {'c_svc' if classes else 'epsilon_svr'}", f"kernel_type {kind}"]
    if kind == "polynomial":
        lines.append(f"degree {estimator.degree}")
    if kind in ("polynomial", "rbf"):
        lines.append(f"gamma {estimator._gamma:.17g}")
    if kind == "polynomial":
        lines.append(f"coef0 {estimator.coef0:.17g}")
    # scikit-learn's numbers are positive for its second class, LIBSVM's for the class of the first row
    sign = -1.0 if classes and first == estimator.classes_[0] else 1.0
    coef, rho = sign * estimator.dual_coef_[0], -sign * estimator.intercept_[0]
    lines += ["nr_class 2", f"total_sv {coef.size}", f"rho {rho:.17g}"]
    if classes:
        other = next(label for label in estimator.classes_ if label != first)
        lines += [f"label {first} {other}", f"nr_sv {np.sum(coef > 0)} {np.sum(coef < 0)}"]
    lines.append("SV")
    for i in np.argsort(-coef, kind="stable"):
        if kind == "precomputed":
            row = f"0:{estimator.support_[i] + 1}"
        else:
            row = " ".join(f"{j}:{v:.17g}" for j, v in enumerate(estimator.support_vectors_[i], 1) if v)
        lines.append(f"{coef[i]:.17g} {row} ")
    return "\n".join(lines) + "\n"


KINDS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "coef0": 1.5, "degree": 2},
    "precomputed": {},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [-1, 1, 3, 7, None], ids=str)
def test_scikit_learns_machines(kind, first, tmp_path, monkeypatch):
    monkeypatch.setattr(libsvm_model, "BLOCK", 64)  # several blocks of rows
    rows, new = (X @ X.T, NEW @ X.T) if kind == "precomputed" else (X, NEW)
    if first is None:
        theirs = svm.SVR(kernel=kind, C=2.0, epsilon=0.2, **KINDS[kind]).fit(rows, np.sin(X[:, 0]) + Y)
        expected, labels = theirs.predict(new), None
    else:
        names = (-1, 1) if first in (-1, 1) else (3, 7)
        theirs = svm.SVC(kernel=kind, C=2.0, **KINDS[kind]).fit(rows, np.where(Y > 0, names[1], names[0]))
        expected, labels = theirs.decision_function(new), theirs.predict(new)
    model = libsvm_model.read(saved(tmp_path, text_of(theirs, first)))
    np.testing.assert_allclose(model.decision(new), expected, rtol=1e-9, atol=1e-9)
    if labels is not None:
        np.testing.assert_array_equal(model.predict(new), labels)


def made(problem, X=X, z=None, b=0.7):
    """A solution with planted coefficients: the writer does not ask whether it is optimal."""
    X, y = jnp.asarray(X), jnp.asarray(Y)
    z = np.random.default_rng(3).normal(size=N) * (np.arange(N) % 3 > 0) if z is None else z
    facts = dict.fromkeys(("kkt", "gap", "distance"), jnp.zeros(()))
    facts |= dict.fromkeys(("code", "iterations", "n_free", "degenerate"), jnp.zeros((), jnp.int32))
    return hj.Solution(problem, problem.init(X, y), X, z=jnp.asarray(z), b=jnp.asarray(b), outputs=y, **facts)


POLYNOMIAL = kernels.Polynomial(gamma=0.4, coef0=0.5, degree=3.0)
PROBLEMS = {
    "linear": hj.Problem(kernel=kernels.Linear()),
    "rbf": hj.Problem(losses.SquaredHinge(), kernels.RBF(gamma=0.8)),
    "polynomial": hj.Problem(losses.EpsilonInsensitive(), POLYNOMIAL),
    "some columns": hj.Problem(kernel=kernels.Linear(columns=(0, -1)), bias="regularised"),
    "scaled": hj.Problem(
        losses.Pinball(), kernels.Scaled(kernels.Scaled(POLYNOMIAL.replace(columns=(1, 0)), 2.0), 3.0)
    ),
    "scaled columns": hj.Problem(kernel=kernels.Scaled(kernels.Linear(columns=(1, 2)), 2.0, columns=(3, 0, 1))),
}


def svm_predict(path, new):
    """Outputs the way svm-predict computes them, with scikit-learn's kernels: for the first label, or the value."""
    head, _, tail = path.read_text().partition("SV\n")
    header = {words[0]: words[1:] for words in map(str.split, head.splitlines())}
    lines = [line.split() for line in tail.splitlines()]
    assert len(lines) == int(header["total_sv"][0])
    coef, vectors = np.asarray([float(words[0]) for words in lines]), np.zeros((len(lines), D))
    for i, words in enumerate(lines):
        for word in words[1:]:
            index, value = word.split(":")
            vectors[i, int(index) - 1] = float(value)
    if "nr_sv" in header:
        positive, negative = map(int, header["nr_sv"])
        assert (coef[:positive] > 0).all() and (coef[positive:] < 0).all() and positive + negative == coef.size
    numbers = {name: float(header[name][0]) for name in ("gamma", "coef0", "degree") if name in header}
    kind = header["kernel_type"][0]
    values = getattr(pairwise, f"{kind}_kernel")(new, vectors, **numbers) @ coef - float(header["rho"][0])
    return header["svm_type"][0], header.get("label"), values


@pytest.mark.parametrize("name", PROBLEMS)
def test_our_files(name, tmp_path):
    solution = made(PROBLEMS[name])
    expected = np.asarray(solution.decision(NEW))
    path = tmp_path / "ours.model"
    libsvm_model.write(path, solution)
    kind, labels, values = svm_predict(path, NEW)
    assert (kind, labels) == (("c_svc", ["1", "-1"]) if solution.problem.loss.labels else ("epsilon_svr", None))
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(libsvm_model.read(path).decision(NEW), expected, rtol=1e-10, atol=1e-10)


def test_labels_and_results(tmp_path):
    class Result:
        solution = made(PROBLEMS["linear"])

    libsvm_model.write(tmp_path / "m", Result(), labels=(8, 5))
    model = libsvm_model.read(tmp_path / "m")
    assert model.labels == (5, 8)
    np.testing.assert_array_equal(model.predict(NEW), np.where(Result.solution.decision(NEW) > 0, 5, 8))
    for labels in ((1, 1), (0.5, 1), (1, 2, 3)):
        with pytest.raises(ValueError, match="two different whole numbers"):
            libsvm_model.write(tmp_path / "n", Result(), labels=labels)
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


def test_kernel_matrices_and_flat_solutions(tmp_path):
    solution = made(hj.Problem(kernel=kernels.Precomputed()), X=X @ X.T)
    libsvm_model.write(tmp_path / "m", solution)
    expected = NEW @ X.T @ np.asarray(solution.z) + 0.7
    np.testing.assert_allclose(libsvm_model.read(tmp_path / "m").decision(NEW @ X.T), expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="X_new has 4 columns, and the model uses training row 39"):
        libsvm_model.read(tmp_path / "m").decision(NEW)
    libsvm_model.write(tmp_path / "m", made(PROBLEMS["linear"], z=np.zeros(N)))
    np.testing.assert_array_equal(libsvm_model.read(tmp_path / "m").decision(NEW), np.full(9, 0.7))


def test_a_trained_machine_is_scikit_learns(tmp_path):
    problem = hj.Problem(losses.Hinge(C=2.0), kernels.RBF(gamma=0.3))
    solution = hj.solve(problem, problem.init(X, Y), X, Y, tol=1e-10)
    libsvm_model.write(tmp_path / "m", solution)
    theirs = svm.SVC(kernel="rbf", C=2.0, gamma=0.3, tol=1e-10).fit(X, Y)
    found = libsvm_model.read(tmp_path / "m")
    np.testing.assert_allclose(found.decision(NEW), theirs.decision_function(NEW), rtol=0, atol=1e-6)
    assert found.coef.size == theirs.n_support_.sum()


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (kernels.ARD(), "one gamma for all columns: hyperjax.exports.to_sklearn"),
        (kernels.RBF(columns=(0,)), "one gamma for all columns"),
        (kernels.Laplacian(), "the kernel is Laplacian: only Linear"),
        (kernels.Sum([kernels.Linear(), kernels.RBF()]), "the kernel is Sum"),
        (kernels.Polynomial(degree=2.5), "degree 2.5"),
    ],
)
def test_what_the_format_cannot_hold(kernel, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        libsvm_model.write(tmp_path / "m", made(hj.Problem(kernel=kernel)))
    assert not list(tmp_path.iterdir())


def test_wrong_objects(tmp_path):
    with pytest.raises(ValueError, match="solution is a dict"):
        libsvm_model.write(tmp_path / "m", {})
    folds = made(PROBLEMS["linear"])
    every = [name for name in vars(folds) if name not in ("problem", "hp", "X")]
    folds = folds.replace(**{name: jnp.stack([getattr(folds, name)] * 3) for name in every})
    with pytest.raises(ValueError, match="holds 3 folds"):
        libsvm_model.write(tmp_path / "m", folds)
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda z: libsvm_model.write(tmp_path / "m", folds.replace(z=z)))(folds.z)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("svm_type c_svc", "svm_type one_class", "line 1: svm_type one_class"),
        ("kernel_type rbf", "kernel_type sigmoid", "line 2: kernel_type sigmoid: linear, polynomial, rbf"),
        ("gamma 0.5", "gamma wide", "line 3: gamma is 'wide': expected 1 number"),
        ("gamma 0.5", "gamma", "line 3: gamma has no value"),
        ("gamma 0.5\n", "", "its header lacks gamma"),
        ("nr_class 2", "nr_class 5", "line 4: the model has 5 classes"),
        ("total_sv 7", "total_sv 8", "announces 8 support vectors and holds 7"),
        ("rho -0.1", "rho nan -0.1", "line 6: rho is"),
        ("label 1 -1", "label 1", "line 7: label is '1': expected 2 whole numbers"),
        ("label 1 -1", "label 1 1", "line 7: both labels are 1"),
        ("nr_sv", "words", "line 8: found 'words 4 3' where the header"),
        ("SV\n", "", "line 9: found '0.29"),
        ("1:1.6 2:0.3", "1:1.6 2:oops", "line 11: found 'oops'"),
        ("1:1.6 2:0.3", "0:1.6 2:0.3", "need indices from 1 on"),
        ("kernel_type rbf", "kernel_type precomputed", "need 0:number of a training row"),
        (CLASSES[CLASSES.index("SV") :], "", "has no line SV"),
        (CLASSES[CLASSES.index("nr_sv") :], "SV\n", "announces 7 support vectors and holds 0"),
        (CLASSES[:200], "\0\1", "line 1: found"),
    ],
)
def test_damaged_files(old, new, match, tmp_path):
    assert old in CLASSES
    with pytest.raises(ValueError, match=rf"m\.model.*{match}"):
        libsvm_model.read(saved(tmp_path, CLASSES.replace(old, new, 1)))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        libsvm_model.read(tmp_path / "absent")
