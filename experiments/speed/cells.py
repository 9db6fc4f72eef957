"""Every row of the table: what is compared with whom, and what it must reach."""

import dataclasses
from typing import Any

SVR_ROWS = 500
"""The grid's 2,500 fits of SVR on more rows take too long."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table."""

    key: str
    """Its name within the cell that measures it."""
    work: str
    peer: str = ""
    reach: float | None = None
    """What the value must be."""
    earlier: float | None = None
    """What it had to be before (the core's and the search's first speed tables)."""
    unit: str = "x"
    """"x": seconds of the peer over ours, at least; others at most: "share", "s", "GB"; "exponent" is reported only."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """Rows that are measured together in a process of their own."""

    name: str
    module: str
    function: str
    given: tuple[Any, ...]
    rows: tuple[Row, ...]
    seconds: float
    """About how long it takes on two quiet cores."""
    rank: int = 1
    """Cells of rank 0 run first."""
    quick: bool = False
    """Whether it is part of `--quick`."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of its process, which both sides work in."""


def kernel_cells() -> list[Cell]:
    """Five folds at one (C, gamma): hinge, bias, RBF."""
    out = []
    seconds = {
        ("ijcnn1", 2000): 12, ("ijcnn1", 8000): 30, ("ijcnn1", 16000): 80,
        ("a9a", 2000): 16, ("a9a", 8000): 95, ("a9a", 16000): 280,
    }  # fmt: skip
    for (name, size), cost in seconds.items():
        rows: list[Row] = []
        for C, reach in ((1.0, (3.0, 6.0)), (30.0, (1.5, 2.0))):
            old = ((2.0, 3.0) if C == 1.0 else (1.0, 1.0)) if size < 16000 else (None, None)
            work = f"five folds, hinge RBF, {name} {size}, C = {C:g}"
            rows += (
                Row(f"cold-C{C:g}", f"{work}, cold", "LIBSVM", reach[0], old[0]),
                Row(f"step-C{C:g}", f"{work}, after a 10 % step", "LIBSVM", reach[1], old[1]),
            )
        given, rank = (name, size, (1.0, 30.0)), 0 if size == 8000 else 1
        out.append(
            Cell(
                f"kernel-{name}-{size}",
                "kernel_rows",
                "point",
                given,
                tuple(rows),
                cost,
                rank,
                (name, size) == ("ijcnn1", 2000),
            )
        )
    return out


