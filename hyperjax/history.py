"""What a search did: one record a step."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

__all__ = ["History"]


class History(Sequence):
    """The records of a search, in order.

    A record is a dict: step, stage, start (from which of several starting points, counted from 0), hp (a tree of NumPy
    arrays), value (the criterion), hard (its hard counterpart), objective (value and prior: what was made small),
    gradient_norm, gap, kkt, codes (one hyperjax.Code a fold),
    seconds since the start, and of this search so far evaluations, inner_iterations (of all folds) and
    kernel_products (products of K with one vector: at least one an inner iteration, and two to certify each fold).
    """

    def __init__(self, records: Sequence[dict[str, Any]] = ()) -> None:
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: Any) -> Any:
        return History(self._records[index]) if isinstance(index, slice) else self._records[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._records)

    def __repr__(self) -> str:
        if not self._records:
            return "History of no steps"
        best = self.best
        return f"History of {len(self)} steps, best value {best['value']:.6g} at step {best['step']}"

    def append(self, record: dict[str, Any]) -> None:
        """Add a step."""
        self._records.append(record)

    @property
    def best(self) -> dict[str, Any]:
        """The record with the smallest objective of the last stage (stages differ in what they tune)."""
        if not self._records:
            raise ValueError("the history is empty: no step was taken")
        stage = self._records[-1]["stage"]
        return min((r for r in self._records if r["stage"] == stage), key=lambda record: record["objective"])

    def to_dict(self) -> dict[str, list[Any]]:
        """The records as columns; hyperparameters get one column a leaf, under their dotted path."""
        columns: dict[str, list[Any]] = {}
        for record in self._records:
            row = {name: value for name, value in record.items() if name != "hp"}
            for path, leaf in jax.tree_util.tree_leaves_with_path(record["hp"]):
                name = ".".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)
                row[name] = np.asarray(leaf).tolist()
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
        return columns
