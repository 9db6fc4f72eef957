"""A model in LIBSVM's two files: svm-predict's model and svm-scale's ranges."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import libsvm_model
from ..files import replacing
from ..kernels.ard import ARD
from ..kernels.rbf import RBF

__all__ = ["write_libsvm"]


def write_libsvm(model: Any, path: Path) -> str:
    """Write the model, and PATH.range where its columns are scaled; what to do with them, in words."""
    solution = model.solution
    solution = solution.replace(b=solution.b - jnp.asarray(model.threshold, solution.b.dtype))
    centre, spread = model.scaling.centre, model.scaling.spread
    kernel = solution.problem.kernel
    if isinstance(kernel, ARD) and kernel.columns is None:
        # LIBSVM has one width for all columns: the others become part of the scaling
        width = np.sqrt(np.asarray(solution.hp["kernel"]["gamma"], float))
        X = jnp.asarray(np.asarray(solution.X, float) * width, solution.X.dtype)
        hp = {**solution.hp, "kernel": {"gamma": jnp.ones((), X.dtype)}}
        solution = solution.replace(problem=solution.problem.replace(kernel=RBF()), hp=hp, X=X)
        spread = spread / width
    labels, note = _labels(model.classes)
    libsvm_model.write(path, solution, labels)
    if np.all(centre == 0) and np.all(spread == 1):
        return f"written: {path}{note}"
    ranges = path.with_name(path.name + ".range")
    _write_ranges(ranges, centre, spread)
    return f"written: {path} and {ranges}{note}; scale first: svm-scale -r {ranges.name} DATA > SCALED"


def _labels(classes: list[Any] | None) -> tuple[tuple[int, int], str]:
    """Whole numbers for the two classes; LIBSVM knows no others."""
    if classes is None:
        return (-1, 1), ""
    if all(isinstance(label, int) for label in classes):
        return (classes[0], classes[1]), ""
    return (-1, 1), f" (-1 is {classes[0]}, 1 is {classes[1]})"


def _write_ranges(path: Path, centre: np.ndarray, spread: np.ndarray) -> None:
    """Lines `column low high`: svm-scale maps low to -1 and high to 1."""
    ends = zip((centre - spread).tolist(), (centre + spread).tolist(), strict=True)
    with replacing(path) as file:
        file.write(b"x\n-1 1\n")
        file.write("".join(f"{j} {low!r} {high!r}\n" for j, (low, high) in enumerate(ends, 1)).encode())
