"""Windows of n rows that do not overlap: one accumulator for each key, which starts anew when it is full.

The panes of a batch, for one key with 2 of 4 rows before it:

    state  o o | x x | x x x x | x x x
                 (a)     (b)      (c)

(a) is merged into the state, which fires and is emptied; (b) fires without touching the state; (c) becomes the state.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace._runtime.aggregates.fold import Slots
from headrace._runtime.state import ShardState, Table
from headrace._runtime.state.spec import fixed_dtype
from headrace._runtime.windows.counts.arrived import Arrived, FoldedPanes, merge_parts
from headrace._runtime.windows.counts.fired import Fired
from headrace._runtime.windows.counts.layout import BUCKET, COUNTS, Layout
from headrace._runtime.windows.scratch import Scratch

__all__ = ["TumblingCounts"]


class TumblingCounts:
    """The windows of one shard."""

    def __init__(self, keys: tuple[str, ...], layout: Layout, state: ShardState) -> None:
        self._names = keys
        self._size = layout.pane
        self._folds = layout.folds
        self._columns = [column for fold in layout.folds for column in fold.columns]
        self._state = state

    def take(self, batch: pa.RecordBatch) -> Iterator[Fired]:
        """Count the rows of a batch; yields the windows that they fill."""
        table = self._state.table(COUNTS, BUCKET)
        arrived = Arrived.count(batch, self._names, table)
        panes = FoldedPanes.of(batch, arrived, self._size, self._folds)
        full = (panes.numbers + 1) * self._size <= arrived.after[panes.owners]
        is_first = panes.numbers == (arrived.before // self._size)[panes.owners]
        self._merge(table, arrived, panes.at(is_first))
        if full.any():
            yield self._fire(table, arrived, panes.at(full & is_first))
            yield self._fire_at_once(arrived, panes.at(full & ~is_first))
            self._merge(table, arrived, panes.at(~full & ~is_first))

    def _merge(self, table: Table, arrived: Arrived, panes: FoldedPanes) -> None:
        if len(panes.owners):
            slots = arrived.slots[panes.owners]
            merge_parts(self._folds, table, slots, panes.parts)
            table.touch(slots)

    def _fire(self, table: Table, arrived: Arrived, panes: FoldedPanes) -> Fired:
        slots = arrived.slots[panes.owners]
        values = [fold.result(table, slots) for fold in self._folds]
        self._empty(table, slots)
        return Fired(arrived.keys_at(panes.owners), panes.numbers, values)

    def _fire_at_once(self, arrived: Arrived, panes: FoldedPanes) -> Fired:
        slots = np.arange(len(panes.owners))
        scratch = Scratch(self._folds, len(slots))
        merge_parts(self._folds, scratch, slots, panes.parts)
        values = [fold.result(scratch, slots) for fold in self._folds]
        return Fired(arrived.keys_at(panes.owners), panes.numbers, values)

    def _empty(self, table: Table, slots: Slots) -> None:
        for spec in self._columns:
            dtype = fixed_dtype(spec.type)
            if dtype is None:
                table.put(spec.name, slots, pa.nulls(len(slots), spec.type))
            else:
                table.put(spec.name, slots, np.full(len(slots), spec.initial, dtype))
