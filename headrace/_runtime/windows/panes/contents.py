"""Where the rows of windows are: tables of accumulators by pane, and which of them make a window.

A cumulating window would be made of more and more panes. But once a window is over, the bigger ones need not tell its
last pane from those before it, nor from the next one: these panes are kept as one running table, into which rows
for them go at once.

    panes        |p0|p1|p2|p3|p4|p5|....|           W with lateness: the windows up to p2 are over
                  `----.-----'^W                    running = p0 + p1 + p2 + p3
                    running                         the window up to p5 = running + p4 + p5
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Fold, Slots
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.operator import HASH
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.panes.layout import PANES, RUNNING, Layout
from headrace.windows import Window

__all__ = ["Contents", "drop_before", "move", "with_arrivals"]

Hashes = npt.NDArray[np.uint64]

_ARRIVAL = "__arrival"


class Contents:
    """The panes of one shard."""

    def __init__(self, window: Window, layout: Layout, state: ShardState) -> None:
        # Configuration
        self._window = window
        self._layout = layout
        self._width = len(layout.keys)
        # Checkpointed
        self._state = state

    def add(self, pane: int, rows: pa.RecordBatch, over: int) -> None:
        """Fold rows of one pane in. Windows that end at `over` or before are over."""
        keys = rows.columns[: self._width]
        hashes = rows.column(HASH).to_numpy()
        table = self._table(pane, over)
        slots, _ = table.upsert(hashes, keys)
        place = self._width + 2
        for fold in self._layout.folds:
            parts: Sequence[pa.Array] = rows.columns[place : place + len(fold.parts)]
            place += len(fold.parts)
            if fold.members is not None:
                members = self._state.table(fold.members.name, pane)
                parts = fold.admit(members, hashes, keys, parts)
            if fold.keeps_arrival:
                parts = fold.arrive(parts, rows.column(_ARRIVAL).to_numpy())
            fold.merge(table, slots, parts)
        table.touch(slots)

    def tables(self, end: int) -> list[Table]:
        """What a window is made of, in order of time."""
        start = self._window.start_of(end)
        panes = self._state.buckets(PANES)
        own = panes[bisect_left(panes, start) : bisect_left(panes, end)]
        tables = [self._state.table(PANES, pane) for pane in own]
        if self._window.cumulating and start in self._state.buckets(RUNNING):
            tables.insert(0, self._state.table(RUNNING, start))
        return tables

    def ends(self, after: int, until: int) -> list[int]:
        """The windows with rows that end behind `after` and not behind `until`, in order."""
        found: set[int] = set()
        for pane in self._places():
            found.update(self._window.ends_of(pane, after, until))
        return sorted(found)

    def next_end(self, after: int) -> int | None:
        """The first window with rows that ends behind `after`."""
        ends = [self._window.next_end(pane, after) for pane in self._places()]
        return min((end for end in ends if end is not None), default=None)

    def rows(self, end: int) -> int:
        """How many rows the tables of a window have, without opening them."""
        start = self._window.start_of(end)
        panes = [pane for pane in self._state.buckets(PANES) if start <= pane < end]
        running = self._state.rows(RUNNING, start) if self._window.cumulating else 0
        return running + sum(self._state.rows(PANES, pane) for pane in panes)

    def grow(self, over: int, until: int) -> None:
        """Make one table of the panes up to `until` that nobody tells apart any more. Cumulating only."""
        horizon = min(self._window.first_apart(over), until)
        for pane in self._state.buckets(PANES):
            if pane >= horizon:
                break
            table = self._state.table(PANES, pane)
            running = self._state.table(RUNNING, self._window.start_of(pane + 1))
            live = table.live()
            slots, _ = running.upsert(table.hashes(live), table.keys(live))
            move(self._layout.folds, running, slots, table, live)
            running.touch(slots)
        drop_before(self._state, PANES, horizon)

    def drop(self, over: int) -> None:
        """Forget what only windows need that end at `over` or before."""
        horizon = self._window.first_open(over)
        if self._window.cumulating:
            drop_before(self._state, RUNNING, horizon)
        else:
            drop_before(self._state, PANES, horizon)
        for fold in self._layout.folds:
            if fold.members is not None:
                drop_before(self._state, fold.members.name, horizon)

    @property
    def is_empty(self) -> bool:
        """No rows are left."""
        return not self._places()

    def _places(self) -> list[int]:
        running = self._state.buckets(RUNNING) if self._window.cumulating else []
        return running + self._state.buckets(PANES)

    def _table(self, pane: int, over: int) -> Table:
        if self._window.cumulating and pane < self._window.first_apart(over):
            return self._state.table(RUNNING, self._window.start_of(pane + 1))
        return self._state.table(PANES, pane)


def move(folds: Sequence[Fold], into: Columns, slots: Slots, source: Table, found: Slots) -> None:
    """Merge some rows of a table into other columns."""
    for fold in folds:
        fold.merge(into, slots, fold.export(source, found))


def drop_before(state: ShardState, name: str, horizon: int) -> None:
    """Drop buckets below the horizon, if there are any: one that moves over nothing is one more write an epoch."""
    buckets = state.buckets(name)
    if buckets and buckets[0] < horizon:
        state.drop_before(name, horizon)


def with_arrivals(batch: pa.RecordBatch, arrivals: Arrivals) -> pa.RecordBatch:
    """The batch, with the order of arrival beside it."""
    numbers = arrivals.count(batch.column(HASH).to_numpy())
    return batch.append_column(_ARRIVAL, pa.array(numbers))
