"""The command as a process of its own: what it imports, what it prints, Ctrl-C, the cache of compiled programs."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
import warnings
from pathlib import Path

import pytest

from hyperjax.cli.progress import Line
from hyperjax.cli.search import spoken_warnings
from tests.end_to_end.cli_data import sample, write_csv

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.no_extras


def environment(tmp_path, **more):
    kept = {name: os.environ[name] for name in ("PATH", "XLA_FLAGS", "HOME") if name in os.environ}
    places = (str(ROOT) if (ROOT / "hyperjax").is_dir() else "", os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, places))
    return {**kept, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path, "HYPERJAX_CACHE": str(tmp_path / "cache"), **more}


def command(tmp_path, *argv):
    done = [sys.executable, "-W", "error", "-m", "hyperjax", *map(str, argv)]
    return subprocess.run(done, capture_output=True, text=True, env=environment(tmp_path), cwd=tmp_path, timeout=300)


def test_a_whole_run_twice(tmp_path):
    train = write_csv(tmp_path / "train.csv", *sample(30, 0))
    argv = ("tune", train, "--target", "label", "--folds", "3", "--max-steps", "1", "--no-peers")
    kept = []
    for out in ("a", "b"):
        done = command(tmp_path, *argv, "--out", out)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        kept.append({file.name for file in (tmp_path / "cache" / "compiled").iterdir()})
    reports = [json.loads((tmp_path / out / "report.json").read_text()) for out in ("a", "b")]
    assert reports[0]["hyperparameters"] == reports[1]["hyperparameters"]
    assert reports[0]["model"]["dtype"] == "float32" and "peer" in reports[0] and reports[0]["peer"] is None
    assert kept[0] and kept[1] == kept[0], "the programs of the first run serve the second, which makes none of its own"
    done = command(tmp_path, "predict", "a/model.npz", train)
    assert done.returncode == 0 and set(done.stdout.split()) <= {"yes", "no"} and done.stdout.count("\n") == 30
    done = command(tmp_path, "predict", "a/model.npz", "missing.csv")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


def test_a_broken_scikit_learn_costs_the_comparison_alone(tmp_path):
    (tmp_path / "broken" / "sklearn").mkdir(parents=True)
    (tmp_path / "broken" / "sklearn" / "__init__.py").write_text("raise ImportError('built for another NumPy')\n")
    train = write_csv(tmp_path / "train.csv", *sample(30, 0))
    argv = [sys.executable, "-W", "error", "-m", "hyperjax", "tune", train, "--target", "label", "--max-steps", "1"]
    there = environment(tmp_path)
    there["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "broken"), there["PYTHONPATH"]])
    done = subprocess.run(argv, capture_output=True, text=True, env=there, cwd=tmp_path, timeout=300)
    assert done.returncode == 0 and "tuned" in done.stdout and "scikit-learn" not in done.stdout
    assert re.fullmatch(r"no comparison with scikit-learn's SVC: ImportError: .* NumPy", done.stderr.splitlines()[-1])


LISTENING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("hyperjax", run_name="__main__", alter_sys=True)
"""
"""A shell starts what it runs in the background with the signal ignored, and its children inherit that."""


def test_ctrl_c_while_searching(tmp_path):
    train = write_csv(tmp_path / "train.csv", *sample(30, 0))
    # a search that goes on for minutes, interrupted once it has written its first step
    forever = ["--optimizer", "adam", "--max-steps", "1000000", "--tol", "1e-300"]
    file = tmp_path / "run.npz"
    argv = [sys.executable, "-c", LISTENING, "tune", str(train), "--target", "label", *forever]
    argv += ["--checkpoint", str(file)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment(tmp_path), cwd=tmp_path)
    deadline = time.monotonic() + 120.0
    while not file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said, said


def whole(terminal):
    """All that was written to a terminal whose other end is closed: it comes in pieces, and ends with an error."""
    read = b""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 10_000):
            read += piece
    os.close(terminal)
    return read.decode()


def test_progress_and_warnings_on_a_narrow_terminal(monkeypatch):
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (24, 40))
    with open(inner, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        line = Line(quiet=False)
        with spoken_warnings():
            line({"step": 12, "value": 0.123456, "hard": 0.12345, "gradient_norm": 1.0})
            warnings.warn("the optimum sits on a bound", RuntimeWarning, stacklevel=1)
            line.close()
    pieces = whole(outer).split("\r\x1b[K")
    assert pieces[0] == pieces[-1] == "" and pieces[1] == "compiling .."
    assert pieces[2].startswith("step 12  value 0.12346") and len(pieces[2]) == 39
    assert pieces[3] == "hyperjax: warning: the optimum sits on a bound\r\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    text = f"{sys.executable} -m hyperjax --help | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", text], capture_output=True, text=True, env=environment(tmp_path), cwd=tmp_path
    )
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_the_commands_of_the_makefile_and_the_help_are_ones_the_parser_takes():
    from hyperjax.cli.parser import build

    found = re.findall(r"hyperjax (tune .*)", (ROOT / "Makefile").read_text()) if (ROOT / "Makefile").exists() else []
    text = "\n".join(found) + "\n" + "\n".join(re.findall(r"^  hyperjax (tune .*)", _tune_help(), re.MULTILINE))
    lines = [line for line in text.splitlines() if line]
    assert len(lines) >= 3
    for line in lines:
        assert build().parse_args(line.split()).data


def _tune_help():
    from hyperjax.cli import parser

    return parser.TUNE_NOTES
