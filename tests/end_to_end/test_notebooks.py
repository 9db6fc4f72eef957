"""Every notebook is what its script makes, and every script is Python; .ci/run runs them."""

import ast
import importlib.util
import json
import pathlib
import shutil

import pytest

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[2] / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))


@pytest.fixture(scope="module")
def pair():
    spec = importlib.util.spec_from_file_location("pair", NOTEBOOKS / "tools" / "pair.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_notebook_is_what_its_script_makes(pair):
    assert SCRIPTS
    assert pair.main(["--check"]) == 0


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_opens_with_a_title_and_holds_all_code_of_its_script(script):
    content = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    first, *rest = content["cells"]
    assert first["cell_type"] == "markdown" and first["source"][0].startswith("# ")
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = [cell for cell in rest if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    whole = "\n".join("".join(cell["source"]) for cell in code)
    assert ast.dump(ast.parse(whole)) == ast.dump(ast.parse(script.read_text(encoding="utf-8")))


def test_check_tells_a_changed_script_and_a_notebook_without_one(pair, tmp_path, capsys):
    shutil.copy(SCRIPTS[0], tmp_path / "one.py")
    assert pair.main(["--folder", str(tmp_path)]) == 0
    assert pair.main(["--folder", str(tmp_path), "--check"]) == 0
    (tmp_path / "one.py").write_text(SCRIPTS[0].read_text(encoding="utf-8") + "\nx = 1\n", encoding="utf-8")
    (tmp_path / "two.ipynb").write_text("{}", encoding="utf-8")
    assert pair.main(["--folder", str(tmp_path), "--check"]) == 1
    said = capsys.readouterr().err
    assert "one.ipynb is not what one.py makes" in said and "two.ipynb has no script" in said


def test_text_cells_without_a_hash_are_refused(pair):
    with pytest.raises(ValueError, match="x = 1"):
        pair.cells("# %% [markdown]\n# text\nx = 1\n")
