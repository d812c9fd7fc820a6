"""Rows that wait for the watermark, in pieces: some rows of one key group that are close in time.

A piece is read when the first of its rows is due; what is not due then is written again. Pieces are small, so that
is little, and for each there is one row in the table, so a row that waits costs next to nothing.

Rows of one key and time come out in the order in which they came. Pieces are numbered by `Arrivals`, which all tables of
a step share: it is forgotten when none of them has a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.arrivals import PLACE_BITS, Arrivals
from headrace._runtime.operator import HASH, Outlook
from headrace._runtime.ordering import stable_order, starts_of
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace.keys import extend_hashes, key_groups, lowest_hashes
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["ARRIVAL", "PIECE_ROWS", "Pending", "pending_table"]

#: The order of arrival of a row.
ARRIVAL = "__arrival"
#: Rows in a piece at most.
PIECE_ROWS = 64

#: The least timestamp of a piece, how many rows it has, and the rows themselves.
_LEAST, _COUNT, _ITEMS = "least", "count", "items"
_BUCKET = 0

Integers = npt.NDArray[np.int64]


def pending_table(name: str, waiting: pa.Schema) -> TableSpec:
    """The table of rows with these columns; `TIMESTAMP` is one of them, `ARRIVAL` may be."""
    numbered = pa.schema([("group", pa.uint8()), ("number", pa.int64())])
    values = (
        ValueSpec(_LEAST, pa.int64(), 0),
        ValueSpec(_COUNT, pa.int64(), 0),
        ValueSpec(_ITEMS, pa.list_(pa.struct(list(waiting))), None),
    )
    return TableSpec(name, numbered, values)


class Pending:
    """The rows of one shard that wait until the watermark is `wait_us` behind them."""

    def __init__(
        self, name: str, waiting: pa.Schema, state: ShardState, *, wait_us: int = 0
    ) -> None:
        self._name = name
        self._waiting = waiting
        self._list = pa.list_(pa.struct(list(waiting)))
        self._wait_us = wait_us
        self._state = state
        self._arrivals = Arrivals(state)

    @property
    def is_empty(self) -> bool:
        """Whether no row waits."""
        return self._table() is None

    def add(self, arrived: Sequence[pa.RecordBatch]) -> None:
        """Let fed rows wait, none of which is due."""
        if arrived:
            self._keep(self._numbered(join_batches(arrived)))

    def release(self, arrived: Sequence[pa.RecordBatch], watermark: int) -> pa.RecordBatch | None:
        """Rows that waited, and fed ones from before the tick, that are due now; the rest of these waits."""
        due = self._take(self._reached(watermark))
        if not arrived:
            return due
        batch = self._numbered(join_batches(arrived))
        now = batch.column(TIMESTAMP).to_numpy() <= self._reached(watermark)
        if not now.all():
            self._keep(_at(batch, ~now))
        rows = _at(batch.select(self._waiting.names), now)
        if due is not None:
            rows = join_batches([due, rows.cast(due.schema)])
        return rows if rows.num_rows else None

    def outlook(self, *, by_clock: bool = False) -> Outlook:
        """When the next rows are due, and how many at most; by the clock, that is an epoch of its own."""
        table = self._table()
        if table is None:
            return Outlook()
        slots = table.live()
        least = table.values(_LEAST)[slots]
        first = int(least.min())
        rows = int(table.values(_COUNT)[slots[least == first]].sum())
        fires_at = first + self._wait_us
        # The watermark of the clock is one microsecond behind it.
        return Outlook(fires_at, rows, fires_at + 1 if by_clock else None)

    def _reached(self, watermark: int) -> int:
        """Rows up to this time are due."""
        if watermark in (NO_WATERMARK, END_OF_TIME):
            return watermark
        return max(watermark - self._wait_us, NO_WATERMARK)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = self._arrivals.count(batch.column(HASH).to_numpy())
        numbers += np.arange(batch.num_rows)
        return batch.append_column(ARRIVAL, pa.array(numbers))

    def _keep(self, batch: pa.RecordBatch) -> None:
        timestamps = batch.column(TIMESTAMP).to_numpy()
        groups = key_groups(batch.column(HASH).to_numpy())
        order = stable_order(timestamps)
        order = order[np.argsort(groups[order], kind="stable")]
        sizes = _piece_sizes(np.bincount(groups))
        first = starts_of(sizes)
        rows = batch.select(self._waiting.names).take(pa.array(order))
        whose = groups[order[first]]
        # The number of the batch, as its rows have it, and below it that of the piece.
        batches = batch.column(ARRIVAL).to_numpy()[order[first]] >> PLACE_BITS
        numbers = (batches << PLACE_BITS) + np.arange(len(first))
        table = self._state.table(self._name, _BUCKET)
        hashes = extend_hashes(lowest_hashes(whose), [pa.array(numbers)])
        slots, _ = table.upsert(hashes, [pa.array(whose), pa.array(numbers)])
        self._put(table, slots, sizes, rows)

    def _take(self, reached: int) -> pa.RecordBatch | None:
        """The rows up to this time, which wait no longer; of a key and time in order of arrival."""
        table = self._table()
        if table is None:
            return None
        slots = table.live()
        slots = slots[table.values(_LEAST)[slots] <= reached]
        if not len(slots):
            return None
        slots = slots[np.argsort(table.keys(slots)[1].to_numpy())]
        sizes = table.values(_COUNT)[slots]
        rows = pa.RecordBatch.from_struct_array(table.items(_ITEMS, slots))
        due = rows.column(TIMESTAMP).to_numpy() <= reached
        if due.all():
            table.remove(slots)
            return rows
        owners = np.repeat(np.arange(len(slots)), sizes)
        left = np.bincount(owners[~due], minlength=len(slots))
        table.remove(slots[left == 0])
        self._put(table, slots[left > 0], left[left > 0], _at(rows, ~due))
        return _at(rows, due)

    def _put(self, table: Table, slots: Integers, sizes: Integers, rows: pa.RecordBatch) -> None:
        """Fill pieces of these sizes with rows, which are in order of time within each of them."""
        first = starts_of(sizes)
        timestamps = rows.column(TIMESTAMP).to_numpy()
        table.put(_LEAST, slots, timestamps[first])
        table.put(_COUNT, slots, sizes)
        table.put(_ITEMS, slots, lists_of(rows.to_struct_array(), sizes, self._list))

    def _table(self) -> Table | None:
        return self._state.table(self._name, _BUCKET) if self._state.buckets(self._name) else None


def _piece_sizes(group_sizes: Integers) -> Integers:
    """How many rows each piece has: all but the last of a group are full."""
    pieces = -(-group_sizes // PIECE_ROWS)
    sizes = np.full(int(pieces.sum()), PIECE_ROWS)
    present = pieces > 0
    last = np.cumsum(pieces)[present] - 1
    sizes[last] = (group_sizes - (pieces - 1) * PIECE_ROWS)[present]
    return sizes


def _at(rows: pa.RecordBatch, mask: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    return rows if mask.all() else rows.take(pa.array(np.flatnonzero(mask)))
