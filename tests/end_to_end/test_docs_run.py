"""The Python blocks of a page of docs/ run as printed, top to bottom, in a fresh interpreter with JAX's defaults."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```python[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted(path for path in DOCS.rglob("*.md") if FENCED.search(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_blocks_of_a_page_run(page, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(FENCED.findall(page.read_text(encoding="utf-8"))), encoding="utf-8")
    # on so few rows compiling takes longer than computing
    settings = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], **settings},
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def test_the_worked_examples_are_there():
    assert {page.stem for page in PAGES} >= {"index", "coming_from", "write_your_own", "hyperjax"}
