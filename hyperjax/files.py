"""Opening and replacing files: compressed or not, never half written, and errors people can act on."""

import bz2
import contextlib
import gzip
import lzma
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["arrays_of", "bare", "reading", "replacing"]

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def bare(path: Any) -> Path:
    """The path without the ending of a compressed file."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in OPENERS else path


@contextlib.contextmanager
def reading(path: Any) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where its name ends in .gz, .bz2 or .xz."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it")
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: check the name and the folder") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged, it cannot be unpacked: {error}") from None
    except OSError as error:
        # bz2 has no error class of its own; a file that cannot be opened has an errno
        if error.errno is not None:
            raise
        raise ValueError(f"{path} is damaged, it cannot be unpacked: {error}") from None


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when the block ends well, and leaves nothing behind otherwise.

    A name that ends in .gz, .bz2 or .xz is packed.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        raw = open(temporary, "xb")
    except OSError as error:  # about the file that was asked for
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with raw:
            packer = OPENERS.get(path.suffix.lower())
            with contextlib.nullcontext(raw) if packer is None else packer(raw, "wb") as file:
                yield file
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def arrays_of(path: Any, what: str, names: tuple[str, ...] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file, or those of `names` that it has; a ValueError says that it is no `what`.

    Python objects are not loaded.  NumPy's own words tell people to allow pickle, for any file that is no archive:
    what nobody should do with a file from somebody else.
    """
    try:
        with reading(path) as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is no npz archive")
            file.seek(0)
            # opened above: NumPy leaves a file it opened itself open when the archive is broken
            with np.load(file, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files if names is None or name in names}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, TypeError, AttributeError) as error:
        reason = "it holds Python objects, not numbers" if "allow_pickle" in str(error) else error
        raise ValueError(f"{path} is damaged or no {what}: {reason}") from error
