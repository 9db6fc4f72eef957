"""LIBSVM's model files, in and out.

A file holds a decision function, sum_j coef_j k(x_j, x) - rho, and not the loss it comes from: any solution with a
kernel LIBSVM has can be written, whatever its loss.  LIBSVM's value is positive for the first label of the file
(the class of its first training row); here `decision` is positive for the larger label, in whichever order they come.
"""

import dataclasses
from pathlib import Path
from typing import IO, Any, NoReturn

import jax
import numpy as np
import scipy.sparse
from jax.core import Tracer

from . import kernels, svmlight
from .files import reading, replacing

__all__ = ["LibsvmModel", "PlainKernel", "plain_kernel", "read", "single", "write"]

CLASSIFIERS, REGRESSORS = ("c_svc", "nu_svc"), ("epsilon_svr", "nu_svr")
PARAMETERS = {"linear": (), "polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "precomputed": ()}
IGNORED = frozenset({"probA", "probB", "prob_density_marks", "nr_sv"})
BLOCK = 1 << 22
"""Kernel values held at a time while predicting."""


@dataclasses.dataclass(frozen=True)
class PlainKernel:
    """A kernel as LIBSVM and scikit-learn know it: factor * k on some columns, perhaps with a width for each."""

    kind: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    factor: float = 1.0
    columns: tuple[int, ...] | None = None
    widths: np.ndarray | None = None

    def values(self, A: Any, B: Any) -> np.ndarray:
        """The kernel matrix of two sets of rows, dense or sparse, in float64."""
        products = A @ B.T
        products = products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)
        if self.kind == "rbf":
            products = np.exp(-self.gamma * np.maximum(_squares(A)[:, None] + _squares(B) - 2.0 * products, 0.0))
        elif self.kind == "polynomial":
            products = (self.gamma * products + self.coef0) ** self.degree
        return products


@dataclasses.dataclass(frozen=True)
class LibsvmModel:
    """The decision function of a LIBSVM file: coefficients (l,), support vectors (l, d) in CSR, rho, the labels.

    `labels` are those of the file, in its order, None for regression; with a precomputed kernel `vectors` holds the
    numbers of the training rows, from 1.
    """

    svm_type: str
    kernel: PlainKernel
    coef: np.ndarray
    vectors: Any
    rho: float
    labels: tuple[int, int] | None = None

    def decision(self, X_new: Any) -> np.ndarray:
        """Outputs (m,): positive for the larger label; the predicted values of a regression.

        X_new is dense or sparse; columns it lacks are zero, as LIBSVM has it.  With a precomputed kernel it holds the
        kernel values between new and all training rows.
        """
        rows = _rows(X_new)
        if self.kernel.kind == "precomputed":
            value = rows[:, self._serial_numbers(rows.shape[1])] @ self.coef
        else:
            d = max(rows.shape[1], self.vectors.shape[1])
            vectors, step = _widened(self.vectors, d), max(1, BLOCK // self.coef.size)
            starts = range(0, int(rows.shape[0]), step)
            parts = [self.kernel.values(_widened(rows[i : i + step], d), vectors) @ self.coef for i in starts]
            value = np.concatenate([np.empty(0), *parts])
        value = value - self.rho
        return value if self.labels is None or self.labels[0] > self.labels[1] else -value

    def predict(self, X_new: Any) -> np.ndarray:
        """Labels of the new rows, or the values of a regression."""
        value = self.decision(X_new)
        return value if self.labels is None else np.where(value > 0, max(self.labels), min(self.labels))

    def _serial_numbers(self, n: int) -> np.ndarray:
        numbers = self.vectors.toarray()[:, 0].astype(int)
        if numbers.max() > n:
            raise ValueError(
                f"X_new has {n} columns, and the model uses training row {numbers.max()}: pass the kernel values "
                "between the new rows and all training rows"
            )
        return numbers - 1


def read(path: Any) -> LibsvmModel:
    """The model in a file of LIBSVM: two classes or a regression; linear, polynomial, rbf or precomputed kernel."""
    with reading(path) as file:
        header, line = _header(path, file)
        rows = svmlight.parse(file, path, line)
    svm_type, kernel = _kinds(path, header)
    labels = _labels(path, header) if svm_type in CLASSIFIERS else None
    total, rho = _numbers(path, header, "total_sv", int, 1)[0], _numbers(path, header, "rho", float, 1)[0]
    if rows.y.size != total or total < 1:
        raise ValueError(f"{path} announces {total} support vectors and holds {rows.y.size}: the file is damaged")
    first = 0 if kernel.kind == "precomputed" else 1
    indptr = np.concatenate(([0], np.cumsum(rows.counts)))
    sound = np.diff(indptr).min() >= 1 if kernel.kind == "precomputed" else rows.indices.min(initial=1) >= 1
    if kernel.kind == "precomputed":
        sound = sound and (rows.indices[indptr[:-1]] == 0).all() and (rows.values[indptr[:-1]] >= 1).all()
    if not sound:
        wanted = "0:number of a training row" if first == 0 else "indices from 1 on"
        raise ValueError(f"{path}: the support vectors of a {kernel.kind} kernel need {wanted}; the file is damaged")
    indices = rows.indices - first
    shape = (total, int(indices.max(initial=0)) + 1)
    vectors = scipy.sparse.csr_matrix((rows.values, indices, indptr), shape=shape)
    return LibsvmModel(svm_type, kernel, rows.y, vectors, rho, labels)


def write(path: Any, solution: Any, labels: tuple[int, int] = (-1, 1)) -> None:
    """Write a Solution (or the result of a tuning) as a model that svm-predict reads.

    `labels` are the whole numbers that stand for outputs below and above 0; a regression has none.
    """
    solution = single(solution)
    kernel = plain_kernel(solution.problem.kernel, jax.tree.map(np.asarray, solution.hp["kernel"]))
    if kernel.widths is not None or (kernel.columns is not None and kernel.kind in ("rbf", "precomputed")):
        raise ValueError(
            "LIBSVM's format has one gamma for all columns: hyperjax.exports.to_sklearn keeps several, or train on "
            "columns multiplied by sqrt(gamma_j) with the kernel RBF(gamma=1)"
        )
    z = np.asarray(solution.z, np.float64) * kernel.factor
    order = support(z)
    X = np.asarray(solution.X, np.float64)
    if kernel.kind == "precomputed":
        rows, offset = (order + 1.0)[:, None], 0
    else:
        rows, offset = X[order], 1
        if kernel.columns is not None:
            rows = np.where(np.isin(np.arange(X.shape[1]), np.arange(X.shape[1])[list(kernel.columns)]), rows, 0.0)
    header = _described(solution, kernel, labels, z[order])
    with replacing(path) as file:
        file.write("".join(f"{line}\n" for line in header).encode())
        svmlight.write_rows(file, z[order], scipy.sparse.csr_matrix(rows), offset)


def single(solution: Any) -> Any:
    """One concrete Solution: itself, or that of a tuning's result, a tuned threshold taken off its bias."""
    tuned = hasattr(solution, "at_threshold")
    solution = solution.at_threshold() if tuned else getattr(solution, "solution", solution)
    if not all(hasattr(solution, name) for name in ("problem", "hp", "X", "z", "b")):
        raise ValueError(f"solution is a {type(solution).__name__}: pass a hyperjax.Solution or the result of tune")
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(solution)):
        raise ValueError("the solution holds traced arrays: export it outside jit, grad and vmap")
    if solution.z.ndim != 1:
        many = solution.z.shape[0]
        raise ValueError(f"the solution holds {many} folds or classes: export one trained by hyperjax.solve")
    return solution


