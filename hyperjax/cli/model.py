"""The model file: a saved Solution with what the command line needs to use it on raw data.

One npz without pickle.  `hyperjax.Solution.load` reads it as well and sees the solution on scaled columns alone; the
entry "model" (JSON) and the two scaling arrays hold the rest.
"""

import dataclasses
import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from ..files import arrays_of, replacing
from ..solve import Solution
from .failures import DATA, USAGE, Failure, blamed_on, no_model
from .process import version
from .scaling import Scaling

__all__ = ["Model", "is_float64", "load", "save", "threshold_of"]

FORMAT = "hyperjax.model"
VERSION = 1
MODEL = "model of hyperjax"


@dataclasses.dataclass(frozen=True)
class Model:
    """A trained model on raw columns."""

    solution: Solution
    scaling: Scaling
    task: str
    """classification or regression."""
    classes: list[Any] | None
    """What -1 and +1 stand for."""
    features: list[str] | None
    """The names of the columns, where the file had some."""
    columns: dict[str, str | None]
    """The names of the columns that are none: target and groups."""
    criterion: str
    """As it was typed, fields included."""
    threshold: float = 0.0
    """The output from which on the positive class is predicted."""
    sigmoid: tuple[float, float] | None = None
    """(slope, offset): the probability of +1 is 1 / (1 + e^-(slope o + offset))."""
    library: str = ""

    def decision(self, X: np.ndarray) -> np.ndarray:
        """Outputs at raw rows."""
        return np.asarray(self.solution.decision(np.asarray(self.scaling(X), self.solution.X.dtype)), float)

    def predict(self, outputs: np.ndarray) -> np.ndarray:
        """Labels as the data had them, or the outputs of a regression."""
        if self.classes is None:
            return outputs
        return np.asarray(self.classes, object)[(outputs >= self.threshold).astype(int)]

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Of the positive class."""
        if self.sigmoid is None:
            raise Failure(USAGE, "this model has no probabilities: run `hyperjax tune` with --probabilities")
        slope, offset = self.sigmoid
        return 1.0 / (1.0 + np.exp(-np.clip(slope * outputs + offset, -500, 500)))


def threshold_of(hp: dict[str, Any]) -> float:
    """The output from which on the positive class is predicted: 0 unless the criterion tunes it."""
    return float(hp.get("criterion", {}).get("threshold", 0.0))


def save(model: Model, path: Path) -> None:
    """Write the model; an older file is replaced whole."""
    kept = ("task", "classes", "features", "columns", "criterion", "threshold", "sigmoid")
    header = {name: getattr(model, name) for name in kept}
    header |= {"format": FORMAT, "version": VERSION, "library": version(), "scaling": model.scaling.kind}
    halfway = path.with_name(f".{path.name}.{secrets.token_hex(4)}.npz")
    try:
        model.solution.save(halfway)
        arrays = arrays_of(halfway, MODEL)
    finally:
        halfway.unlink(missing_ok=True)
    arrays["model"] = np.asarray(json.dumps(header))
    arrays["model.centre"], arrays["model.spread"] = model.scaling.centre, model.scaling.spread
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load(path: Path) -> Model:
    """Read what `save` wrote, or a Failure that says what is wrong with the file."""
    header, centre, spread = _read(path)
    with blamed_on(DATA):
        solution = Solution.load(path)
    try:
        return Model(
            solution=solution,
            scaling=Scaling(header["scaling"], centre, spread),
            sigmoid=None if header["sigmoid"] is None else tuple(header["sigmoid"]),
            **{name: header[name] for name in ("task", "classes", "features", "columns", "criterion")},
            threshold=float(header["threshold"]),
            library=header["library"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(DATA, f"{path} is damaged: {type(error).__name__} {error}; tune again") from error


def is_float64(path: Path) -> bool:
    """Whether the model was trained in 64-bit floats (False where the file cannot be read: `load` says why)."""
    try:
        return arrays_of(path, MODEL, ("z",))["z"].dtype == np.float64
    except (OSError, ValueError, KeyError):
        return False


def _read(path: Path) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    try:
        arrays = arrays_of(path, MODEL, ("model", "model.centre", "model.spread"))
    except FileNotFoundError:
        raise no_model(path) from None
    except ValueError as error:
        raise Failure(DATA, str(error)) from error
    try:
        header = json.loads(str(arrays["model"]))
        known = header["format"] == FORMAT
    except (json.JSONDecodeError, TypeError, KeyError):
        known, header = False, {}
    if not known:
        raise Failure(DATA, f"{path} is no model of `hyperjax tune`; hyperjax.Solution.load reads bare solutions")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise Failure(
            DATA,
            f"{path} has model version {header.get('version')}, written by hyperjax {header.get('library')}; this "
            f"hyperjax reads versions up to {VERSION}: install a newer one",
        )
    return header, *_maps(path, arrays)


def _maps(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    try:
        return arrays["model.centre"], arrays["model.spread"]
    except KeyError as error:
        raise Failure(DATA, f"{path} is damaged: the scaling is missing; tune again") from error
