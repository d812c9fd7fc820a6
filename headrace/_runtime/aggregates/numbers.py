"""Aggregates that keep one number for a key, and whether there is one: what sums and extremes share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Slots, valid_mask
from headrace._runtime.state import ValueSpec

__all__ = ["OneNumber"]


class OneNumber(Fold):
    """The number `<name>.<word>`. An empty slot holds one that changes nothing when it is combined."""

    def __init__(
        self, name: str, word: str, column: str, *, kind: pa.DataType, neutral: int
    ) -> None:
        self._column = column
        self._number = f"{name}.{word}"
        self._has = f"{name}.has"
        self.reads = (column,)
        self.columns = (
            ValueSpec(self._number, kind, neutral),
            ValueSpec(self._has, pa.bool_(), False),
        )
        self.parts = (pa.field(self._number, kind),)

    @abstractmethod
    def _combine(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One number of two, slot by slot."""

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The numbers as they are; null where there was none."""
        return folded

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Combine with what is not null."""
        (part,) = parts
        valid = valid_mask(part)
        if valid is not None:
            slots, part = slots[valid], part.drop_null()
        numbers = into.values(self._number)
        numbers[slots] = self._combine(numbers[slots], part.to_numpy())
        into.values(self._has)[slots] = True

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The numbers, null where there is none."""
        has = source.get(self._has, slots)
        return (pa.array(source.get(self._number, slots), mask=None if has.all() else ~has),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The numbers, null where there is none."""
        return self.export(source, slots)[0]
