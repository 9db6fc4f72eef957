"""The top of the package imports what it offers when asked for it, and the command line leaves JAX alone till then."""

import ast
import subprocess
import sys

import pytest

import hyperjax
from tests.layers.source import PACKAGE, ROOT, tree


def run(code, *argv):
    return subprocess.run([sys.executable, "-W", "error", "-c", code, *argv], cwd=ROOT, capture_output=True, text=True)


def succeeds(code):
    done = run(code)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_type_checkers_and_python_find_the_same_names_in_the_same_places():
    body = tree(PACKAGE / "__init__.py").body
    (guarded,) = (n for n in body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    said = {(node.module, alias.name) for node in guarded.body for alias in node.names}
    kept = {(None, room) for room in hyperjax._ROOMS}
    kept |= {(home, name) for home, names in hyperjax._HOMES.items() for name in names}
    assert said == kept
    assert sorted(name for _, name in said) == hyperjax.__all__ == sorted(hyperjax.__all__)


def test_nothing_is_imported_before_it_is_used_and_completion_knows_the_names():
    succeeds("""
import sys
import hyperjax
assert "jax" not in sys.modules and "numpy" not in sys.modules
assert set(hyperjax.__all__) <= set(dir(hyperjax)) and "__version__" in dir(hyperjax)
assert "numpy" not in sys.modules, "looking at the names imports nothing"
try:
    hyperjax.tuned
except AttributeError as error:
    assert "hyperjax" in str(error) and "tuned" in str(error)
else:
    raise SystemExit("a name that does not exist was found")
from hyperjax import *
assert all(name in globals() for name in hyperjax.__all__)
assert tune is hyperjax.tune and Problem is hyperjax.Problem and losses is hyperjax.losses
""")


@pytest.mark.parametrize(
    "first", ["import hyperjax.{0}", "from hyperjax.{0} import {0} as f", "from hyperjax import {0}", ""]
)
def test_the_function_wins_over_the_module_of_its_name(first):
    code = """
import importlib, inspect, sys
import hyperjax
FIRST
assert inspect.isfunction(hyperjax.NAME), hyperjax.NAME
importlib.import_module("hyperjax.NAME")
from hyperjax import NAME as found
assert found is hyperjax.NAME is sys.modules["hyperjax.NAME"].NAME
"""
    # tune imports solve: in this order each is the first of its kind
    succeeds("".join(code.replace("FIRST", first.format(n)).replace("NAME", n) for n in ("solve", "tune")))


def test_the_first_use_may_come_inside_a_traced_function():
    succeeds("""
import sys
import jax
import hyperjax

@jax.jit
def everything(x):
    with jax.checking_leaks():
        for name in hyperjax.__all__:
            getattr(hyperjax, name)
        return x

everything(1.0)
modules = [module for name, module in sys.modules.items() if name.startswith("hyperjax")]
caught = [name for m in modules for name, value in vars(m).items() if isinstance(value, jax.core.Tracer)]
assert len(modules) > 30 and not caught, caught
""")


ANSWERS = """
import sys
from hyperjax.cli import main
code = main(sys.argv[1:])
assert "jax" not in sys.modules, "JAX was imported"
print("exit code", code)
"""


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--help"], 0),
        (["tune", "--help"], 0),
        (["--version"], 0),
        (["tune", "data.csv", "--folds", "one"], 2),
        (["tune", "data.csv", "--plots"], 2),
        (["tune", "missing.csv"], 3),
        (["tune", "brest_cancer"], 3),
        (["predict", "missing.npz", "missing.csv"], 3),
        (["score", str(PACKAGE / "py.typed"), "missing.csv"], 3),
        (["export", "missing.npz", "--out", "model.txt"], 3),
        (["info", "missing.npz"], 3),
    ],
    ids=str,
)
def test_what_needs_no_computation_is_answered_without_jax(argv, code):
    done = run(ANSWERS, *argv)
    assert done.stdout.splitlines()[-1] == f"exit code {code}", done.stderr
    assert done.stderr.startswith("" if code == 0 else ("hyperjax: ", "usage: ")) and "Traceback" not in done.stderr
