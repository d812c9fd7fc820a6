"""`collect`: all values as a list, in order of arrival. A key's list is rewritten when it grows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.aggregates.lists import concat_lists, keep_items
from headrace._runtime.state import ValueSpec

__all__ = ["Collect"]


class Collect(Fold):
    """One list a key; null and empty are the same."""

    def __init__(self, name: str, column: str, kind: pa.DataType) -> None:
        self._column = column
        self._list = pa.list_(kind)
        self._items = f"{name}.items"
        self.reads = (column,)
        self.columns = (ValueSpec(self._items, self._list, None),)
        self.parts = (pa.field(self._items, self._list),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The rows of a group, in order; Arrow lists only some types, but it lists numbers."""
        return (Request(flush.places, "list"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The values in those rows."""
        return (_without_nulls(folded[0], flush.columns[self._column], self._list),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Append."""
        into.put(self._items, slots, concat_lists(into.get(self._items, slots), parts[0]))

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The lists."""
        return (self.result(source, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The lists."""
        lists = source.get(self._items, slots)
        return pc.fill_null(lists, pa.scalar([], self._list)) if lists.null_count else lists


def _without_nulls(rows: pa.ListArray, column: pa.Array, kind: pa.DataType) -> pa.ListArray:
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        rows = keep_items(rows, valid[rows.flatten().to_numpy()])
    made = pa.ListArray.from_arrays(rows.offsets, column.take(rows.values))
    return made if made.type == kind else made.cast(kind)