def support(z: np.ndarray) -> np.ndarray:
    """The rows with a coefficient, positive ones first; one row where there is none: no format likes an empty list."""
    rows = np.flatnonzero(z)
    rows = rows if rows.size else np.zeros(1, int)
    return rows[np.argsort(z[rows] < 0, kind="stable")]


def plain_kernel(kernel: Any, hp: Any) -> PlainKernel:
    """The kernel at hp in LIBSVM's terms; a ValueError where LIBSVM has none like it."""
    if isinstance(kernel, kernels.Scaled):
        inside = plain_kernel(kernel.kernel, hp["kernel"])
        columns = _chosen(kernel.columns, inside.columns)
        return dataclasses.replace(inside, factor=float(hp["scale"]) * inside.factor, columns=columns)
    # a subclass with a formula of its own is another kernel
    known = [cls for cls in PLAIN if isinstance(kernel, cls) and type(kernel).cross is cls.cross]
    if not known:
        raise ValueError(
            f"the kernel is {type(kernel).__name__}: only Linear, Polynomial, RBF, Precomputed, a multiple of one "
            "(Scaled), and ARD in scikit-learn, have a counterpart; Solution.save keeps every kernel"
        )
    cls, columns = known[0], kernel.columns
    if cls is kernels.RBF:
        return PlainKernel("rbf", gamma=float(hp["gamma"]), columns=columns)
    if cls is kernels.ARD:
        return PlainKernel("rbf", columns=columns, widths=np.asarray(hp["gamma"], np.float64))
    if cls is kernels.Polynomial:
        degree = float(hp["degree"])
        if degree != round(degree):
            raise ValueError(f"the kernel has degree {degree:g}: LIBSVM and scikit-learn know whole degrees only")
        return PlainKernel("polynomial", float(hp["gamma"]), float(hp["coef0"]), round(degree), columns=columns)
    return PlainKernel("linear" if cls is kernels.Linear else "precomputed", columns=columns)


PLAIN = (kernels.Linear, kernels.RBF, kernels.ARD, kernels.Polynomial, kernels.Precomputed)


