"""Firings before a window's end: whenever time passes a multiple of an interval, for the keys that changed.

Rows say of their pane which keys they touched. All windows that are open fire at the same multiples, so a key that
changed in a pane changed in every open window that holds the pane, and a firing empties the list. Where firings
discard, what is in a pane is what changed, and there is no list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.operator import Moment
from headrace._runtime.state import MemoryArrays, ShardState, Table, TableSpec
from headrace._runtime.windows.panes.contents import drop_before
from headrace._runtime.windows.panes.layout import DIRTY, PANES, Layout, early_every
from headrace._runtime.windows.panes.reading import pieces
from headrace.triggers import EarlyLate

__all__ = ["Early", "early_of"]

Hashes = npt.NDArray[np.uint64]


class Early:
    """The keys that changed since the last early firing."""

    def __init__(
        self, node: WindowAggregate, every_us: int, layout: Layout, state: ShardState
    ) -> None:
        # Configuration
        assert isinstance(node.trigger, EarlyLate)
        self._window = node.window
        self._every_us = every_us
        self.by_clock = node.trigger.early_time == "processing"
        self._table = PANES if node.accumulation == "discarding" else DIRTY
        self._spec = TableSpec("changed", layout.keys)
        # Checkpointed
        self._state = state

    def add(self, pane: int, passed: int, hashes: Hashes, keys: Sequence[pa.Array]) -> None:
        """Rows of these distinct keys came into a pane."""
        if self._table == DIRTY and self._window.last_end(pane) > passed:
            self._state.table(DIRTY, pane).upsert(hashes, keys)

    def is_due(self, moment: Moment) -> bool:
        """Whether time passes a multiple."""
        if self.by_clock:
            return self._next(moment.clock) - self._every_us > moment.clock_before
        return self._next(moment.watermark) - self._every_us > moment.before

    def take(self, passed: int) -> Iterator[tuple[int, Hashes, list[pa.Array]]]:
        """(end, some distinct keys) of every open window that changed, in order of their ends."""
        panes: dict[int, list[int]] = {}
        for pane in self._state.buckets(self._table):
            for end in self._window.ends_of(pane, passed, self._window.last_end(pane)):
                panes.setdefault(end, []).append(pane)
        for end in sorted(panes):
            table = self._union([self._state.table(self._table, pane) for pane in panes[end]])
            for slots in pieces(table.live()):
                yield end, table.hashes(slots), table.keys(slots)

    def clear(self, passed: int) -> None:
        """All open windows have fired."""
        for pane in self._state.buckets(self._table):
            if self._window.last_end(pane) > passed:
                table = self._state.table(self._table, pane)
                table.remove(table.live())

    def drop(self, passed: int) -> None:
        """Forget what changed in windows that are at their end."""
        if self._table == DIRTY:
            drop_before(self._state, DIRTY, self._window.first_open(passed))

    def next(self, moment: Moment, passed: int) -> tuple[int, int] | None:
        """The next multiple and how many rows would fire at most; None if nothing changed."""
        panes = [p for p in self._state.buckets(self._table) if self._window.last_end(p) > passed]
        rows = sum(
            self._state.rows(self._table, pane)
            * len(self._window.ends_of(pane, passed, self._window.last_end(pane)))
            for pane in panes
        )
        time = moment.clock if self.by_clock else moment.watermark
        return (self._next(time), rows) if rows else None

    def _next(self, time: int) -> int:
        return (time // self._every_us + 1) * self._every_us

    def _union(self, tables: list[Table]) -> Table:
        if len(tables) == 1:
            return tables[0]
        union = Table(self._spec, MemoryArrays())
        for table in tables:
            live = table.live()
            union.upsert(table.hashes(live), table.keys(live))
        return union


def early_of(node: WindowAggregate, layout: Layout, state: ShardState) -> Early | None:
    """What fires before the end, if anything does."""
    every_us = early_every(node)
    return None if every_us is None else Early(node, every_us, layout, state)
