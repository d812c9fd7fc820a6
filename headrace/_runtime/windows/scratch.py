"""Columns that live for one firing: where the panes of a window are put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Fold, Slots
from headrace._runtime.state import ValueSpec
from headrace._runtime.state.spec import fixed_dtype

__all__ = ["Scratch"]


class Scratch:
    """`size` slots of the columns of some aggregates, with their initial values."""

    def __init__(self, folds: Sequence[Fold], size: int) -> None:
        specs = [spec for fold in folds for spec in fold.columns]
        self._columns: dict[str, Any] = {spec.name: _initial(spec, size) for spec in specs}

    def values(self, column: str) -> npt.NDArray[Any]:
        """The whole of a fixed-width column."""
        array: npt.NDArray[Any] = self._columns[column]
        return array

    def get(self, column: str, slots: Slots) -> Any:
        """The values at the slots."""
        kept = self._columns[column]
        return kept[slots] if isinstance(kept, np.ndarray) else kept.take(pa.array(slots))

    def put(self, column: str, slots: Slots, values: Any) -> None:
        """Replace the values at the slots."""
        kept = self._columns[column]
        if isinstance(kept, np.ndarray):
            kept[slots] = values
            return
        rows = np.arange(len(kept))
        rows[slots] = np.arange(len(kept), len(kept) + len(slots))
        self._columns[column] = pa.concat_arrays([kept, values]).take(pa.array(rows))


def _initial(spec: ValueSpec, size: int) -> npt.NDArray[Any] | pa.Array:
    dtype = fixed_dtype(spec.type)
    if dtype is None:
        return pa.nulls(size, spec.type)
    return np.full(size, spec.initial, dtype)
