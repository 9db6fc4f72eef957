"""The package as syntax trees: which file imports what, found without running anything."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hyperjax"


class Import(NamedTuple):
    """One import statement: the module it names in full, and whether it runs only inside a function."""

    line: int
    target: str
    lazy: bool


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def dotted(path: Path) -> str:
    """hyperjax/losses/base.py -> hyperjax.losses.base; a package's __init__.py is the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    """The part of the package a module lies in: its first name below hyperjax, `__init__` for the top itself."""
    return (module.split(".") + ["__init__"])[1]


def imports(path: Path) -> list[Import]:
    """Every import of the file except those that only type checkers see."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    return list(_imports(tree(path), package, lazy=False))


def _imports(node: ast.AST, package: str, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for alternative in child.orelse:
                yield from _imports(ast.Module([alternative], []), package, lazy)
        elif isinstance(child, ast.Import):
            yield from (Import(child.lineno, alias.name, lazy) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(child.lineno, target, lazy) for target in _targets(child, package))
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith("import_module"):
            if child.args and isinstance(child.args[0], ast.Constant):
                yield Import(child.lineno, child.args[0].value, lazy)
        else:
            inside = lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, package, inside)


def _targets(statement: ast.ImportFrom, package: str) -> Iterator[str]:
    names = package.split(".")
    base = names[: len(names) - statement.level + 1] if statement.level else []
    base = [*base, *(statement.module or "").split(".")] if statement.module else base
    for alias in statement.names:
        # `from . import prox` names a module, `from .types import Array` something inside one.
        yield ".".join([*base, alias.name] if base == ["hyperjax"] else base)
