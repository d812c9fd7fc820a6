"""`count`: rows, or rows where a column is not null. Rows that withdraw others are taken off."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.state import ValueSpec

__all__ = ["Count"]


class Count(Fold):
    """One integer a key."""

    def __init__(self, name: str, column: str | None, *, weighted: bool = False) -> None:
        self._column = column
        self._weighted = weighted
        self._count = f"{name}.count"
        self.reads = (*(() if column is None else (column,)), *((CHANGE,) if weighted else ()))
        self.columns = (ValueSpec(self._count, pa.int64(), 0),)
        self.parts = (pa.field(self._count, pa.int64()),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow counts, or adds weights."""
        if self._weighted:
            return (Request(self._weights(flush), "sum"),)
        if self._column is None:
            return (Request(None, "count_all"),)
        return (Request(flush.columns[self._column], "count"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The counts as they are."""
        return folded

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Add."""
        into.values(self._count)[slots] += parts[0].to_numpy()

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The counts."""
        return (self.result(source, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The counts."""
        return pa.array(source.get(self._count, slots))

    def _weights(self, flush: Flush) -> pa.Array:
        weights = pa.array(flush.weights)
        if self._column is None or not flush.columns[self._column].null_count:
            return weights
        # Zero, not null: over nothing but nulls Arrow's sum would be null.
        return pc.if_else(flush.columns[self._column].is_valid(), weights, pa.scalar(0, pa.int8()))
