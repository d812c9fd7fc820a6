"""The half of a window step behind the shuffle: panes of accumulators by key, fired as time passes.

    W promises that no more rows with a timestamp <= W come. Window [s, e):

        e-1 <= W                 it has fired (`firing` 0)
        W < e-1+lateness         rows that change it are collected; `settle` fires it again, once an epoch,
                                 for the keys that changed (`firing` 1, 2, ...)
        e-1+lateness <= W        it is over; the pane that it alone still needed is dropped

Rows that come before the tick are judged by the watermark before it, all others by the one after it. A window
that is over by the new watermark but was changed by rows from before the tick fires once more; its rows are made
in `tick`, before others reach its panes, and go out with all re-firings in `settle`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import MAIN, WindowAggregate
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.arrivals import ARRIVALS, Arrivals
from headrace._runtime.windows.panes.changes import Changes
from headrace._runtime.windows.panes.feeder import last_late_pane
from headrace._runtime.windows.panes.firing import Firing
from headrace._runtime.windows.panes.layout import FIRINGS, PANES, REFIRINGS, Layout, window_tables
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["WindowOperator", "window_tables"]

_ARRIVAL = "__arrival"


class WindowOperator(KeyedOperator):
    """The windows of one shard."""

    def __init__(self, node: WindowAggregate, state: ShardState) -> None:
        # Configuration
        self._window = node.window
        self._lateness_us = node.lateness_us
        self._layout = Layout.of(node)
        self._firing = Firing(node, self._layout)
        # Checkpointed
        self._state = state
        self._arrivals = Arrivals(state)
        # Of this epoch
        self._early: list[pa.RecordBatch] | None = []
        self._watermark = NO_WATERMARK
        self._changes = Changes(node.window, node.lateness_us)
        self._last_firings: list[Rows] = []

    def merge(self, batch: pa.RecordBatch) -> None:
        """Fold a fed batch in; before the tick it waits for it, which says by what to judge it."""
        if self._early is not None:
            self._early.append(batch)
        elif batch.num_rows:
            if self._layout.keeps_arrival:
                numbers = self._arrivals.count(batch.column(HASH).to_numpy())
                batch = batch.append_column(_ARRIVAL, pa.array(numbers))
            for pane, rows in _by_pane(batch, len(self._layout.keys)):
                self._merge_pane(pane, rows)

    def tick(self, moment: Moment) -> Outputs:
        """Fire the windows that end behind `before` and not behind `watermark`, in order of their ends."""
        before, watermark = moment.before, moment.watermark
        early, self._early = self._early or [], None
        self._watermark = before
        for batch in early:
            self.merge(batch)
        self._watermark = watermark
        panes = self._state.buckets(PANES)
        for start in self._due(panes, before, watermark):
            for rows in self._firing.on_time(start, self._tables(panes, start)):
                yield MAIN, rows
        # Rows that come now are too late for these windows but may share a pane with them.
        over = last_late_pane(self._window, self._lateness_us, watermark)
        self._last_firings = list(self._fire_again(over))

    def settle(self) -> Outputs:
        """Fire again what late rows changed, then drop what no window needs any more."""
        for rows in self._last_firings:
            yield MAIN, rows
        for rows in self._fire_again(END_OF_TIME):
            yield MAIN, rows
        self._drop()
        self._early, self._last_firings = [], []

    def _fire_again(self, until: int) -> Iterator[Rows]:
        """Fire the changed windows that start at `until` or before."""
        panes = self._state.buckets(PANES)
        for start, hashes, keys in self._changes.take(until):
            table = self._state.table(REFIRINGS, start)
            slots, _ = table.upsert(hashes, keys)
            firings = table.values(FIRINGS)
            firings[slots] += 1
            table.touch(slots)
            yield self._firing.again(
                start, self._tables(panes, start), hashes, keys, firings[slots]
            )

    def _merge_pane(self, pane: int, rows: pa.RecordBatch) -> None:
        width = len(self._layout.keys)
        keys = rows.columns[:width]
        hashes = rows.column(HASH).to_numpy()
        table = self._state.table(PANES, pane)
        slots, _ = table.upsert(hashes, keys)
        place = width + 2
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
        self._changes.add(pane, self._watermark, hashes, keys)

    def _due(self, panes: Sequence[int], before: int, watermark: int) -> list[int]:
        """The starts of the windows that fire now, of those that have a pane with rows."""
        size, slide = self._window.size_us, self._window.slide_us
        due: set[int] = set()
        for pane in panes:
            first = pane - size + slide
            # The first start on the grid with start + size - 1 > before.
            if first + size - 1 <= before:
                first += -(-(before - (first + size - 1) + 1) // slide) * slide
            due.update(range(first, min(pane, watermark - size + 1) + 1, slide))
        return sorted(due)

    def _tables(self, panes: Sequence[int], start: int) -> list[Table]:
        """Of these panes, in order, the tables of those that make up a window."""
        end = bisect_left(panes, start + self._window.size_us)
        own = panes[bisect_left(panes, start) : end]
        return [self._state.table(PANES, pane) for pane in own]

    def _drop(self) -> None:
        over = last_late_pane(self._window, self._lateness_us, self._watermark)
        for spec in self._layout.tables:
            if spec is ARRIVALS:
                continue
            buckets = self._state.buckets(spec.name)
            # A horizon that moves over nothing would be one more write an epoch.
            if buckets and buckets[0] <= over:
                self._state.drop_before(spec.name, over + 1)
        if self._layout.keeps_arrival and not self._state.buckets(PANES):
            self._arrivals.forget()


def _by_pane(batch: pa.RecordBatch, column: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each pane, earliest first."""
    panes = batch.column(column).to_numpy()
    if panes.min() == panes.max():
        yield int(panes[0]), batch
        return
    order = np.argsort(panes, kind="stable")
    batch, panes = batch.take(pa.array(order)), panes[order]
    edges = [0, *(np.flatnonzero(np.diff(panes)) + 1), len(panes)]
    for start, end in pairwise(edges):
        yield int(panes[start]), batch.slice(start, end - start)
