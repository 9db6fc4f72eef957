"""Small files for the tests of the command line."""

import csv
from typing import NamedTuple

import numpy as np

NAMES = ("length", "width", "noise")


class Sample(NamedTuple):
    X: np.ndarray
    labels: np.ndarray


def sample(n: int, seed: int) -> Sample:
    """Rows on different scales with the labels no and yes; the third column says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [5.0, -3.0, 0.0]
    inside = (X[:, 0] - 5.0) ** 2 + ((X[:, 1] + 3.0) / 10.0) ** 2 + 0.3 * rng.normal(size=n) < 1.2
    return Sample(X, np.where(inside, "yes", "no"))


def write_csv(path, X, target=None, names=NAMES, title="label"):
    """A CSV file with a header; the target comes first, so that columns are found by name."""
    columns = [] if target is None else [(title, target)]
    columns += [(name, [repr(float(v)) for v in X[:, j]]) for j, name in enumerate(names)]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([name for name, _ in columns])
        writer.writerows(zip(*(values for _, values in columns), strict=True))
    return path
