"""The command `hyperjax`: tune, predict, score, export, info.

Nothing here imports JAX before a command needs it, so that `hyperjax --help` and a wrong option answer at once.
"""

import os
import sys
from collections.abc import Sequence

from .failures import INTERRUPTED, OK, USAGE, Failure
from .parser import build

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return its exit code."""
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # the reader of our output has gone (`| head`); what Python flushes at exit must not complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _run(argv: list[str]) -> int:
    try:
        options = build().parse_args(argv)
    except SystemExit as stop:  # argparse has printed its help or its complaint
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        return options.run(options) or OK
    except Failure as failure:
        _complain(str(failure))
        return failure.code
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED


def _complain(message: str) -> None:
    print("hyperjax:", " ".join(message.split()), file=sys.stderr)
