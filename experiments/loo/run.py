"""Leave-one-out outputs from one fit beside those of training n times, on pima, heart and ionosphere."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import hyperjax as hj
from experiments import common

DATA = ("heart", "ionosphere", "pima")
LOSSES = {
    "Squared": hj.losses.Squared(),
    "Logistic": hj.losses.Logistic(),
    "SquaredHinge": hj.losses.SquaredHinge(),
    "Hinge": hj.losses.Hinge(),
}
COSTS = (0.1, 1.0, 10.0)
BLOCK = 32


def rows_of(name: str, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features and signs, `most` of the rows drawn at random."""
    found = common.arrays(name)
    X = found["X"].toarray() if hasattr(found["X"], "toarray") else found["X"]
    X, y = np.asarray(X, float), np.asarray(found["y"], float)
    kept = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    X, y = X[kept], np.where(y[kept] == y.max(), 1.0, -1.0)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def trained_without_each(problem: hj.Problem, hp: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Held-out outputs of n models, BLOCK of them in one batch; the last batch repeats its last row."""
    n, out = len(y), np.zeros(len(y))
    for start in range(0, n, BLOCK):
        left = np.minimum(np.arange(start, start + BLOCK), n - 1)
        weights = np.ones((BLOCK, n))
        weights[np.arange(BLOCK), left] = 0.0
        outputs = np.asarray(hj.solve(problem, hp, X, y, weights, tol=1e-7).raise_if_failed().outputs)
        out[left] = outputs[np.arange(BLOCK), left]
    return out


def compare(name: str, loss: str, cost: float, most: int | None) -> dict[str, Any]:
    """One row of the table."""
    X, y = rows_of(name, most)
    problem = hj.Problem(LOSSES[loss], hj.kernels.RBF())
    hp = problem.init(X, y)
    hp = {**hp, "loss": {**hp["loss"], "C": hp["loss"]["C"] * 0.0 + cost}}
    hj.loo_decision(problem, hp, X, y)  # compiles
    began = time.perf_counter()
    formula = np.asarray(hj.loo_decision(problem, hp, X, y, tol=1e-7))
    one_fit = time.perf_counter() - began
    training = np.asarray(hj.solve(problem, hp, X, y, tol=1e-7).outputs)
    began = time.perf_counter()
    truth = trained_without_each(problem, hp, X, y)
    n_fits = time.perf_counter() - began
    return {
        "data": name, "rows": len(y), "loss": loss, "C": cost,
        "error": {key: float(np.mean(o * y <= 0)) for key, o in zip(("true", "formula", "training"),
                                                                     (truth, formula, training), strict=True)},
        "off": {"mean": float(np.mean(np.abs(formula - truth))), "largest": float(np.max(np.abs(formula - truth))),
                "training": float(np.mean(np.abs(training - truth)))},
        "seconds": {"one fit": one_fit, "n fits": n_fits},
    }  # fmt: skip


def report(table: dict[str, Any]) -> str:
    """The table of the README."""
    lines = []
    order = list(LOSSES)
    for row in sorted(table["outputs"]["rows"], key=lambda row: (row["data"], order.index(row["loss"]), row["C"])):
        errors = " / ".join(f"{100 * row['error'][key]:.1f}" for key in ("true", "formula", "training"))
        off = f"{row['off']['mean']:.1e}", f"{row['off']['largest']:.1e}", f"{row['off']['training']:.1e}"
        lines.append([row["data"], row["rows"], row["loss"], f"{row['C']:g}", errors, *off])
    head = ("data", "rows", "loss", "C", "error %: true / formula / training", "off: mean", "largest", "training")
    return common.markdown(head, lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, write the table, and fill the README where the whole table was written."""
    jax.config.update("jax_enable_x64", True)
    output = Path(__file__).with_name("results.json")
    parser = common.arguments(__doc__, ("outputs",), output)
    parser.add_argument("--rows", type=int, default=None, help="so many of the rows only, drawn at random")
    parser.add_argument("--costs", type=float, nargs="+", default=COSTS, help="values of C")
    options = parser.parse_args(argv)
    most, costs = (60, COSTS[1:2]) if options.quick else (options.rows, options.costs)
    for name in options.data or DATA:
        for loss in ("Squared", "Hinge") if options.quick else LOSSES:
            for cost in costs:
                row = compare(name, loss, cost, most)
                made = common.settings(quick=options.quick, block=BLOCK)
                common.merge(options.output, "outputs", [row], made, ("data", "loss", "C"))
    if options.output == output:
        common.insert(Path(__file__).with_name("README.md"), "outputs", report(common.read(output)))


if __name__ == "__main__":
    main()
