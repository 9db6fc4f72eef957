"""One line on the terminal that follows the search; nothing where standard error is no terminal."""

import sys
import time
from typing import Any

__all__ = ["Line"]


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
        """Show this in the place of the last text."""
        if self.on:
            print(f"\r\x1b[K{self.label}{text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal's line empty."""
        if self.on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
