"""Data sets by name: scikit-learn's own, those of your folder, those of the cache; the network only when asked.

    load("breast_cancer")            scikit-learn's own sets, no network
    load("splice")                   HYPERJAX_DATA/splice.npz, or else the cache
    load("a9a", download=True)       into the cache, from the address in SOURCES, checked against its SHA-256

The cache is HYPERJAX_CACHE or the user's cache folder.  A name means one set: scikit-learn's go first.
"""

import dataclasses
import difflib
import hashlib
import http.client
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from . import tables

__all__ = ["Dataset", "cache_folder", "load", "names"]

FOLDER, CACHE = "HYPERJAX_DATA", "HYPERJAX_CACHE"
TIMEOUT = 30.0
SUMS = "SHA256SUMS"
SPARSE_BELOW = 0.1

BUNDLED = {
    "breast_cancer": "569 tumours, 30 measurements of cell nuclei: benign +1, malignant -1 (Wisconsin diagnostic)",
    "diabetes": "442 patients, 10 measurements, scaled: progression of the disease after a year (regression)",
    "digits": "1797 images of 8 x 8 pixels: the digits 0 to 9",
    "iris": "150 flowers, 4 measurements: three species",
    "wine": "178 wines, 13 measurements: three growers",
}
"""scikit-learn's own sets."""

COVTYPE = "https://ndownloader.figshare.com/files/5976039"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
SOURCES: dict[str, tuple[str, ...]] = {
    "a9a": (f"{LIBSVM}binary/a9a", f"{LIBSVM}binary/a9a.t"),
    "abalone": (f"{LIBSVM}regression/abalone",),
    "cod-rna": (f"{LIBSVM}binary/cod-rna", f"{LIBSVM}binary/cod-rna.t"),
    "covtype": (COVTYPE,),
    "cpusmall": (f"{LIBSVM}regression/cpusmall",),
    "german": (f"{LIBSVM}binary/german.numer",),
    "heart": (f"{LIBSVM}binary/heart",),
    "housing": (f"{LIBSVM}regression/housing",),
    "ijcnn1": (f"{LIBSVM}binary/ijcnn1.bz2", f"{LIBSVM}binary/ijcnn1.t.bz2"),
    "madelon": (f"{LIBSVM}binary/madelon", f"{LIBSVM}binary/madelon.t"),
    "mg": (f"{LIBSVM}regression/mg",),
    "news20": (f"{LIBSVM}binary/news20.binary.bz2",),
    "rcv1": (f"{LIBSVM}binary/rcv1_train.binary.bz2", f"{LIBSVM}binary/rcv1_test.binary.bz2"),
    "real-sim": (f"{LIBSVM}binary/real-sim.bz2",),
    "splice": (f"{LIBSVM}binary/splice", f"{LIBSVM}binary/splice.t"),
    "svmguide1": (f"{LIBSVM}binary/svmguide1", f"{LIBSVM}binary/svmguide1.t"),
    "usps": (f"{LIBSVM}multiclass/usps.bz2", f"{LIBSVM}multiclass/usps.t.bz2"),
    "w8a": (f"{LIBSVM}binary/w8a", f"{LIBSVM}binary/w8a.t"),
}
"""Where a set is published: the training rows, and the test rows where there is a split."""

CHECKSUMS: dict[str, str] = {
    # as scikit-learn records it for its fetch_covtype
    COVTYPE: "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
}
"""SHA-256 by address; LIBSVM's page publishes none, and an address that is not here is not trusted unasked."""

ENDINGS = {COVTYPE: "covtype.csv.gz"}
"""File names for addresses that do not end in one."""


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Rows, targets and what they mean.

    X is dense float64, or CSR where fewer than a tenth of its entries are not zero.  y of two classes is -1.0 and
    +1.0 (the larger label is +1); the numbers of more classes, and the targets of a regression, are as published.
    """

    X: Any
    y: np.ndarray
    X_test: Any | None
    y_test: np.ndarray | None
    features: tuple[str, ...] | None
    description: str
    name: str


def load(name: str, download: bool = False, checksum: str | dict[str, str] | None = "recorded") -> Dataset:
    """The data set of that name; nothing is fetched unless `download` is True and it is on no disk yet.

    A download must have the SHA-256 recorded for its address.  Where none is recorded it is refused with the digest
    that was found: give it as `checksum` (a dict {file name: digest} for several files), or None to take any file.
    """
    if name in BUNDLED:
        return _bundled(name)
    for folder in filter(None, (os.environ.get(FOLDER), cache_folder())):
        path = Path(folder) / f"{name}.npz"
        if path.is_file():
            return _of_arrays(name, path)
    if name not in SOURCES:
        near = difflib.get_close_matches(name, names(), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names())}."
        raise ValueError(f"no data set is called {name!r}: {hint} {FOLDER} may name a folder of NAME.npz files")
    folder = cache_folder() / name
    complaint = _cached(folder, name)
    if complaint is None:
        return _of_texts(name, folder)
    if not download:
        raise FileNotFoundError(f"{name} {complaint}: pass download=True to fetch it from {SOURCES[name][0]}")
    _fetch_all(name, folder, checksum)
    return _of_texts(name, folder)


def names() -> list[str]:
    """What `load` knows: bundled, in the folder HYPERJAX_DATA, in the cache, and to be downloaded."""
    found = {*BUNDLED, *SOURCES}
    for folder in filter(None, (os.environ.get(FOLDER), cache_folder())):
        if Path(folder).is_dir():
            found.update(path.stem for path in Path(folder).glob("*.npz"))
    return sorted(found)


def cache_folder() -> Path:
    """HYPERJAX_CACHE, or hyperjax in the user's cache folder; it need not exist."""
    given = os.environ.get(CACHE)
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hyperjax"


