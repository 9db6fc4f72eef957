"""Do the rooms hold?  Import order, sizes, headings, the fence round jaxopt, a quiet import."""

import ast
import inspect
import re
import subprocess
import sys
import types

import pytest

import hyperjax
from tests.layers.source import PACKAGE, ROOT, dotted, files, imports, room, tree

LAYERS = [
    {"types", "results", "plugins", "files", "minimum_norm", "sparse", "_jaxopt", "compiling", "threads"},
    {"domains", "prox", "operators", "folds"},
    {"losses", "kernels", "criteria"},
    {"problem"},
    {"implicit", "solvers"},
    {"faces", "checks"},
    {"solve"},
    {"adjoint", "loo", "multiclass"},
    {"coordinates", "history", "checkpoint", "objective"},
    {"kinks"},
    {"plan", "run", "sensitivity", "trust", "one_sided"},
    {"conformance"},
    {"search", "tune", "nested"},
    {"methods"},
    {"interop", "storage", "exports", "libsvm_model", "tables", "datasets", "svmlight", "plots", "sklearn", "cli"},
    {"__init__", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
STRANGERS = {("implicit", "solvers"), ("solvers", "implicit")}
"""Rooms of one layer that never import each other: any (z, b) may be attached, wherever it comes from."""
LAZY = {("problem", "interop"), ("solve", "storage"), ("solve", "exports")}
"""Imports upwards, allowed inside functions only: methods that read and write other people's objects and files."""

MODULES = files("hyperjax")
SOURCES = files("hyperjax", "tests", "experiments", "notebooks")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path):
    return str(path.relative_to(ROOT))


def place(module):
    assert module in RANK, f"{module} has no place in the order of imports: give it one in LAYERS"
    return RANK[module]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downwards(path):
    own = room(dotted(path))
    wrong = []
    for line, target, lazy in imports(path):
        if target.split(".")[0] != "hyperjax" or room(target) == own:
            continue
        other = room(target)
        upwards = place(other) > place(own) or (own, other) in STRANGERS
        if upwards and not (lazy and (own, other) in LAZY):
            wrong.append(f"{name_of(path)}:{line}: {own} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_the_walk_sees_every_way_to_import(tmp_path, monkeypatch):
    source = """
import jaxopt.projection
from . import prox
from ..implicit import attach
from .base import Loss
from .. import types as t, solve
import hyperjax.tune
if TYPE_CHECKING:
    from ..cli import main
else:
    from ..plots import draw
def f():
    from ..sklearn import SVC
    importlib.import_module("optuna")
"""
    path = tmp_path / "hyperjax" / "losses" / "mine.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    monkeypatch.setattr("tests.layers.source.ROOT", tmp_path)
    found = [(target, lazy) for _line, target, lazy in imports(path)]
    assert found == [
        ("jaxopt.projection", False),
        ("hyperjax.losses", False),
        ("hyperjax.implicit", False),
        ("hyperjax.losses.base", False),
        ("hyperjax.types", False),
        ("hyperjax.solve", False),
        ("hyperjax.tune", False),
        ("hyperjax.plots", False),
        ("hyperjax.sklearn", True),
        ("optuna", True),
    ]
    assert [room(module) for module in ("hyperjax", "hyperjax.tune", "hyperjax.losses.base")] == [
        "__init__",
        "tune",
        "losses",
    ]


def test_jaxopt_stays_behind_its_door():
    door = PACKAGE / "_jaxopt.py"
    openers = {path for path in SOURCES for found in imports(path) if found.target.split(".")[0] == "jaxopt"}
    assert openers == {door}, sorted(map(name_of, openers))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_sizes(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{name_of(path)} has {lines} lines; divide it"
    for node in ast.walk(tree(path)):
        if isinstance(node, FUNCTIONS):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 80, f"{name_of(path)}:{node.lineno}: {node.name} has {length} lines; divide it"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_public_definition_has_a_docstring(path):
    bare = [
        f"{name_of(path)}:{node.lineno}: {node.name}"
        for node in tree(path).body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name[0] != "_" and not ast.get_docstring(node)
    ]
    assert ast.get_docstring(tree(path)), f"{name_of(path)} does not say what it is for"
    assert not bare, "\n".join(bare)


def test_every_exported_name_exists_and_is_documented():
    assert hyperjax.__all__ and len(set(hyperjax.__all__)) == len(hyperjax.__all__)
    for name in hyperjax.__all__:
        value = getattr(hyperjax, name)
        if isinstance(value, (type, types.FunctionType, types.ModuleType)) or callable(value):
            text = inspect.getdoc(value) or ""
            # A dataclass without a docstring gets its signature for one.
            assert text and not text.startswith(f"{name}("), f"hyperjax.{name} has no docstring"


def plugins(folder):
    """The classes of the files that ship a plug-in, that is, end with EXAMPLES."""
    for path in files(f"hyperjax/{folder}"):
        body = tree(path).body
        assigned = {ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets}
        if "EXAMPLES" in assigned and path.name != "__init__.py":
            yield from (node for node in body if isinstance(node, ast.ClassDef) and node.name[0] != "_")


@pytest.mark.parametrize("folder", ["losses", "kernels", "criteria"])
def test_plugins_state_their_mathematics(folder):
    shipped = list(plugins(folder))
    assert shipped
    for node in shipped:
        for heading in ("Problem", "Derivative", "Source"):
            stated = re.search(rf"^\s*{heading}\b", ast.get_docstring(node) or "", re.MULTILINE)
            assert stated, f"hyperjax.{folder}.{node.name}: the docstring lacks the heading {heading}"


def run(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_import_is_quiet_light_and_changes_no_setting():
    done = run("""
import sys
import jax
before = dict(jax.config.values)
import hyperjax
for name in hyperjax.__all__:
    getattr(hyperjax, name)
heavy = [name for name in ("jaxopt", "sklearn", "matplotlib", "optuna") if name in sys.modules]
changed = [name for name, value in jax.config.values.items() if before.get(name) != value]
sys.exit(f"imported {heavy}, changed {changed}" if heavy or changed else 0)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_door_to_jaxopt_opens_quietly_and_leaves_the_filters_alone():
    done = run("""
import sys, warnings
from hyperjax import _jaxopt
before = list(warnings.filters)
loaded = _jaxopt.load()
sys.exit(0 if loaded.__name__ == "jaxopt" and warnings.filters == before else "filters changed")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
