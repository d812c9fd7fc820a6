"""`count`: rows, or rows where a column is not null."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.state import ValueSpec

__all__ = ["Count"]


class Count(Fold):
    """One integer a key."""

    def __init__(self, name: str, column: str | None) -> None:
        self._column = column
        self._count = f"{name}.count"
        self.reads = () if column is None else (column,)
        self.columns = (ValueSpec(self._count, pa.int64(), 0),)
        self.parts = (pa.field(self._count, pa.int64()),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow counts."""
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
