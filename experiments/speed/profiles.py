"""Where the seconds of a row go: one call under JAX's profiler, added up by the function of hyperjax that asked for it.

    python -m experiments.speed.profiles [--small] [--only PATTERN ..] [--output FILE]      # writes profiles.json

Every piece of work runs in a process of its own, as its cell does: compiled on other rows, once untimed, then three
times for the clock and once under the profiler.  The optimised programs that XLA writes down beside it tell which line
each of their operations comes from; an operation that was fused from several counts for its last.  "host" is what
passes while no operation runs: Python, checks, copies, compiling nothing.  Of the first call the seconds of tracing,
lowering and compiling are kept, and how many programs there were.
"""

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import common

HERE = Path(__file__).parent
PART = "profiles"
SHOWN = 4
"""Functions a line of the README's table."""
ALL = 12
"""Functions kept in profiles.json."""
PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def names() -> list[str]:
    """Every piece of work that has a profile: those of the rows that fell short, and their likes."""
    both, whats = ("ijcnn1", "a9a"), ("cold", "step")
    points = [f"kernel-{data}-8000-{what}-C{C}" for data in both for C in (1, 30) for what in whats]
    sets = ("a9a", "ijcnn1", "connect4", "magic04")
    linear = [f"linear-{data}-{loss}" for data in sets for loss in ("squared-hinge", "logistic")]
    costs = [f"cost-{data}-logistic" for data in ("a9a", "reuters_moneyfx", "pcmac", "sector", "madelon")]
    searches = ["search-ijcnn1-2000", "search-abalone-500"]
    gradients = [f"gradient-{data}-8000-C{C}" for data in both for C in (1, 30)]
    return [*points, *linear, *costs, *searches, *gradients, "implicit-a9a-2000"]


