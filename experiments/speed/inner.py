"""How fast is the inner problem?  hyperjax in float32 against LIBSVM and LIBLINEAR as shipped.

    python experiments/speed/inner.py [--quick] [--data FOLDER] [--output FILE]

Kernel rows: hinge, bias, Gaussian kernel with gamma = 1/d, five stratified folds, standardised columns; five calls
of scikit-learn's SVC (LIBSVM, cache_size=4000) one after the other, two processes beside it.  Every repeat draws a
fresh permutation of the rows; who goes first alternates.  Linear rows: all rows, five folds, one C, against LIBLINEAR's
primal solvers on CSR input.  Objectives and duality gaps of both are evaluated by NumPy in float64.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernel_rows  # noqa: E402
import linear_rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SEED = 0
IMPORT = "import time, jax; t = time.perf_counter(); import hyperjax; print(time.perf_counter() - t)"


def import_row(repeats):
    """Seconds that `import hyperjax` adds to `import jax`, each in a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command, seconds = [sys.executable, "-c", IMPORT], []
    for _ in range(repeats):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    return {"work": "import hyperjax after jax", "ours": seconds, "peer": [], "target": "<= 0.3 s"}


def settings(arguments):
    """What the numbers were measured on."""
    import importlib.metadata as installed

    names = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "liblinear-official")
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "hyperjax"], capture_output=True, text=True).stdout
    return {
        "versions": {name: installed.version(name) for name in names} | {"python": sys.version.split()[0]},
        "commit": commit,
        "sources_changed_since_commit": bool(changed.strip()),
        "seed": SEED,
        "cores": os.cpu_count(),
        "quick": arguments.quick,
        "dtype": "float32",
    }


HEAD = (
    f"{'work':44}{'ours s':>9}{'spread':>15}{'peer s':>9}{'2 proc':>9}{'ratio':>8}{'target':>11}"
    f"{'objective':>11}{'our gap':>9}{'peer gap':>9}{'compile':>9}"
)


def line(row):
    """One row of the table; `ratio` is peer over ours, `objective` ours over the peer's less one."""
    ours = np.median(row["ours"])
    spread = f"{min(row['ours']):.4f}-{max(row['ours']):.4f}"
    peer = f"{np.median(row['peer']):9.4f}" if row["peer"] else f"{'-':>9}"
    two = f"{np.median(row['two_processes']):9.4f}" if row.get("two_processes") else f"{'-':>9}"
    ratio = f"{row['ratio']:8.2f}" if "ratio" in row else f"{'-':>8}"
    quality = "".join(
        f"{row[name]:{width}.1e}" if name in row else f"{'-':>{width}}"
        for name, width in (("objective_excess", 11), ("gap", 9), ("peer_gap", 9))
    )
    compiling = f"{row['compile']:9.1f}" if "compile" in row else f"{'-':>9}"
    return f"{row['work']:44}{ours:9.4f}{spread:>15}{peer}{two}{ratio}{row['target']:>11}{quality}{compiling}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="ijcnn1 alone, few rows, two repeats: does it run?")
    default_data = os.environ.get("HYPERJAX_DATA", "../shared/data")
    parser.add_argument("--data", default=default_data, help="folder of the npz files")
    parser.add_argument("--output", default=None, help="default: inner.json beside this file; none with --quick")
    arguments = parser.parse_args()
    repeats, folder = (2 if arguments.quick else 5), Path(arguments.data)
    output = arguments.output or (None if arguments.quick else str(Path(__file__).with_suffix(".json")))
    rows = []

    def show(row):
        if row["peer"]:
            row["ratio"] = float(np.median(row["peer"]) / np.median(row["ours"]))
        rows.append(row)
        print(line(row), flush=True)

    print(f"{jax.device_count()} device(s), {os.cpu_count()} cores, float32, medians of {repeats}\n{HEAD}", flush=True)
    show(import_row(3))
    for make in (linear_rows.rows, kernel_rows.rows):
        for row in make(folder, SEED, repeats, arguments.quick):
            show(row)
    if output:
        Path(output).write_text(json.dumps({"settings": settings(arguments), "rows": rows}, indent=1) + "\n")
        print(f"\nwritten to {output}")


if __name__ == "__main__":
    main()
