"""The speed table: hyperjax against what anyone would use instead.

    python -m experiments.speed.run [--quick | --small] [--only PATTERN ..] [--minutes M] [--resume] [--output FILE]
                                     [--show]

Every cell of `cells.py` (one or a few rows) runs in a process of its own, the most important of each kind first, and
its rows are merged into the table as soon as it ends: a cell that fails or runs out of time is recorded as such and
the rest goes on.  When the minutes are used up the remaining rows stay as they were, or "not run".

--quick runs the cheap cells as they are, --small every cell asked for on a handful of rows (does it run?), --only those
whose name matches a pattern such as 'kernel-*', --resume those not yet measured at this commit, --show measures nothing
and prints the table there is.
"""

import argparse
import fnmatch
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import common
from experiments.speed import table
from experiments.speed.cells import Cell, everything

HERE = Path(__file__).parent
PART = "speed"
KEY = ("cell", "key")
FREED = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS",
    "GLIBC_TUNABLES",
)  # fmt: skip
"""Variables that would hold one side back, or change the precision it computes in."""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    out.add_argument("--quick", action="store_true", help="the cheap cells alone, as they are")
    out.add_argument("--small", action="store_true", help="a handful of rows and two repeats: does it run?")
    out.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="cells whose name matches")
    out.add_argument("--minutes", type=float, default=None, help="for everything (default 39; 3.8 with --quick)")
    out.add_argument("--output", type=Path, default=HERE / "results.json", help="table to merge into")
    out.add_argument("--resume", action="store_true", help="leave out what was measured at this commit")
    out.add_argument("--show", action="store_true", help="print the table of --output and measure nothing")
    return out


def chosen(options: argparse.Namespace) -> list[Cell]:
    """The cells asked for, in the order in which they run."""
    found = [cell for cell in everything() if any(fnmatch.fnmatch(cell.name, pattern) for pattern in options.only)]
    found = [cell for cell in found if cell.quick or not options.quick]
    if not found:
        raise SystemExit(f"--only {' '.join(options.only)}: no cell has such a name; cells.py lists them")
    return found


def measure(cell: Cell, small: bool, limit: float) -> list[dict[str, Any]]:
    """The rows of a cell from a process of its own that has `limit` seconds."""
    environment = {name: value for name, value in os.environ.items() if name not in FREED}
    environment |= {"PYTHONPATH": str(common.ROOT), **dict(cell.environment)}
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "rows.json", Path(folder) / "log"
        words = [sys.executable, "-W", "ignore", "-m", "experiments.speed.child", cell.name, str(path)]
        with log.open("w") as stream:
            process = subprocess.Popen(
                [*words, *(["--small"] if small else [])],
                cwd=common.ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            status = ended(process, limit)
        facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if status == "failed":
            status = f"error: {complaint(log.read_text(errors='replace'))}"
    rows = table.missing(cell, status)
    for at, row in enumerate(cell.rows):
        if facts.get(row.key, {}).get("ours"):
            rows[at] = table.finished(cell, row, facts[row.key]) | ({} if status == "measured" else {"cut": status})
    return rows


def complaint(log: str) -> str:
    """The line of a traceback that says what happened."""
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("---")]
    ends = ("Error", "Exception", "Iteration")
    said = [line for line in lines if line.partition(":")[0].endswith(ends)]
    return (said or lines or ["no message"])[-1][:300]


def ended(process: subprocess.Popen[bytes], limit: float) -> str:
    """How a process ended: measured, failed, or cut off with everything it has started."""
    try:
        return "failed" if process.wait(timeout=limit) else "measured"
    except subprocess.TimeoutExpired:
        return f"cut after {limit:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def say(line: str) -> None:
    print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    options = parser().parse_args(argv)
    minutes = options.minutes or (3.8 if options.quick else 39.0)
    if not options.show:
        begun, cells = time.perf_counter(), chosen(options)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        made = common.settings(
            packages=("jaxopt", "optuna", "thundersvm-cpu"), seed=0, dtype="float32", quick=options.quick,
            small=options.small, minutes=minutes,
        )  # fmt: skip
        for number, cell in enumerate(cells, 1):
            left = 60.0 * minutes - (time.perf_counter() - begun)
            say(f"[{(time.perf_counter() - begun) / 60:5.1f} min, {number}/{len(cells)}] {cell.name} ..")
            run(cell, options, left, made)
        say(f"\n{(time.perf_counter() - begun) / 60:.1f} minutes")
    say("\n" + table.text(table.ordered(common.rows_of(common.read(options.output), PART))))


def part(cells: Sequence[str]) -> None:
    """The rows of these cells, or of those that --only on the command line names."""
    given = sys.argv[1:]
    main(given if "--only" in given else [*given, "--only", *cells])


def cpu_seconds() -> float:
    """Of all processes waited for so far: few a second say that something else was running, or that one core idled."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def complete(row: dict[str, Any], made: dict[str, Any]) -> bool:
    return row["status"] == "measured" and "cut" not in row and row["commit"] == made["commit"]


def run(cell: Cell, options: argparse.Namespace, left: float, made: dict[str, Any]) -> None:
    """Measure a cell if there is time for it, and merge its rows; one that is not run keeps what it had."""
    before = common.rows_of(common.read(options.output), PART, cell=cell.name)
    expected = 60.0 if options.small else cell.seconds
    if options.resume and before and all(complete(row, made) for row in before):
        say("      measured at this commit already")
        return
    if left < 0.7 * expected:
        say(f"      about {expected:.0f} s, and {max(left, 0.0):.0f} s are left: not run")
        rows = [] if before else table.missing(cell, "not run")
    else:
        begun, busy = time.perf_counter(), cpu_seconds()
        rows = measure(cell, options.small, min(max(left, 1.0), 4.0 * expected + 60.0))
        for row in rows:
            spent = {"cell_seconds": round(time.perf_counter() - begun, 1), "cell_cpu": round(cpu_seconds() - busy, 1)}
            row |= {**spent, "commit": made["commit"]}
            value = "-" if row["value"] is None else f"{row['value']:.3g}"
            say(f"      {row['work']} | {row['peer'] or '-'}: {value} [{table.line(row)[8]}]")
    common.merge(options.output, PART, rows, made, KEY)


if __name__ == "__main__":
    main()