def page_cells() -> list[Cell]:
    """The kernel cell that is most of all a matter of memory, where malloc asks for huge pages; reported only."""
    work = "five folds, hinge RBF, ijcnn1 8000, C = 1"
    rows = tuple(
        Row(f"{key}-C1", f"{work}, {what}, huge pages", "LIBSVM")
        for key, what in (("cold", "cold"), ("step", "after a 10 % step"))
    )
    asked = (("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),)
    return [Cell("pages-ijcnn1-8000", "kernel_rows", "point", ("ijcnn1", 8000, (1.0,)), rows, 15, environment=asked)]


def linear_cells() -> list[Cell]:
    """Five folds at one C, all rows."""
    out = []
    losses = {
        "squared hinge": ("LIBLINEAR primal", 10.0),
        "logistic": ("LIBLINEAR primal", 10.0),
        "hinge": ("LIBLINEAR dual", 4.0),
    }
    seconds = {"a9a": 14, "ijcnn1": 5, "connect4": 11, "magic04": 3}
    for name in seconds:
        for loss, (peer, reach) in losses.items():
            old = 6.0 if name != "magic04" and loss != "hinge" else None
            rows = (Row("fit", f"five folds, linear {loss}, {name}, C = 1", peer, reach, old),)
            rank, cost = (0 if name == "a9a" else 1), seconds[name] * (4 if loss == "hinge" else 1)
            label = f"linear-{name}-{loss.replace(' ', '-')}"
            quick = name == "magic04"
            out.append(Cell(label, "linear_rows", "point", (name, loss), rows, cost, rank, quick))
    return out


def cost_cells() -> list[Cell]:
    """Whole searches over C."""
    out = []
    reaches = {"a9a": 10.0, "ijcnn1": 10.0, "connect4": 4.0, "magic04": 4.0, "madelon": 4.0}
    seconds = {"a9a": 52, "ijcnn1": 20, "connect4": 40, "magic04": 7, "madelon": 13, "sector": 28}
    for name in (*reaches, "reuters_moneyfx", "pcmac", "sector"):
        kind = "dense" if name in reaches else "sparse"
        for loss in ("squared hinge", "logistic"):
            work = f"whole search over C, linear {loss}, {name}"
            rows = (Row("search", work, "LIBLINEAR -C", reaches.get(name, 2.0)),)
            rank = 0 if name in ("a9a", "reuters_moneyfx") and loss == "logistic" else 1
            label = f"cost-{name}-{loss.replace(' ', '-')}"
            cost = seconds.get(name, 12)
            quick = name in ("magic04", "pcmac") and loss == "logistic"
            out.append(Cell(label, "cost_rows", "search", (name, loss, kind == "sparse"), rows, cost, rank, quick))
    fresh = Row("fresh", "whole search over C, logistic, a9a, fresh process, all counted", "LIBLINEAR -C", 2.0)
    out.append(Cell("fresh-a9a", "process_rows", "fresh_search", ("a9a", "logistic"), (fresh,), 64, 0))
    for name in ("reuters_moneyfx", "pcmac", "sector"):
        rows = tuple(
            Row(key, f"sparse product with {what}, {name}", "SciPy CSR", 1 / 1.5)
            for key, what in (("matmul", "X, five vectors"), ("rmatmul", "X', five vectors"))
        )
        out.append(Cell(f"product-{name}", "sparse_rows", "products", (name,), rows, 2, 1, name == "pcmac"))
    return out


def search_cells() -> list[Cell]:
    """C and gamma, and C, eps and gamma."""
    out = []
    for name, size in (("ijcnn1", 2000), ("a9a", 2000), ("magic04", 2000), ("splice", 1000)):
        work = f"C and gamma, hinge RBF, {name} {size}"
        rows = (
            Row("grid", work, "15 x 15 grid", 50.0, 40.0),
            Row("tpe", work, "50 TPE trials", 8.0, 6.0),
            Row("halving", work, "HalvingRandomSearchCV", 4.0),
            Row("first", f"{work}, first in its process, compilation counted", "50 TPE trials", None, 1.0),
        )
        rank, cost = (0 if name == "ijcnn1" else 1), 85
        out.append(Cell(f"search-{name}", "search_rows", "search", ("svc", name, size), rows, cost, rank))
    for name, size in (("abalone", SVR_ROWS), ("cpusmall", SVR_ROWS), ("esol", SVR_ROWS)):
        work = f"C, eps and gamma, SVR RBF, {name} {size}"
        rows = (
            Row("grid", work, "10 x 5 x 10 grid", 50.0),
            Row("tpe", work, "50 TPE trials", 8.0),
            Row("halving", work, "HalvingRandomSearchCV"),
        )
        rank = 0 if name == "abalone" else 1
        out.append(Cell(f"search-{name}", "search_rows", "search", ("svr", name, size), rows, 60, rank))
    return out


def gradient_cells() -> list[Cell]:
    """The hypergradient, its growth, and that of a solve."""
    out = []
    for name, width in (("a9a", 123), ("splice", 60)):
        work = f"hypergradient alone, ARD, {width} gammas, {name} 2000, the same z"
        rows = tuple(
            Row(key, work, f"jaxopt custom_root, {peer}", 20.0)
            for key, peer in (
                ("shipped", "ProjectedGradient"),
                ("projected", "ProjectedGradient, its best linear solver"),
                ("osqp", "BoxOSQP"),
            )
        )
        rank = 0 if name == "a9a" else 1
        out.append(Cell(f"jaxopt-{name}", "implicit_rows", "against_jaxopt", (name, 2000), rows, 31, rank))
    for name, size in (("ijcnn1", 2000), ("a9a", 2000), ("ijcnn1", 8000), ("a9a", 8000)):
        work = f"hypergradient over its cold solve, hinge RBF, {name} {size}"
        rows = tuple(Row(f"C{C:g}", f"{work}, C = {C:g}", "", 0.15, 0.25, "share") for C in (1.0, 30.0))
        rank, cost, given = int(size == 2000), (14 if size == 2000 else 30), (name, size, (1.0, 30.0))
        quick = (name, size) == ("ijcnn1", 2000)
        out.append(Cell(f"gradient-{name}-{size}", "gradient_rows", "against_solve", given, rows, cost, rank, quick))
    rows = (
        Row("many", "hypergradient of 10,000 C_i over that of one C, ijcnn1 10000", "", 1.3, 1.5, "share"),
        Row("growth", "growth of value and gradient in 2 .. 10,000 hyperparameters", "", unit="exponent"),
    )
    out.append(Cell("growth-hyperparameters", "gradient_rows", "hyperparameters", (10000,), rows, 45, 0))
    rows = (
        Row("solve", "growth of five cold folds in 2,000 .. 32,000 rows, ijcnn1", "", unit="exponent"),
        Row("gradient", "growth of value and gradient in 2,000 .. 32,000 rows, ijcnn1", "", unit="exponent"),
    )
    out.append(Cell("growth-rows", "gradient_rows", "growth", ((2000, 4000, 8000, 16000, 32000),), rows, 110, 0))
    return out


def process_cells() -> list[Cell]:
    """Fresh processes and memory."""
    pima = "fresh process to the end of `hyperjax tune pima`"
    rows = (
        Row("first", f"{pima}, the first time", "", 6.0, None, "s"),
        Row("cached", f"{pima}, with the compilation cache", "", 3.0, None, "s"),
    )
    memory = (Row("peak", "tuning 16,000 rows, RBF, ijcnn1: peak memory", "", 1.3 * 1.024 + 1.0, None, "GB"),)
    start = (Row("import", "import hyperjax after jax", "", None, 0.3, "s"),)
    return [
        Cell("fresh-pima", "process_rows", "fresh_tune", ("pima",), rows, 35, 0, True),
        Cell("memory-16000", "process_rows", "memory", ("ijcnn1", 16000), memory, 28, 0),
        Cell("import", "process_rows", "importing", (), start, 4, 0, True),
    ]


def everything(sort: bool = True) -> list[Cell]:
    """All cells, the most important of each kind first, or in the order of the table."""
    cells = [
        *kernel_cells(), *page_cells(), *linear_cells(), *cost_cells(), *search_cells(), *gradient_cells(),
        *process_cells(),
    ]  # fmt: skip
    return sorted(cells, key=lambda cell: cell.rank) if sort else cells