def work(name: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    """From a permutation of the rows to the call that is timed."""
    kind, _, rest = name.partition("-")
    return {
        "kernel": _kernel, "linear": _linear, "cost": _cost,
        "search": _search, "gradient": _gradient, "implicit": _implicit,
    }[kind](rest, small)  # fmt: skip


def _over(X: Any, y: Any, call: Callable[..., Any]) -> Callable[[int], Callable[[], Any]]:
    """`call` on permuted rows in float32 and their folds."""
    from experiments.speed.task import low, permuted

    def at(seed: int) -> Callable[[], Any]:
        A, labels, folds = permuted(X, y, seed)
        given = (*low(A, labels), folds)
        return lambda: call(*given)

    return at


def _kernel(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    from experiments.speed import kernel_rows as rows
    from experiments.speed.task import low, permuted, sample

    data, size, what, C = rest.split("-")
    X, y = sample(data, 300 if small else int(size))
    cost, gamma = float(C[1:]), 1.0 / X.shape[1]
    if what == "cold":
        return _over(X, y, lambda *given: rows.ours(rows.values(cost, gamma), *given))

    def step(seed: int) -> Callable[[], Any]:
        A, signs, folds = permuted(X, y, seed)
        given = (*low(A, signs), folds)
        first = rows.ours(rows.values(cost, gamma), *given)
        return lambda: rows.ours(rows.values(rows.STEP * cost, rows.STEP * gamma), *given, init=first)

    return step


def _linear(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    from experiments.speed import linear_rows as rows
    from experiments.speed.task import SEED, draw, load, standardised

    data, _, loss = rest.partition("-")
    X, y = load(data)
    X, y = draw(standardised(X), y, 500, SEED) if small else (standardised(X), y)
    model = rows.problem(loss.replace("-", " "))
    return _over(X, y, lambda *given: rows.ours(model, None, *given))


def _cost(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    from experiments.speed import cost_rows as rows

    data, _, loss = rest.partition("-")
    return _over(*rows.rows(data, small), lambda *given: rows.ours(loss.replace("-", " "), *given))


def _search(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    from experiments.speed import search_rows as rows

    data, size = rest.split("-")
    kind = "svr" if data == "abalone" else "svc"
    X, y, *_ = rows.sample(kind, data, 150 if small else int(size))
    return _over(X, y, lambda *given: rows.ours(kind, "full", *given))


def _gradient(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    import hyperjax as hj
    from experiments.speed import gradient_rows as rows
    from experiments.speed.task import sample

    data, size, C = rest.split("-")
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    X, y = sample(data, 300 if small else int(size))
    both, hp = rows.programs(problem)[1], rows.values(problem, float(C[1:]), 1.0 / X.shape[1])
    return _over(X, y, lambda *given: rows.ready(both, hp, *given))


def _implicit(rest: str, small: bool) -> Callable[[int], Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    from experiments.speed import implicit_rows as rows
    from experiments.speed.gradient_rows import ready
    from experiments.speed.task import permuted

    data, size = rest.split("-")
    X, y = rows.rows(data, 120 if small else int(size))
    width = X.shape[1]
    hp = {"loss": {"C": jnp.float32(1.0)}, "kernel": {"gamma": jnp.full((width,), 1.0 / width, jnp.float32)}}
    run = jax.jit(rows.ours)

    def at(seed: int) -> Callable[[], Any]:
        given = rows.solved(hp, *permuted(X, y, seed))
        return lambda: ready(run, *given)

    return at


def child(name: str, folder: Path, small: bool) -> dict[str, Any]:
    """One profile.  XLA has been told, before anything was imported, to write its programs into `folder`."""
    import jax

    from experiments.speed.task import SEED, WARM, clock

    phases: dict[str, float] = defaultdict(float)
    programs = 0

    def heard(event: str, seconds: float, **_: Any) -> None:
        nonlocal programs
        if event in PHASES:
            phases[PHASES[event]] += seconds
            programs += PHASES[event] == "compile"

    jax.monitoring.register_event_duration_secs_listener(heard)
    make = work(name, small)
    first, _ = clock(lambda: make(WARM)())
    cold = {"first": first, "programs": programs, **phases}
    seconds = [clock(make(SEED + repeat))[0] for repeat in range(4)][1:]
    call = make(SEED)
    with jax.profiler.trace(folder):
        traced, _ = clock(call)
    parts, busy = added(folder, lines(folder))
    return {
        "name": name, "seconds": seconds, "traced": traced, "host": max(traced - busy, 0.0), "busy": busy,
        "parts": parts[:ALL], "rest": sum(part["seconds"] for part in parts[ALL:]), "cold": cold,
    }  # fmt: skip


def lines(folder: Path) -> dict[tuple[int, str], tuple[str, str]]:
    """(program, operation) -> (function, what it does), from the programs that XLA wrote down."""
    out = {}
    for path in folder.glob("module_*after_optimizations.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        program = int(re.match(r"module_(\d+)", path.name)[1])  # type: ignore[index]  # every such file has the name
        frames = _frames(text)
        for operation, metadata in re.findall(r"^ *(?:ROOT )?%([\w.\-]+) = .*? metadata=\{([^}]*)\}", text, re.M):
            frame = re.search(r"stack_frame_id=(\d+)", metadata)
            path_of = re.search(r'op_name="([^"]*)"', metadata)
            what = path_of[1].rpartition("/")[2] if path_of else ""
            where = frames.get(int(frame[1]) if frame else -1, "?")
            # a transposed operation names the call that was transposed
            backward = path_of is not None and "transpose(" in path_of[1]
            out[program, operation] = f"backward of {where}" if backward else where, what
    return out


def _frames(text: str) -> dict[int, str]:
    """Stack frames of a program by number: module and function of the innermost one in hyperjax."""

    def table(head: str) -> dict[int, str]:
        found = re.search(rf"^{head}\n((?:\d+ .*\n)*)", text, re.M)
        rows = found[1].splitlines() if found else []
        return {int(number): rest for number, _, rest in (row.partition(" ") for row in rows)}

    files, functions = table("FileNames"), table("FunctionNames")
    places, raw = table("FileLocations"), table("StackFrames")

    def number(of: str, name: str) -> int:
        return int(re.search(rf"{name}=(\d+)", of)[1])  # type: ignore[index]  # every entry has it

    def label(frame: int, depth: int = 0) -> str:
        place = places[number(raw[frame], "file_location_id")]
        file = files[number(place, "file_name_id")].strip('"')
        if "/hyperjax/" in file:
            function = functions[number(place, "function_name_id")].strip('"')
            short = re.sub(r"\.?<locals>|\.<lambda>|<lambda>", "", function)
            return f"{file.rpartition('/hyperjax/')[2].removesuffix('.py')}: {short}"
        parent = re.search(r"parent_frame_id=(\d+)", raw[frame])
        # the numbers of parents are off by one: a frame without a parent names itself
        above = int(parent[1]) - 1 if parent else 0
        if above <= 0 or above == frame or depth > 100:
            return f"{Path(file).name}"
        return label(above, depth + 1)

    return {frame: label(frame) for frame in raw}


def added(folder: Path, known: dict[tuple[int, str], tuple[str, str]]) -> tuple[list[dict[str, Any]], float]:
    """Seconds by function, the longest first, and the seconds in which any operation ran."""
    from jax.profiler import ProfileData

    path = max(folder.glob("**/*.xplane.pb"))
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    spans = []
    for plane in ProfileData.from_file(str(path)).planes:
        for thread in plane.lines:
            events = sorted(_operations(thread.events), key=lambda event: (event[0], -event[1]))
            spans += [(begin, begin + length) for begin, length, *_ in events]
            for own, program, operation in _own(events):
                entry = totals[known.get((program, operation), ("?", operation))]
                entry[0] += own * 1e-9
                entry[1] += 1
    return _by_function(totals), 1e-9 * _covered(spans)


def _operations(events: Iterable[Any]) -> Iterable[tuple[float, float, int, str]]:
    for event in events:
        facts = dict(event.stats)
        if "hlo_op" in facts:
            yield event.start_ns, event.duration_ns, int(facts["program_id"]), str(facts["hlo_op"])


def _own(events: Sequence[tuple[float, float, int, str]]) -> Iterable[tuple[float, int, str]]:
    """What an operation took itself, without those inside it (the body of a loop)."""
    inside = [0.0] * len(events)
    open_: list[int] = []
    for at, (begin, length, *_) in enumerate(events):
        while open_ and begin >= events[open_[-1]][0] + events[open_[-1]][1]:
            open_.pop()
        if open_:
            inside[open_[-1]] += length
        open_.append(at)
    for spent, (_, length, program, operation) in zip(inside, events, strict=True):
        yield max(length - spent, 0.0), program, operation


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, end = 0.0, -np.inf
    for begin, stop in sorted(spans):
        total += max(stop - max(begin, end), 0.0)
        end = max(end, stop)
    return total


def _by_function(totals: dict[tuple[str, str], list[float]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (where, what), (seconds, calls) in totals.items():
        entry = found.setdefault(where, {"where": where, "seconds": 0.0, "what": {}})
        entry["seconds"] += seconds
        entry["what"][what] = [round(seconds, 6), int(calls)]
    for entry in found.values():
        longest = sorted(entry["what"].items(), key=lambda item: -item[1][0])
        entry["what"] = dict(longest[:3])
    return sorted(found.values(), key=lambda entry: -entry["seconds"])


def measured(name: str, small: bool) -> dict[str, Any]:
    """A profile from a process of its own."""
    from experiments.speed.run import FREED

    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if key not in FREED}
        environment["PYTHONPATH"] = str(common.ROOT)
        environment["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        words = [sys.executable, "-W", "ignore", "-m", "experiments.speed.profiles", "--child", name, folder]
        done = subprocess.run(
            [*words, *(["--small"] if small else [])], cwd=common.ROOT, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'failed'}")
        return json.loads((Path(folder) / "profile.json").read_text(encoding="utf-8"))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A line a profile: seconds, what the host takes, the functions that take most, the first call."""
    body = []
    for row in rows:
        whole = row["traced"]
        shares = [f"{part['where']} {100 * part['seconds'] / whole:.0f} %" for part in row["parts"][:SHOWN]]
        cold = row["cold"]
        phases = " + ".join(f"{cold.get(phase, 0.0):.1f}" for phase in PHASES.values())
        body.append([
            row["name"], f"{np.median(row['seconds']):.3g}", f"{100 * row['host'] / whole:.0f} %",
            "; ".join(shares), f"{cold['first']:.1f}", phases, cold["programs"],
        ])  # fmt: skip
    head = ("call", "s", "host", "functions that take most", "first call, s", "trace + lower + compile", "programs")
    return common.markdown(head, body)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="work whose name matches")
    parser.add_argument("--small", action="store_true", help="a handful of rows: does it run?")
    parser.add_argument("--output", type=Path, default=HERE / "profiles.json", help="table to merge into")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        name, folder = options.child[0], Path(options.child[1])
        found = child(name, folder, options.small)
        (folder / "profile.json").write_text(json.dumps(common.plain(found)), encoding="utf-8")
        return
    chosen = [name for name in names() if any(fnmatch.fnmatch(name, pattern) for pattern in options.only)]
    if not chosen:
        raise SystemExit(f"--only {' '.join(options.only)}: no profile has such a name; there are {', '.join(names())}")
    made = common.settings(packages=("jaxopt",), seed=0, dtype="float32", small=options.small)
    for name in chosen:
        row = measured(name, options.small)
        common.merge(options.output, PART, [row | {"commit": made["commit"]}], made, ("name",))
        print("  ".join(markdown([row]).splitlines()[-1].strip("| ").split(" | ")), flush=True)


if __name__ == "__main__":
    main()
