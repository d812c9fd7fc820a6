"""The half of a window join behind the shuffle: rows wait in panes, and a window is joined when the watermark passes it.

    W promises that no more rows with a timestamp <= W come. Window [s, e):

        W < e-1                  rows are kept
        e-1 <= W                 all its rows have met
        W < e-1+lateness         rows that come meet those that are there; who was alone and is no longer is withdrawn
        e-1+lateness <= W        it is over; panes that it alone still needed are dropped

Rows that come before the tick are judged by the watermark before it, all others by the one after it; those of one such
phase are taken together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import MAIN
from headrace._runtime.arrivals import ARRIVALS, Arrivals
from headrace._runtime.joins.matching import portions
from headrace._runtime.joins.results import split_nulls
from headrace._runtime.joins.window.joining import Joining
from headrace._runtime.joins.window.store import (
    Wanted,
    by_pane,
    empty,
    kept_of,
    kept_table,
)  # fmt: skip
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, TableSpec
from headrace._runtime.unfolded import join_batches
from headrace.watermarks import NO_WATERMARK

__all__ = ["WindowJoinOperator", "window_join_tables"]

Hashes = npt.NDArray[np.uint64]
#: Rows of one side by pane.
Panes = dict[int, pa.RecordBatch]

#: Rows that meet at once: those of some key groups. With more of them numbering keys misses the caches.
_AT_ONCE = 131_072


def window_join_tables(node: WindowJoin) -> tuple[TableSpec, ...]:
    """The state that a window join declares."""
    return kept_table(node, 0), kept_table(node, 1), ARRIVALS


class WindowJoinOperator(KeyedOperator):
    """The windows of one shard."""

    def __init__(self, node: WindowJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._window = node.window
        self._joining = Joining(node)
        # Checkpointed
        self._kept = [kept_of(node, side, state) for side in (0, 1)]
        self._arrivals = Arrivals(state)
        # Of this epoch
        self._arrived: list[list[pa.RecordBatch]] = [[], []]
        #: Windows that end here or before have fired, or are over.
        self._passed = self._over = NO_WATERMARK
        self._metrics: Metrics | None = None

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Where null keys are counted."""
        self._metrics = metrics

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; they wait for all others of their phase."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Take the rows from before it; then fire the windows that the watermark passes, and drop what is over."""
        self._judge(moment.before)
        yield from self._take()
        before = self._passed
        self._judge(moment.watermark)
        for end in self._ends(before, self._passed):
            for rows in self._fire(end):
                yield MAIN, rows
        for kept in self._kept:
            kept.drop_before(self._window.first_open(self._over))
        if not any(kept.panes for kept in self._kept):
            self._arrivals.forget()

    def settle(self) -> Outputs:
        """Take the epoch's rows."""
        yield from self._take()

    def outlook(self) -> Outlook:
        """The next end of a window with rows, and how many of them there are."""
        ends = [self._window.next_end(pane, self._passed) for pane in self._places()]
        end = min((end for end in ends if end is not None), default=None)
        if end is None:
            return Outlook()
        rows = sum(kept.rows(pane) for kept in self._kept for pane in self._panes(end))
        return Outlook(self._window.span(end)[1] - 1, rows)

    def _judge(self, watermark: int) -> None:
        self._passed = self._window.passed(watermark)
        self._over = self._window.passed(watermark - self._node.lateness_us)

    # Rows that come

    def _take(self) -> Outputs:
        fresh: list[Panes] = []
        for side in (0, 1):
            batches, self._arrived[side] = self._arrived[side], []
            rows: pa.RecordBatch | None = None
            if batches:
                rows, null = split_nulls(self._kept[side].side, join_batches(batches))
                if null is not None:
                    yield from self._null_keys(side, null)
            fresh.append(dict(by_pane(rows)) if rows is not None and rows.num_rows else {})
        if self._over < self._passed:
            yield from self._meet_again(fresh)
        for kept, panes in zip(self._kept, fresh, strict=True):
            for pane, rows in panes.items():
                kept.add(pane, rows)

    def _null_keys(self, side: int, batch: pa.RecordBatch) -> Outputs:
        """Rows that cannot have a partner come out alone at once, in each of their windows."""
        assert self._metrics is not None
        self._metrics.counter("null_keys").inc(batch.num_rows)
        for pane, rows in by_pane(batch):
            for end in self._window.ends_of(pane, self._over, self._window.last_end(pane)):
                yield MAIN, self._joining.alone(self._window.span(end), side, rows)

    def _meet_again(self, fresh: Sequence[Panes]) -> Outputs:
        """New rows of windows that have fired meet the others, before they are kept with them."""
        ends: set[int] = set()
        came: list[Hashes] = []
        for pane, rows in (item for panes in fresh for item in panes.items()):
            fired = self._window.ends_of(pane, self._over, self._passed)
            if fired:
                ends.update(fired)
                came.append(rows.column(HASH).to_numpy())
        if not came:
            return
        wanted = Wanted(np.concatenate(came))
        seen: list[Panes] = [{}, {}]
        for end in sorted(ends):
            both, old = [], []
            for side, kept in enumerate(self._kept):
                for pane in set(self._panes(end)).intersection(kept.panes) - seen[side].keys():
                    seen[side][pane] = kept.read_some(pane, wanted)
                before = self._rows(side, seen[side], end)
                both.append(join_batches([before, self._rows(side, fresh[side], end)]))
                old.append(before.num_rows)
            for made in self._meet(end, both, old):
                yield MAIN, made

    def _rows(self, side: int, panes: Panes, end: int) -> pa.RecordBatch:
        """Those of a window, of some by pane."""
        columns = self._kept[side].columns
        start = self._window.start_of(end)
        mine = [rows.select(columns.names) for pane, rows in panes.items() if start <= pane < end]
        return join_batches([empty(columns), *mine])

    # Windows that fire

    def _places(self) -> list[int]:
        """The panes that have rows of either side."""
        return sorted({*self._kept[0].panes, *self._kept[1].panes})

    def _panes(self, end: int) -> list[int]:
        start = self._window.start_of(end)
        return [pane for pane in self._places() if start <= pane < end]

    def _ends(self, after: int, until: int) -> list[int]:
        """The windows with rows that end behind `after` and not behind `until`, in order."""
        ends = [self._window.ends_of(pane, after, until) for pane in self._places()]
        return sorted({end for some in ends for end in some})

    def _fire(self, end: int) -> Iterator[Rows]:
        """All rows of a window meet, those of some key groups at a time."""
        panes = self._panes(end)
        sizes = [kept.sizes(panes) for kept in self._kept]
        for part in portions(sizes[0] + sizes[1], _AT_ONCE):
            there = [bool(mine[part].any()) for mine in sizes]
            alone = [side for side in (0, 1) if there[side] and self._node.preserves(side)]
            if all(there) or alone:
                groups = range(part.start, part.stop)
                rows = [kept.read(panes, groups) for kept in self._kept]
                yield from self._meet(end, rows, (0, 0))

    def _meet(self, end: int, rows: Sequence[pa.RecordBatch], old: Sequence[int]) -> Iterator[Rows]:
        """What follows from the rows of a window behind the first, old ones of each side."""
        keys = [kept.side.key_columns(mine) for kept, mine in zip(self._kept, rows, strict=True)]
        return self._joining.results(self._window.span(end), rows, keys, old)
