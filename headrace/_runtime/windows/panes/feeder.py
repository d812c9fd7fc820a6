"""The half of a window step before the shuffle: null keys and late rows leave, the rest is folded.

Rows are folded by (key, pane) half a million at a time, with one grouping in Arrow for all aggregates. A row may
be in many windows; it is late only if the last of them is past: W >= end of the last window - 1 us + lateness. Late
rows that get windows of their own go on with the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import ERRORS, LATE, WindowAggregate
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.heavy import HeavyKeys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.plain_keys import key_columns
from headrace._runtime.rows import Rows
from headrace._runtime.windows.entry import timestamps_of
from headrace._runtime.windows.folding import RowBuffer, fold_groups
from headrace._runtime.windows.panes.layout import Layout
from headrace.keys import hash_keys
from headrace.watermarks import NO_WATERMARK

__all__ = ["WindowFeeder", "first_open_pane"]


class WindowFeeder(Feeder):
    """Folds the rows of one task for one window step."""

    def __init__(self, node: WindowAggregate) -> None:
        self._node = node
        self._layout = Layout.of(node)
        self._buffer = RowBuffer(node, self._layout.folds)
        self._folded: list[pa.RecordBatch] = []
        self._heavy = HeavyKeys(node.keys)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those with a null key as errors, and late ones."""
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
        if dead is not None:
            yield ERRORS, dead
        panes = self._node.window.pane_starts(timestamps_of(rows, self._node))
        horizon = first_open_pane(self._node, watermark)
        if horizon > NO_WATERMARK and len(panes) and panes.min() < horizon:
            late = panes < horizon
            yield LATE, rows.filter(late)
            rows, panes = rows.filter(~late), panes[~late]
        self._buffer.add(rows, panes)
        if self._buffer.full:
            self._folded.append(self._fold())

    def flush(self) -> Iterator[pa.RecordBatch]:
        """One batch for every fold."""
        if self._buffer.rows:
            self._folded.append(self._fold())
        folded, self._folded = self._folded, []
        yield from folded

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of the folds."""
        return self._heavy.found

    def _fold(self) -> pa.RecordBatch:
        """One row for every key and pane."""
        flush, (panes,) = self._buffer.take()
        keys = key_columns(self._node.keys, flush.columns, len(panes))
        # Most folds lie in one pane, and a key of one column is grouped faster.
        one_pane = panes[0] if panes.min() == panes.max() else None
        if one_pane is None:
            keys.append(pa.array(panes))
        groups, parts = fold_groups(flush, keys, self._layout.folds, self._heavy)
        starts = (
            pa.array(np.full(len(groups[0]), one_pane)) if one_pane is not None else groups.pop()
        )
        arrays = [*groups, starts, pa.array(hash_keys(groups)), *parts]
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.fed)


def first_open_pane(node: WindowAggregate, watermark: int) -> int:
    """Rows of panes before this one are late."""
    if node.on_late == "own_window":
        return NO_WATERMARK
    return node.window.first_open(node.window.passed(watermark - node.lateness_us))