def _chosen(outer: tuple[int, ...] | None, inner: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return inner if outer is None else outer if inner is None else tuple(outer[c] for c in inner)


def _described(solution: Any, kernel: PlainKernel, labels: tuple[int, int], coef: np.ndarray) -> list[str]:
    """The lines of the header."""
    classes = solution.problem.loss.labels
    lines = [f"svm_type {'c_svc' if classes else 'epsilon_svr'}", f"kernel_type {kernel.kind}"]
    lines += [f"{name} {getattr(kernel, name)!r}" for name in PARAMETERS[kernel.kind]]
    lines += ["nr_class 2", f"total_sv {coef.size}", f"rho {-float(solution.b)!r}"]
    if classes:
        if len(labels) != 2 or any(int(label) != label for label in labels) or labels[0] == labels[1]:
            raise ValueError(f"labels={labels!r}: LIBSVM wants two different whole numbers")
        negative = int(np.sum(coef < 0))
        lines += [f"label {int(labels[1])} {int(labels[0])}", f"nr_sv {coef.size - negative} {negative}"]
    return [*lines, "SV"]


def _header(path: Any, file: IO[bytes]) -> tuple[dict[str, tuple[int, list[str]]], int]:
    """The entries before the support vectors, each with its line, and the number of the line after them."""
    known = {"svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", *IGNORED}
    header: dict[str, tuple[int, list[str]]] = {}
    for number, content in enumerate(file, 1):
        words = content[:4096].decode("utf-8", "replace").split()
        if words == ["SV"]:
            return header, number + 1
        if not words or words[0] not in known:
            found = repr(" ".join(words)[:40])
            _refuse(path, number, f"found {found} where the header of a LIBSVM model is expected")
        header[words[0]] = number, words[1:]
    raise ValueError(f"{path} is no LIBSVM model, or its end is missing: it has no line SV")


def _kinds(path: Any, header: dict[str, tuple[int, list[str]]]) -> tuple[str, PlainKernel]:
    line, (svm_type, *_) = _entry(path, header, "svm_type")
    if svm_type not in CLASSIFIERS + REGRESSORS:
        _refuse(path, line, f"svm_type {svm_type}: {', '.join(CLASSIFIERS + REGRESSORS)} can be read")
    line, (kind, *_) = _entry(path, header, "kernel_type")
    if kind not in PARAMETERS:
        _refuse(path, line, f"kernel_type {kind}: {', '.join(PARAMETERS)} can be read")
    values: dict[str, Any] = {
        name: _numbers(path, header, name, int if name == "degree" else float, 1)[0] for name in PARAMETERS[kind]
    }
    if _numbers(path, header, "nr_class", int, 1)[0] != 2:
        line, words = header["nr_class"]
        _refuse(path, line, f"the model has {words[0]} classes: only two can be read, one against the rest")
    return svm_type, PlainKernel(kind, **values)


def _labels(path: Any, header: dict[str, tuple[int, list[str]]]) -> tuple[int, int]:
    first, second = _numbers(path, header, "label", int, 2)
    if first == second:
        _refuse(path, header["label"][0], f"both labels are {first}")
    return first, second


def _entry(path: Any, header: dict[str, tuple[int, list[str]]], name: str) -> tuple[int, list[str]]:
    if name not in header:
        raise ValueError(f"{path} is a damaged LIBSVM model: its header lacks {name}")
    line, words = header[name]
    if not words:
        _refuse(path, line, f"{name} has no value")
    return line, words


def _numbers(path: Any, header: dict[str, tuple[int, list[str]]], name: str, kind: type, count: int) -> list[Any]:
    line, words = _entry(path, header, name)
    try:
        values = [kind(word) for word in words]
        sound = len(values) == count and bool(np.isfinite(values).all())
    except ValueError:
        values, sound = [], False
    if not sound:
        what = "whole number" if kind is int else "number"
        _refuse(path, line, f"{name} is {' '.join(words)[:40]!r}: expected {count} {what}{'s' if count > 1 else ''}")
    return values


def _rows(X_new: Any) -> Any:
    rows = scipy.sparse.csr_matrix(X_new) if scipy.sparse.issparse(X_new) else np.asarray(X_new, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X_new has shape {rows.shape}: give it two dimensions, rows and columns")
    return rows


def _squares(A: Any) -> np.ndarray:
    if scipy.sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", A, A)


def _widened(A: Any, d: int) -> Any:
    """The rows with zeros in the columns they lack."""
    if scipy.sparse.issparse(A):
        return scipy.sparse.csr_matrix((A.data, A.indices, A.indptr), shape=(A.shape[0], d))
    return A if A.shape[1] == d else np.pad(A, ((0, 0), (0, d - A.shape[1])))


def _refuse(path: Any, line: int, what: str) -> NoReturn:
    raise ValueError(f"{Path(path)}, line {line}: {what}")
