"""Rows that wait for the watermark, in pieces: some rows of one key group that are close in time.

A piece is read when the first of its rows is due; what is not due then is written again. Pieces are small, so that
is little, and for each there is one row in the table, so a row that waits costs next to nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Slots
from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.operator import HASH, Outlook
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.arrivals import PLACE_BITS, Arrivals
from headrace._runtime.windows.lookback.layout import (
    ARRIVAL,
    COUNT,
    ITEMS,
    LEAST,
    PENDING,
    Layout,
)  # fmt: skip
from headrace._runtime.windows.ordering import stable_order, starts_of
from headrace._runtime.windows.unfolded import TIMESTAMP
from headrace.keys import extend_hashes, key_groups

__all__ = ["PIECE_ROWS", "Pending"]

#: Rows in a piece at most.
PIECE_ROWS = 64

_BUCKET = 0
_GROUP_SHIFT = np.uint64(57)

Integers = npt.NDArray[np.int64]


class Pending:
    """The rows of one shard that wait."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._layout = layout
        self._names = layout.waiting.names
        self._list = pa.list_(pa.struct(list(layout.waiting)))
        self._state = state
        self._arrivals = Arrivals(state)

    def number(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a fed batch with their order of arrival."""
        numbers = self._arrivals.count(batch.column(HASH).to_numpy())
        numbers += np.arange(batch.num_rows)
        return batch.append_column(ARRIVAL, pa.array(numbers))

    def add(self, batch: pa.RecordBatch) -> None:
        """Let rows wait that `number` has seen."""
        timestamps = batch.column(TIMESTAMP).to_numpy()
        groups = key_groups(batch.column(HASH).to_numpy())
        order = stable_order(timestamps)
        order = order[np.argsort(groups[order], kind="stable")]
        sizes = _piece_sizes(np.bincount(groups))
        first = starts_of(sizes)
        rows = batch.select(self._names).take(pa.array(order))
        whose = groups[order[first]]
        # The number of the batch, as its rows have it, and below it that of the piece.
        batches = batch.column(ARRIVAL).to_numpy()[order[first]] >> PLACE_BITS
        numbers = (batches << PLACE_BITS) + np.arange(len(first))
        table = self._state.table(PENDING, _BUCKET)
        hashes = extend_hashes(whose.astype(np.uint64) << _GROUP_SHIFT, [pa.array(numbers)])
        slots, _ = table.upsert(hashes, [pa.array(whose), pa.array(numbers)])
        self._put(table, slots, sizes, rows)

    def take(self, watermark: int) -> pa.RecordBatch | None:
        """The rows up to the watermark, which wait no longer; of a key and time in order of arrival."""
        table = self._table()
        if table is None:
            return None
        slots = table.live()
        slots = slots[table.values(LEAST)[slots] <= watermark]
        if not len(slots):
            return None
        slots = slots[np.argsort(table.keys(slots)[1].to_numpy())]
        sizes = table.values(COUNT)[slots]
        rows = pa.RecordBatch.from_struct_array(table.items(ITEMS, slots))
        due = rows.column(TIMESTAMP).to_numpy() <= watermark
        if due.all():
            table.remove(slots)
            return rows
        owners = np.repeat(np.arange(len(slots)), sizes)
        left = np.bincount(owners[~due], minlength=len(slots))
        table.remove(slots[left == 0])
        self._put(table, slots[left > 0], left[left > 0], _at(rows, ~due))
        return _at(rows, due)

    def _put(self, table: Table, slots: Slots, sizes: Integers, rows: pa.RecordBatch) -> None:
        """Fill pieces of these sizes with rows, which are in order of time within each of them."""
        first = starts_of(sizes)
        timestamps = rows.column(TIMESTAMP).to_numpy()
        table.put(LEAST, slots, timestamps[first])
        table.put(COUNT, slots, sizes)
        table.put(ITEMS, slots, lists_of(rows.to_struct_array(), sizes, self._list))

    def outlook(self, *, by_clock: bool) -> Outlook:
        """When the next rows are due, and how many at most; by the clock, that is an epoch of its own."""
        table = self._table()
        if table is None:
            return Outlook()
        slots = table.live()
        least = table.values(LEAST)[slots]
        first = int(least.min())
        rows = int(table.values(COUNT)[slots[least == first]].sum())
        # The watermark of the clock is one microsecond behind it.
        return Outlook(first, rows, first + 1 if by_clock else None)

    def forget_arrivals(self) -> None:
        """No row is left whose order could matter."""
        if self._table() is None:
            self._arrivals.forget()

    def _table(self) -> Table | None:
        return self._state.table(PENDING, _BUCKET) if self._state.buckets(PENDING) else None


def _piece_sizes(group_sizes: Integers) -> Integers:
    """How many rows each piece has: all but the last of a group are full."""
    pieces = -(-group_sizes // PIECE_ROWS)
    sizes = np.full(int(pieces.sum()), PIECE_ROWS)
    present = pieces > 0
    last = np.cumsum(pieces)[present] - 1
    sizes[last] = (group_sizes - (pieces - 1) * PIECE_ROWS)[present]
    return sizes


def _at(rows: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    return rows.take(pa.array(np.flatnonzero(mask)))
