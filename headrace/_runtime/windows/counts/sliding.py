"""Windows of the last rows that overlap: panes of rows for each key, put together when a window is full.

For a key with T rows, of which windows end at multiples of the slide, the panes kept are those of the next window:

    kept(T) = [max(0, (T // slide + 1) * slide - size), T)      in rows; all bounds lie between panes

All windows that a batch fills are put together at once: the panes of their keys, from state and batch, stand in one
scratch, and the r-th pane of every window is merged in round r.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.ordering import ranges, starts_of
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.counts.arrived import Arrived, FoldedPanes, merge_parts
from headrace._runtime.windows.counts.fired import Fired
from headrace._runtime.windows.counts.layout import BUCKET, COUNTS, PANES, Layout
from headrace._runtime.windows.scratch import Scratch
from headrace.keys import extend_hashes

__all__ = ["SlidingCounts"]

#: Panes put side by side at once, so that few keys at a time are in memory.
SCRATCH_PANES = 262_144

Integers = npt.NDArray[np.int64]


class SlidingCounts:
    """The windows of one shard."""

    def __init__(self, keys: tuple[str, ...], layout: Layout, state: ShardState) -> None:
        self._names = keys
        self._layout = layout
        self._folds = layout.folds
        self._state = state

    def take(self, batch: pa.RecordBatch) -> Iterator[Fired]:
        """Count the rows of a batch; yields the windows that they fill."""
        arrived = Arrived.count(batch, self._names, self._state.table(COUNTS, BUCKET))
        panes = FoldedPanes.of(batch, arrived, self._layout.pane, self._folds)
        table = self._state.table(PANES, BUCKET)
        kept, needed = self._first_needed(arrived.before), self._first_needed(arrived.after)
        stored = -(-arrived.before // self._layout.pane)
        filling = np.flatnonzero(self._windows(arrived.after) > self._windows(arrived.before))
        ends = (arrived.after - 1) // self._layout.pane + 1
        for owners in _chunks(filling, (ends - kept)[filling]):
            yield self._fire(table, arrived, panes, owners, kept, stored)
        self._remove(table, arrived, kept, np.minimum(needed, stored))
        self._merge(table, arrived, panes.at(panes.numbers >= needed[panes.owners]))

    def _windows(self, rows: Integers) -> Integers:
        """How many windows were full when a key had so many rows."""
        return rows // (self._layout.slide * self._layout.pane)

    def _first_needed(self, rows: Integers) -> Integers:
        """The first pane of the next window of a key with so many rows."""
        end = (self._windows(rows) + 1) * self._layout.slide
        return np.maximum(end - self._layout.size, 0)

    def _fire(
        self, table: Table, arrived: Arrived, panes: FoldedPanes, owners: Integers,
        kept: Integers, stored: Integers,
    ) -> Fired:  # fmt: skip
        widths = (arrived.after[owners] - 1) // self._layout.pane + 1 - kept[owners]
        # Pane p of a key stands at shift + p.
        shift = np.zeros(len(kept), np.int64)
        shift[owners] = starts_of(widths) - kept[owners]
        scratch = Scratch(self._folds, int(widths.sum()))
        self._load(table, arrived, owners, kept, stored, scratch, shift)
        chosen = np.zeros(len(kept), np.bool_)
        chosen[owners] = True
        own = panes.at(chosen[panes.owners])
        merge_parts(self._folds, scratch, shift[own.owners] + own.numbers, own.parts)
        return self._put_together(arrived, owners, scratch, shift)

    def _load(
        self, table: Table, arrived: Arrived, owners: Integers, kept: Integers,
        stored: Integers, scratch: Scratch, shift: Integers,
    ) -> None:  # fmt: skip
        sizes = stored[owners] - kept[owners]
        numbers = ranges(kept[owners], sizes)
        whose = np.repeat(owners, sizes)
        slots = table.find(*self._pane_keys(arrived, whose, numbers))
        for fold in self._folds:
            fold.merge(scratch, shift[whose] + numbers, fold.export(table, slots))

    def _put_together(
        self, arrived: Arrived, owners: Integers, panes: Scratch, shift: Integers
    ) -> Fired:
        first = self._windows(arrived.before[owners])
        counts = self._windows(arrived.after[owners]) - first
        whose = np.repeat(owners, counts)
        firings = ranges(first, counts)
        result = Scratch(self._folds, len(firings))
        for r in range(self._layout.size):
            numbers = (firings + 1) * self._layout.slide - self._layout.size + r
            there = np.flatnonzero(numbers >= 0)
            slots = (shift[whose] + numbers)[there]
            for fold in self._folds:
                fold.merge(result, there, fold.export(panes, slots))
        every = np.arange(len(firings))
        values = [fold.result(result, every) for fold in self._folds]
        return Fired(arrived.keys_at(whose), firings, values)

    def _remove(self, table: Table, arrived: Arrived, start: Integers, end: Integers) -> None:
        sizes = np.maximum(end - start, 0)
        if sizes.any():
            whose = np.repeat(np.arange(len(sizes)), sizes)
            table.remove(table.find(*self._pane_keys(arrived, whose, ranges(start, sizes))))

    def _merge(self, table: Table, arrived: Arrived, panes: FoldedPanes) -> None:
        if len(panes.owners):
            slots, _ = table.upsert(*self._pane_keys(arrived, panes.owners, panes.numbers))
            merge_parts(self._folds, table, slots, panes.parts)
            table.touch(slots)

    def _pane_keys(
        self, arrived: Arrived, owners: Integers, numbers: Integers
    ) -> tuple[npt.NDArray[np.uint64], list[pa.Array]]:
        places = pa.array(numbers % self._layout.size)
        hashes = extend_hashes(arrived.hashes[owners], [places])
        return hashes, [*arrived.keys_at(owners), places]


def _chunks(owners: Integers, widths: Integers) -> Iterator[Integers]:
    """The keys in order, so many at a time that their panes fit the scratch."""
    if len(owners):
        numbers = (np.cumsum(widths) - widths) // SCRATCH_PANES
        yield from np.split(owners, np.flatnonzero(np.diff(numbers)) + 1)
