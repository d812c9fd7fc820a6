"""What a window says when it fires: its panes put together by key, as rows of the step's schema.

A window of one pane is read straight from the state. Otherwise the keys of its panes are numbered, and
each pane is merged into scratch columns: the cost is the rows of these panes, whatever else exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.aggregates.fold import Columns, Slots
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.rows import Rows
from headrace._runtime.state import Table
from headrace._runtime.windows.panes.layout import Layout
from headrace._runtime.windows.results import LATE_PANE, ON_TIME, result_rows
from headrace._runtime.windows.scratch import Scratch

__all__ = ["EMIT_ROWS", "Firing"]

#: Result rows in a batch at most.
EMIT_ROWS = 131_072

Hashes = npt.NDArray[np.uint64]


class Firing:
    """Makes result rows of one window step."""

    def __init__(self, node: WindowAggregate, layout: Layout) -> None:
        self._node = node
        self._size_us = node.window.size_us
        self._folds = layout.folds

    def on_time(self, start: int, panes: Sequence[Table]) -> Iterator[Rows]:
        """All keys of the window that starts at `start` and has rows in these panes."""
        if len(panes) == 1:
            yield from self._read(start, panes[0])
            return
        live = [pane.live() for pane in panes]
        columns = zip(
            *(pane.keys(slots) for pane, slots in zip(panes, live, strict=True)), strict=True
        )
        keys = [pa.concat_arrays(parts) for parts in columns]
        numbers, firsts = number_keys(keys)
        scratch = Scratch(self._folds, len(firsts))
        place = 0
        for pane, slots in zip(panes, live, strict=True):
            self._add(scratch, numbers[place : place + len(slots)], pane, slots)
            place += len(slots)
        for part in _pieces(np.arange(len(firsts))):
            rows = pa.array(firsts[part])
            yield self._rows(start, [key.take(rows) for key in keys], scratch, part, ON_TIME, 0)

    def again(
        self, start: int, panes: Sequence[Table], hashes: Hashes, keys: Sequence[pa.Array],
        firings: npt.NDArray[np.int64],
    ) -> Rows:  # fmt: skip
        """These distinct keys of the window, with the number of the firing of each."""
        found = [pane.find(hashes, keys) for pane in panes]
        if len(panes) == 1:
            return self._rows(start, keys, panes[0], found[0], LATE_PANE, firings)
        scratch = Scratch(self._folds, len(hashes))
        for pane, slots in zip(panes, found, strict=True):
            there = np.flatnonzero(slots >= 0)
            self._add(scratch, there, pane, slots[there])
        return self._rows(start, keys, scratch, np.arange(len(hashes)), LATE_PANE, firings)

    def _read(self, start: int, pane: Table) -> Iterator[Rows]:
        for slots in _pieces(pane.live()):
            yield self._rows(start, pane.keys(slots), pane, slots, ON_TIME, 0)

    def _add(self, scratch: Scratch, numbers: Slots, pane: Table, slots: Slots) -> None:
        for fold in self._folds:
            fold.merge(scratch, numbers, fold.export(pane, slots))

    def _rows(
        self, start: int, keys: Sequence[pa.Array], source: Columns, slots: Slots,
        pane: str, firings: npt.NDArray[np.int64] | int,
    ) -> Rows:  # fmt: skip
        return result_rows(
            self._node,
            keys,
            [fold.result(source, slots) for fold in self._folds],
            starts=start,
            ends=start + self._size_us,
            panes=pane,
            firings=firings,
        )


def _pieces(slots: Slots) -> Iterator[Slots]:
    for start in range(0, len(slots), EMIT_ROWS):
        yield slots[start : start + EMIT_ROWS]
