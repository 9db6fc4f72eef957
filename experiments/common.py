"""What the experiments share: arguments, data sets, settings, and result tables that grow piece by piece.

A table is a JSON file {part: {"settings": {..}, "rows": [{..}, ..]}}.  Every part names the versions, the commit and
the seeds it was made with, so that parts may be run on different days:

    options = arguments(__doc__, ("table1", "figure1"), Path(__file__).with_name("results.json")).parse_args(argv)
    for part in options.only: merge(options.output, part, rows, settings(seeds=..), key=("data", "method"))

Run an experiment as a module from the top of the repository: python -m experiments.NAME.run
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "HYPERJAX_DATA"
PACKAGES = ("jax", "numpy", "scipy", "scikit-learn", "liblinear-official")


def arguments(description: str | None, parts: Sequence[str], output: Path) -> argparse.ArgumentParser:
    """--quick, --only PART (several), --output, --seeds; `only` is every part unless it is given."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small form of everything, for tests")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), metavar="PART", help=", ".join(parts))
    parser.add_argument("--output", type=Path, default=output, help="table to write or to merge into")
    parser.add_argument("--seeds", type=int, default=None, help="how many seeds (the experiment's own number)")
    parser.add_argument("--data", nargs="+", default=None, metavar="NAME", help="these data sets only")
    return parser


def arrays(name: str) -> dict[str, Any]:
    """The arrays of HYPERJAX_DATA/NAME.npz, X (and X_test) as CSR where the set is stored so."""
    folder = os.environ.get(VARIABLE, "")
    path = Path(folder) / f"{name}.npz"
    if not folder or not path.is_file():
        raise SystemExit(f"{VARIABLE} is {folder!r}: it must name the folder that holds {name}.npz")
    with np.load(path, allow_pickle=False) as stored:
        found = {key: stored[key] for key in stored.files}
    for prefix, target in (("", "X"), ("test_", "X_test")):
        if f"{prefix}indptr" in found:
            parts = tuple(found.pop(f"{prefix}{key}") for key in ("data", "indices", "indptr"))
            found[target] = scipy.sparse.csr_matrix(parts, shape=tuple(found.pop(f"{prefix}shape")))
    return found


def signs(y: np.ndarray, positive: Any) -> np.ndarray:
    """One class against the rest as +1 and -1."""
    return np.where(np.asarray(y) == positive, 1.0, -1.0)


def to_unit_box(X: np.ndarray) -> np.ndarray:
    """Every column scaled to [-1, 1] on all rows, in float64; constant columns become 0."""
    X = np.asarray(X, np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2.0 * (X - low) / width - 1.0, 0.0)


def settings(packages: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Versions (of further `packages` too), machine and commit, and whatever else made the numbers."""
    import jax

    versions = {"python": platform.python_version()}
    for package in (*PACKAGES, *packages):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    machine = {"processor": platform.machine(), "cores": os.cpu_count()}
    bits = 64 if jax.config.read("jax_enable_x64") else 32
    return {"versions": versions, "machine": machine, "bits": bits, "commit": commit(), **more}


def commit() -> str:
    """The commit of the tree, with a plus where the library's sources have been changed since; "unknown" without."""
    try:
        head = _git("rev-parse", "--short=10", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no", "--", "hyperjax") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def read(path: Path) -> dict[str, Any]:
    """The table in a file, an empty one where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(path: Path, table: dict[str, Any]) -> None:
    """The table as a file, whole or not at all, one row a line."""
    parts = []
    for name, part in table.items():
        rows = ",\n".join("   " + json.dumps(plain(row), allow_nan=False) for row in part["rows"])
        head = json.dumps(plain(part["settings"]), allow_nan=False)
        parts.append(f' {json.dumps(name)}: {{\n  "settings": {head},\n  "rows": [\n{rows}\n  ]\n }}')
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    scratch.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    os.replace(scratch, path)


def merge(path: Path, part: str, rows: Sequence[dict[str, Any]], made: dict[str, Any], key: Sequence[str]) -> None:
    """Put rows into a part of the table, in the place of those with the same values under `key`."""
    table = read(path)
    new = {_identity(row, key): row for row in rows}
    before = table.get(part, {"rows": []})["rows"]
    kept = [new.pop(_identity(row, key), row) for row in before]
    table[part] = {"settings": made, "rows": kept + list(new.values())}
    write(path, table)


def rows_of(table: dict[str, Any], part: str, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a part whose entries are as wanted."""
    found = table.get(part, {"rows": []})["rows"]
    return [row for row in found if all(row.get(name) == value for name, value in wanted.items())]


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def insert(readme: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- /name -->` in a README."""
    content = readme.read_text(encoding="utf-8")
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    if opening not in content or closing not in content:
        raise ValueError(f"{readme} has no place {opening} .. {closing} for a generated table")
    before, _, rest = content.partition(opening)
    readme.write_text(f"{before}{opening}\n{text}\n{closing}{rest.partition(closing)[2]}", encoding="utf-8")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _identity(row: dict[str, Any], key: Sequence[str]) -> tuple[Any, ...]:
    return tuple(json.dumps(plain(row.get(name))) for name in key)


def plain(value: Any) -> Any:
    """NumPy's and JAX's numbers and arrays as Python's; what is not finite as null."""
    if isinstance(value, dict):
        return {str(name): plain(inside) for name, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inside) for inside in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