def _bundled(name: str) -> Dataset:
    try:
        from sklearn import datasets
    except ImportError:
        raise ImportError(f"the data set {name} comes with scikit-learn: install hyperjax[sklearn]") from None
    found = getattr(datasets, f"load_{name}")()
    features = tuple(map(str, found.feature_names))
    y, _ = _targets(found.target, None)
    return Dataset(np.asarray(found.data, np.float64), y, None, None, features, BUNDLED[name], name)


def _of_arrays(name: str, path: Path) -> Dataset:
    """A set in an npz file: X and y, X_test and y_test, feature_names, description."""
    table = tables.read_table(path)
    found = tables.arrays(path)
    X_test = y_test = None
    if "X_test" in found and "y_test" in found:
        X_test = tables.matrix(path, found["X_test"], "X_test")
        y_test = tables.vector(path, found["y_test"], "y_test")
        if X_test.shape != (y_test.size, table.X.shape[1]):
            raise ValueError(f"{path}: X_test has shape {X_test.shape}, X {table.X.shape}, y_test {y_test.shape}")
    y, y_test = _targets(table.y, y_test)
    description = str(found.get("description", f"{name}, from {path}"))
    return Dataset(table.X, y, X_test, y_test, table.features, description, name)


def _of_texts(name: str, folder: Path) -> Dataset:
    """A set in the files of its source: the training rows, then the test rows."""
    parts = [tables.read_table(folder / _file_name(address)) for address in SOURCES[name]]
    d = max(part.X.shape[1] for part in parts)
    X, X_test = (*(_stored(part.X, d) for part in parts), None)[:2]
    y, y_test = _targets(parts[0].y, parts[1].y if len(parts) > 1 else None)
    return Dataset(X, y, X_test, y_test, parts[0].features, f"{name}, from {SOURCES[name][0]}", name)


def _stored(X: Any, d: int) -> Any:
    if not scipy.sparse.issparse(X):
        return X
    X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    return X if X.nnz < SPARSE_BELOW * X.shape[0] * d else X.toarray()


def _targets(y: Any, y_test: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Two classes as -1.0 and +1.0, everything else as it is."""
    labels = np.unique(np.asarray(y))
    if len(labels) != 2 or (labels.dtype.kind == "f" and not np.equal(np.mod(labels, 1), 0).all()):
        return np.asarray(y), y_test
    if y_test is not None and not np.isin(y_test, labels).all():
        raise ValueError(f"y_test holds classes that y does not have, which are {labels[0]} and {labels[1]}")
    signs = (None if part is None else np.where(np.asarray(part) == labels[1], 1.0, -1.0) for part in (y, y_test))
    return tuple(signs)  # pyright: ignore[reportReturnType]  # two of them


def _file_name(address: str) -> str:
    return ENDINGS.get(address, address.rsplit("/", 1)[-1])


def _cached(folder: Path, name: str) -> str | None:
    """None where every file of the set is there as it was downloaded, else what is wrong."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except FileNotFoundError:
        return "is not on this machine"
    sums = {words[1]: words[0] for words in map(str.split, lines) if len(words) == 2}
    for file_name in map(_file_name, SOURCES[name]):
        path = folder / file_name
        if not path.is_file() or _digest(path) != sums.get(file_name):
            return f"is damaged in the cache ({path})"
    return None


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_all(name: str, folder: Path, checksum: Any) -> None:
    """Download the files of a set, check them all, and put them into the cache together or not at all."""
    wanted = _wanted(name, checksum)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder.parent) as temporary:
        own = Path(temporary) / name
        own.mkdir()
        digests = {}
        for address in SOURCES[name]:
            path = own / _file_name(address)
            _fetch(address, path)
            digests[path.name] = _digest(path)
            if wanted[path.name] not in (None, "", digests[path.name]):
                raise ValueError(
                    f"{address} has the SHA-256 {digests[path.name]} and not {wanted[path.name]}: the download is "
                    "damaged, or the file has been changed at its source; nothing was kept"
                )
        if "" in wanted.values():
            raise ValueError(
                f"no checksum is recorded for {name}, and nothing was kept of {', '.join(SOURCES[name])}: if you "
                f"trust what came, pass checksum={digests} (or checksum=None to take any file)"
            )
        (own / SUMS).write_text("".join(f"{digest}  {file_name}\n" for file_name, digest in digests.items()))
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(own, folder)


def _wanted(name: str, checksum: Any) -> dict[str, str | None]:
    """The digest each file must have: "" where none is known, None where any is taken."""
    recorded = {_file_name(address): CHECKSUMS.get(address, "") for address in SOURCES[name]}
    if checksum is None:
        return dict.fromkeys(recorded)
    if checksum == "recorded":
        return dict(recorded)
    given = checksum
    if isinstance(checksum, str) and len(recorded) == 1:
        given = dict.fromkeys(recorded, checksum)
    if not isinstance(given, dict) or set(given) - set(recorded):
        raise ValueError(f"checksum={checksum!r}: pass a dict {{file name: digest}} for {', '.join(recorded)}")
    return {**recorded, **given}


def _fetch(address: str, path: Path) -> None:
    """One file from the network; short and failed answers are errors that name the address."""
    request = urllib.request.Request(address, headers={"User-Agent": "hyperjax"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file)
            expected = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        error.close()
        raise ConnectionError(f"{address} answered {error.code} {error.reason}: nothing was downloaded") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ConnectionError(f"{address} could not be downloaded ({reason}): try again later") from error
    if expected is not None and path.stat().st_size != int(expected):
        raise ConnectionError(
            f"the download of {address} broke off after {path.stat().st_size} of {expected} bytes: try again"
        )
