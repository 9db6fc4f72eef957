"""One cell in a process of its own: python -m experiments.speed.child CELL FILE [--small]

FILE holds the facts of every row measured so far, written anew after each repeat: whoever has to stop this process
still has something.
"""

import importlib
import json
import os
import sys
from pathlib import Path

from experiments.common import plain
from experiments.speed.cells import everything


def main(name: str, output: str, *more: str) -> None:
    """Measure and write."""
    from experiments.speed.task import options

    cell = next(cell for cell in everything() if cell.name == name)
    function = getattr(importlib.import_module(f"experiments.speed.{cell.module}"), cell.function)
    path = Path(output)
    for facts in function(options(small="--small" in more), *cell.given):
        scratch = path.with_suffix(".part")
        scratch.write_text(json.dumps(plain(facts)), encoding="utf-8")
        os.replace(scratch, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
