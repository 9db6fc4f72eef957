"""Write every notebook from its script: `python notebooks/tools/pair.py`, and `--check` to see whether they agree.

A script holds cells that begin with `# %%` (code) or `# %% [markdown]` (text, every line behind `# `).
"""

import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells(text):
    """(kind, lines) of every cell of a script."""
    found = []
    for line in text.splitlines():
        if line.startswith("# %%"):
            found.append(("markdown" if "[markdown]" in line else "code", []))
        elif found:
            found[-1][1].append(line)
        elif line.strip():
            raise ValueError(f"{line!r} stands before the first cell: begin the script with `# %%`")
    return [(kind, _trimmed(kind, lines)) for kind, lines in found]


def _trimmed(kind, lines):
    if kind == "markdown":
        wrong = [line for line in lines if line.strip() and not line.startswith("#")]
        if wrong:
            raise ValueError(f"{wrong[0]!r} stands in a text cell without a leading `# `")
        lines = [line[1:].removeprefix(" ") for line in lines]
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def notebook(path):
    """The text of the notebook that belongs to a script, without outputs."""
    out = []
    for i, (kind, lines) in enumerate(cells(path.read_text(encoding="utf-8"))):
        source = [line + "\n" for line in lines[:-1]] + lines[-1:]
        cell = {"cell_type": kind, "id": f"cell-{i:02d}", "metadata": {}, "source": source}
        if kind == "code":
            cell = {**cell, "execution_count": None, "outputs": []}
        out.append(dict(sorted(cell.items())))
    whole = {"cells": out, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a pair differs")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE, help="where the scripts are")
    arguments = parser.parse_args(argv)
    scripts = sorted(arguments.folder.glob("*.py"))
    alone = {path.with_suffix(".py") for path in arguments.folder.glob("*.ipynb")} - set(scripts)
    wrong = [f"{path.with_suffix('.ipynb').name} has no script" for path in sorted(alone)]
    for script in scripts:
        target, text = script.with_suffix(".ipynb"), notebook(script)
        if not arguments.check:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            wrong.append(f"{target.name} is not what {script.name} makes: run python notebooks/tools/pair.py")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
