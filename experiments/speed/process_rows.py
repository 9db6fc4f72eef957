"""Fresh processes, where everything counts, and the memory of a large search."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hyperjax as hj
from experiments import common
from experiments.speed.cost_rows import cv_error, rows
from experiments.speed.task import SEED, Options, Race, clock, low, peak, permuted, sample

IMPORT = """import time, jax
begun = time.perf_counter()
import hyperjax
hyperjax.solve, hyperjax.tune  # modules are loaded when their names are used
print(time.perf_counter() - begun)"""


def fresh(*words: str, **environment: str) -> str:
    """Run a Python process from the top of the repository; its output."""
    variables = {**os.environ, "PYTHONPATH": str(common.ROOT), **environment}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=common.ROOT, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def importing(options: Options) -> Iterator[dict[str, Any]]:
    """Seconds that `import hyperjax` and its two main verbs add to `import jax`."""
    seconds = []
    for _ in range(options.repeats):
        seconds.append(float(fresh("-c", IMPORT)))
        yield {"import": {"ours": seconds}}


def caches(folder: str) -> dict[str, str]:
    """Where a process keeps what it compiles."""
    return {"HYPERJAX_CACHE": folder, "XDG_CACHE_HOME": folder}


def fresh_tune(options: Options, name: str) -> Iterator[dict[str, Any]]:
    """The command line without and with its compilation cache."""
    race = Race(options)
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "hyperjax", "tune", name, "--quiet", *(("--max-steps", "2") if options.small else ()))
        kept = str(Path(folder) / "kept")
        fresh(*command, "--out", str(Path(folder) / "model"), **caches(kept))
        for repeat in range(options.repeats):
            empty = str(Path(folder) / f"empty{repeat}")
            calls = {
                key: partial(fresh, *command, "--out", str(Path(folder) / f"{key}{repeat}"), **caches(cache))
                for key, cache in (("ours", empty), ("cached", kept))
            }
            race.round(repeat, calls)
            memory = peak(resource.RUSAGE_CHILDREN)
            yield {
                "first": {"ours": race.seconds["ours"], "memory": memory},
                "cached": {"ours": race.seconds["cached"], "memory": memory},
            }


def fresh_search(options: Options, name: str, loss: str) -> Iterator[dict[str, Any]]:
    """A whole search over C, reading the file included."""
    race, answers = Race(options), {"ours": [], "peer": []}
    small = ("--small",) if options.small else ()
    for repeat in range(options.repeats):
        calls = {
            who: partial(fresh, "-m", "experiments.speed.fresh", who, name, loss, str(SEED + repeat), *small)
            for who in ("ours", "peer")
        }
        for who, printed in race.round(repeat, calls).items():
            answers[who].append(float(printed))
        facts: dict[str, Any] = {"C": answers["ours"], "peer_C": answers["peer"]}
        if repeat == 0:
            A, signs, folds = permuted(*rows(name, options.small), SEED)
            score = [cv_error(loss, answers["ours"][0], A, signs, folds)]
            peer_score = [cv_error(loss, answers["peer"][0], A, signs, folds)]
        yield {"fresh": race.row("peer", score=score, peer_score=peer_score, margin=0.1, **facts)}


def memory(options: Options, name: str, size: int) -> Iterator[dict[str, Any]]:
    """Peak resident memory of one search over C and gamma; 1.3 times the kernel matrix and 1 GB are allowed."""
    X, y, folds = permuted(*sample(name, 400 if options.small else size), SEED)
    data = low(X, y)
    problem = hj.Problem(hj.losses.Hinge(), hj.kernels.RBF())
    seconds, result = clock(lambda: hj.tune(problem, *data, folds, progress=False))
    bytes_now = peak()
    facts = {"evaluations": result.n_evaluations, "score": [100.0 * float(result.hard)]}
    yield {"peak": {"ours": [seconds], "value": bytes_now / 1e9, "memory": bytes_now, **facts}}
