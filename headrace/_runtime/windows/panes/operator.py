"""The half of a window step behind the shuffle: panes of accumulators by key, fired as time passes.

    W promises that no more rows with a timestamp <= W come. Window [s, e):

        W < e-1                  it is open; with an early trigger it fires now and then for keys that changed
        e-1 <= W                 it has fired on time
        W < e-1+lateness         rows that change it are collected; `settle` fires it again, once an epoch,
                                 for the keys that changed
        e-1+lateness <= W        it is over; the pane that it alone still needed is dropped

Rows that come before the tick are judged by the watermark before it, all others by the one after it. A window
that is over by the new watermark but was changed by rows from before the tick fires once more; its rows are made
in `tick`, before others reach its panes, and go out with all re-firings in `settle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import MAIN, WindowAggregate
from headrace._runtime.aggregates.fold import Slots
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.windows.panes.changes import Changed, Changes
from headrace._runtime.windows.panes.contents import Contents, with_arrivals
from headrace._runtime.windows.panes.early import early_of
from headrace._runtime.windows.panes.firing import Firing
from headrace._runtime.windows.panes.layout import Layout, window_tables
from headrace._runtime.windows.panes.own import OwnWindows
from headrace._runtime.windows.panes.reading import Piece, read_all, read_some
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["WindowOperator", "window_tables"]

Hashes = npt.NDArray[np.uint64]


class WindowOperator(KeyedOperator):
    """The windows of one shard."""

    def __init__(self, node: WindowAggregate, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._window = node.window
        self._layout = Layout.of(node)
        self._discards = node.accumulation == "discarding"
        # Checkpointed
        self._contents = Contents(node.window, self._layout, state)
        self._firing = Firing(node, self._layout, state)
        self._early = early_of(node, self._layout, state)
        self._arrivals = Arrivals(state)
        # Of this epoch
        self._waiting: list[pa.RecordBatch] | None = []
        self._moment = Moment(NO_WATERMARK, NO_WATERMARK, NO_WATERMARK, NO_WATERMARK)
        #: Windows that end here or before have fired on time, or are over.
        self._passed = self._over = NO_WATERMARK
        recall = self._read if node.accumulation == "retracting" else None
        self._changes = Changes(self._layout.keys, recall)
        self._last_firings: list[Rows] = []
        self._own = OwnWindows(node, self._layout)

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Fold a fed batch in; before the tick it waits for it, which says by what to judge it."""
        if self._waiting is not None:
            self._waiting.append(batch)
        elif batch.num_rows:
            if self._layout.keeps_arrival:
                batch = with_arrivals(batch, self._arrivals)
            for pane, rows in _by_pane(batch, len(self._layout.keys)):
                self._add(pane, rows)

    def tick(self, moment: Moment) -> Outputs:
        """Fire the windows whose end the watermark passes, in order, then those that fire early."""
        self._moment = moment
        waiting, self._waiting = self._waiting or [], None
        self._judge(moment.before)
        for batch in waiting:
            self.merge(batch)
        before = self._passed
        self._judge(moment.watermark)
        # Rows that come now are too late for these windows but may share a pane with them.
        self._last_firings = [
            rows for c in self._changes.take(self._over) for rows in self._fire_again(c)
        ]
        for end in self._contents.ends(before, self._passed):
            for rows in self._fire(end):
                yield MAIN, rows
        if self._window.cumulating:
            self._contents.grow(self._over, END_OF_TIME)
        if self._early is not None and self._early.is_due(moment):
            for rows in self._fire_early():
                yield MAIN, rows

    def settle(self) -> Outputs:
        """Fire again what late rows changed, then drop what no window needs any more."""
        for rows in self._last_firings:
            yield MAIN, rows
        for changed in self._changes.take(END_OF_TIME):
            for rows in self._fire_again(changed):
                yield MAIN, rows
        for end, piece in self._own.take():
            yield MAIN, self._firing.own(end, piece)
        self._drop()
        self._waiting, self._last_firings = [], []

    def outlook(self) -> Outlook:
        """The next end of a window with rows, or the next early firing if that comes first."""
        fires_at, keys, due = None, 0, None
        end = self._contents.next_end(self._passed)
        if end is not None:
            fires_at, keys = self._window.span(end)[1] - 1, self._contents.rows(end)
            if self._window.time == "processing":
                due = fires_at + 1
        soon = None if self._early is None else self._early.next(self._moment, self._passed)
        if soon is not None and self._early is not None:
            time, rows = soon
            if self._early.by_clock:
                due = time if due is None else min(due, time)
            elif fires_at is None or time < fires_at:
                fires_at, keys = time, rows
        return Outlook(fires_at, keys, due)

    def _judge(self, watermark: int) -> None:
        self._passed = self._window.passed(watermark)
        self._over = self._window.passed(watermark - self._node.lateness_us)

    def _add(self, pane: int, rows: pa.RecordBatch) -> None:
        if self._window.last_end(pane) <= self._over:
            # The feeder lets such rows pass only if they get windows of their own.
            self._own.add(pane, rows)
            return
        keys: Sequence[pa.Array] = rows.columns[: len(self._layout.keys)]
        hashes = rows.column(HASH).to_numpy()
        for end in self._window.ends_of(pane, self._over, self._passed):
            self._changes.add(end, hashes, keys)
        self._contents.add(pane, rows, self._over)
        if self._early is not None:
            self._early.add(pane, self._passed, hashes, keys)

    def _fire(self, end: int) -> Iterator[Rows]:
        """On time, for all keys."""
        if self._window.cumulating:
            self._contents.grow(self._over, end)
        tables = self._contents.tables(end)
        for piece in read_all(self._layout.folds, tables):
            yield from self._firing.on_time(end, piece)
        if self._discards and self._node.lateness_us:
            for table in tables:
                table.remove(table.live())

    def _fire_early(self) -> Iterator[Rows]:
        assert self._early is not None
        for end, hashes, keys in self._early.take(self._passed):
            _, piece = self._read(end, hashes, keys)
            yield from self._firing.early(end, piece)
        self._early.clear(self._passed)

    def _fire_again(self, changed: Changed) -> Iterator[Rows]:
        """Late, for the keys that changed."""
        if self._window.cumulating:
            self._contents.grow(self._over, changed.end)
        _, piece = self._read(changed.end, changed.hashes, changed.keys)
        yield from self._firing.late(changed.end, piece, changed.before)
        if self._discards:
            for table in self._contents.tables(changed.end):
                slots = table.find(changed.hashes, changed.keys)
                table.remove(slots[slots >= 0])

    def _read(self, end: int, hashes: Hashes, keys: Sequence[pa.Array]) -> tuple[Slots, Piece]:
        return read_some(self._layout.folds, self._contents.tables(end), hashes, keys)

    def _drop(self) -> None:
        self._contents.drop(self._over)
        self._firing.drop(self._passed, self._over)
        if self._early is not None:
            self._early.drop(self._passed)
        if self._layout.keeps_arrival and self._contents.is_empty:
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
