"""One line on the terminal that follows the search; nothing where standard error is no terminal."""

import os
import sys
import time
from typing import Any

__all__ = ["Line", "clear"]

ERASE = "\r\x1b[K"


class Line:
    """A callback of `tune` that rewrites one line a step."""

    def __init__(self, quiet: bool, label: str = "") -> None:
        self.on = not quiet and sys.stderr.isatty()
        self.label = label
        self.begun = time.perf_counter()
        self.say("compiling ..")

    def __call__(self, record: dict[str, Any]) -> None:
        hard = "" if record.get("hard") is None else f"  hard {float(record['hard']):.4g}"
        value, slope = float(record["value"]), float(record["gradient_norm"])
        self.say(f"step {record['step']}  value {value:.5g}{hard}  gradient {slope:.1e}  {self.seconds():.1f} s")

    def seconds(self) -> float:
        """Since the line was made."""
        return time.perf_counter() - self.begun

    def say(self, text: str) -> None:
        """Show this in the place of the last text, cut to the terminal: a line that wraps cannot be rewritten."""
        if self.on:
            print(f"{ERASE}{self.label}{text}"[: len(ERASE) + _columns() - 1], end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal's line empty."""
        if self.on:
            clear()


def clear() -> None:
    """Empty the terminal's line, for another message to stand there."""
    if sys.stderr.isatty():
        print(ERASE, end="", file=sys.stderr, flush=True)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
