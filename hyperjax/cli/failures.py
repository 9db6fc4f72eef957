"""Exit codes, and the exception that carries one together with its one-line message."""

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["DATA", "INTERRUPTED", "OK", "UNSOLVED", "USAGE", "Failure", "blamed_on", "no_model"]

OK = 0
USAGE = 2
DATA = 3
UNSOLVED = 4
INTERRUPTED = 130

EXIT_CODES = """\
exit codes:
  0    done
  2    an unknown option, name or value, or a place nothing can be written to
  3    data or a model that cannot be used: no such file, a broken line, one class only, columns the
       model was not trained with, a damaged file, a file of a newer version
  4    no usable solution: the solves did not converge, or every value was infinite
  130  interrupted by Ctrl-C; `tune` writes the best so far first
"""


class Failure(Exception):
    """An end the user can do something about: an exit code and one line."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def no_model(path: Any) -> Failure:
    """What is said where a model file should lie."""
    return Failure(DATA, f"{path}: no such file (a model is the model.npz of `hyperjax tune --out`)")


@contextlib.contextmanager
def blamed_on(code: int) -> Iterator[None]:
    """What the library or the system says becomes a Failure with this code."""
    try:
        yield
    except FileNotFoundError as error:
        raise Failure(code, _of_the_system(error, "no such file")) from error
    except OSError as error:
        raise Failure(code, _of_the_system(error, error.strerror or "")) from error
    except (ValueError, ImportError) as error:
        raise Failure(code, str(error)) from error
    except RuntimeError as error:
        raise Failure(UNSOLVED, str(error)) from error


def _of_the_system(error: OSError, what: str) -> str:
    return f"{error.filename}: {what}" if error.filename else str(error)
