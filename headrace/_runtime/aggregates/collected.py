"""`collect`: all values as a list, in order of arrival. A key's list is rewritten when it grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.aggregates.lists import concat_lists, keep_items, lengths, lists_of, owners
from headrace._runtime.state import ValueSpec

__all__ = ["Collect"]


class Collect(Fold):
    """One list a key; null and empty are the same."""

    def __init__(self, name: str, column: str, kind: pa.DataType, *, overlapping: bool) -> None:
        self._column = column
        self._list = pa.list_(kind)
        self._items = f"{name}.items"
        self._arrivals = f"{name}.arrivals"
        self.reads = (column,)
        # Items of one pane are in order as they are appended; those of several must be sorted.
        self.keeps_arrival = overlapping
        self.columns = (ValueSpec(self._items, self._list, None),)
        if overlapping:
            self.columns += (ValueSpec(self._arrivals, pa.list_(pa.int64()), None),)
        self.parts = tuple(pa.field(spec.name, spec.type) for spec in self.columns)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """The rows of a group, in order; Arrow lists only some types, but it lists numbers."""
        return (Request(flush.places, "list"),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The values in those rows."""
        rows = _with_values(folded[0], flush.columns[self._column])
        items = _relist(rows, flush.columns[self._column].take(rows.flatten()), self._list)
        return (items, rows)[: len(self.parts)]

    def arrive(
        self, parts: Sequence[pa.Array], numbers: npt.NDArray[np.int64]
    ) -> Sequence[pa.Array]:
        """The rows' places, made an order of arrival."""
        items, rows = parts
        places = rows.flatten().to_numpy() + numbers[owners(rows)]
        return (items, _relist(rows, pa.array(places), rows.type))

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Append."""
        for spec, part in zip(self.columns, parts, strict=True):
            into.put(spec.name, slots, concat_lists(into.get(spec.name, slots), part))

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The lists, and the order of their items."""
        return tuple(source.get(spec.name, slots) for spec in self.columns)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The lists, in order."""
        lists = source.get(self._items, slots)
        if self.keeps_arrival:
            arrivals = source.get(self._arrivals, slots)
            order = np.lexsort((arrivals.flatten().to_numpy(), owners(arrivals)))
            lists = _relist(lists, lists.flatten().take(pa.array(order)), self._list)
        return pc.fill_null(lists, pa.scalar([], self._list)) if lists.null_count else lists


def _with_values(rows: pa.ListArray, column: pa.Array) -> pa.ListArray:
    """The rows where the column is not null."""
    if not column.null_count:
        return rows
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return keep_items(rows, valid[rows.flatten().to_numpy()])


def _relist(lists: pa.ListArray, items: pa.Array, kind: pa.DataType) -> pa.ListArray:
    """Other items in lists of the same lengths."""
    return lists_of(items, lengths(lists), kind)
