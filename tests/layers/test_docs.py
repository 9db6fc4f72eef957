"""Do the pages of docs/ keep up with the package?  Read as text: nothing of mkdocs is imported."""

import re

import pytest

import hyperjax
import hyperjax.plots
from tests.layers.source import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
ROOMS = ["losses", "kernels", "criteria", "solvers", "methods", "multiclass"]
ROOMS += ["folds", "domains", "datasets", "plots", "sparse"]
FENCED = re.compile(r"^```python[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def directives():
    """{dotted name: its options, as text} of every mkdocstrings directive."""
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    return dict(re.findall(r"^::: ([\w.]+)\n((?:[ ]{4}.*\n?)*)", text, re.MULTILINE))


def is_module(value):
    return type(value).__name__ == "module"


def written_out(package, name):
    """Whether the source of the package itself holds the name, so that a reader of the source finds it there."""
    path = ROOT / package.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return re.search(rf"\b{name}\b", source.read_text(encoding="utf-8")) is not None


def reached(found, package, name, value):
    """Whether a directive shows this name of a package: itself, or the package that holds it."""
    if is_module(value):
        return any(f"{known}.".startswith(f"{value.__name__}.") for known in found)
    home = getattr(value, "__module__", package)
    if {f"{home}.{name}", f"{package}.{name}"} & set(found):
        return True
    if package not in found:
        return home in found and written_out(home, name)
    walked = "show_submodules: true" in found[package] and "._" not in home and home.startswith(f"{package}.")
    return walked or written_out(package, name)


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_the_reference_reaches_every_public_name(room):
    package = f"hyperjax.{room}".rstrip(".")
    module = getattr(hyperjax, room) if room else hyperjax
    found = directives()
    missing = [name for name in module.__all__ if not reached(found, package, name, getattr(module, name))]
    assert module.__all__ and not missing, f"docs/reference shows nothing of {package}: {', '.join(missing)}"


def test_the_reference_reaches_the_estimators():
    # read as text: scikit-learn may not be installed
    source = (ROOT / "hyperjax" / "sklearn" / "__init__.py").read_text(encoding="utf-8")
    assert "__all__ = [" in source and "hyperjax.sklearn" in directives()


def test_the_rooms_are_all_there():
    public = {name for name in hyperjax.__all__ if is_module(getattr(hyperjax, name))}
    assert public <= set(ROOMS), f"give {public - set(ROOMS)} a page in docs/reference and a place in ROOMS"


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(path.relative_to(DOCS)) for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_name_a_page_uses_exists(path):
    text = path.read_text(encoding="utf-8")
    for dotted in set(re.findall(r"\bhj((?:\.[A-Za-z_]\w*)+)", text)):
        value = hyperjax
        for name in dotted.strip(".").split("."):
            assert hasattr(value, name), f"{path.name}: hj{dotted} does not exist"
            value = getattr(value, name)
    for place in re.findall(r"`((?:hyperjax|tests|experiments)/[\w./]+)`", text):
        assert (ROOT / place).exists(), f"{path.name}: {place} does not exist"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_block_is_python(path):
    for block in FENCED.findall(path.read_text(encoding="utf-8")):
        compile(block, str(path), "exec")


def test_nothing_is_fetched():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings and "://" not in settings
    for path in PAGES:
        assert "://" not in path.read_text(encoding="utf-8"), path.name
