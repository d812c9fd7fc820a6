"""The half of a window step before the shuffle: null keys and late rows leave, the rest is folded.

Rows are folded by (key, pane) half a million at a time, with one grouping in Arrow for all aggregates. A row is in as many windows as a window has panes; it is late only if the last of them is past:
    W >= end of the last window - 1 us + lateness.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import ERRORS, ERRORS_SCHEMA, LATE, WindowAggregate
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.payload import as_json
from headrace._runtime.rows import Rows
from headrace._runtime.windows.folding import Folder
from headrace._runtime.windows.layout import Layout
from headrace.errors import EngineError
from headrace.watermarks import NO_WATERMARK
from headrace.windows import Window

__all__ = ["FOLD_BYTES", "FOLD_ROWS", "WindowFeeder", "last_late_pane"]

#: Rows folded at once. More of them share a key, and what is left costs more behind the shuffle than here;
#: but beyond this many, and with about as many keys, grouping itself misses the caches.
FOLD_ROWS = 524_288
#: Wide rows are folded earlier.
FOLD_BYTES = 64 << 20

Integers = npt.NDArray[np.int64]


class WindowFeeder(Feeder):
    """Folds the rows of one task for one window step."""

    def __init__(self, node: WindowAggregate) -> None:
        self._node = node
        self._folder = Folder(node, Layout.of(node))
        self._folded: list[pa.RecordBatch] = []

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those with a null key as errors, and late ones."""
        keyed = self._keyed(rows)
        if keyed is not None:
            yield ERRORS, _null_keys(rows.filter(~keyed), self._node)
            rows = rows.filter(keyed)
        panes = pane_starts(_timestamps(rows, self._node), self._node.window)
        limit = last_late_pane(self._node.window, self._node.lateness_us, watermark)
        if limit > NO_WATERMARK and len(panes) and panes.min() <= limit:
            late = panes <= limit
            yield LATE, rows.filter(late)
            rows, panes = rows.filter(~late), panes[~late]
        self._folder.add(rows, panes)
        if self._folder.rows >= FOLD_ROWS or self._folder.bytes >= FOLD_BYTES:
            self._folded.append(self._folder.fold())

    def flush(self) -> Iterator[pa.RecordBatch]:
        """One batch for every fold."""
        if self._folder.rows:
            self._folded.append(self._folder.fold())
        folded, self._folded = self._folded, []
        yield from folded

    def _keyed(self, rows: Rows) -> npt.NDArray[np.bool_] | None:
        """Where no key is null; None if that is everywhere."""
        with_nulls = [c for c in map(rows.batch.column, self._node.keys) if c.null_count]
        if not with_nulls:
            return None
        valid = with_nulls[0].is_valid()
        for column in with_nulls[1:]:
            valid = pc.and_(valid, column.is_valid())
        mask: npt.NDArray[np.bool_] = valid.to_numpy(zero_copy_only=False)
        return mask


def pane_starts(timestamps: Integers, window: Window) -> Integers:
    """The start of the pane of each row."""
    shifted = timestamps - window.offset_us if window.offset_us else timestamps
    starts = shifted // window.pane_us
    starts *= window.pane_us
    if window.offset_us:
        starts += window.offset_us
    return starts


def last_late_pane(window: Window, lateness_us: int, watermark: int) -> int:
    """Panes that start here or before belong to no window that can still change."""
    return watermark - (window.size_us - 1 + lateness_us)


def _timestamps(rows: Rows, node: WindowAggregate) -> Integers:
    if rows.timestamps is None:
        raise EngineError(f"Rows without timestamps reached the window step '{node.uid}'.")
    return rows.timestamps


def _null_keys(rows: Rows, node: WindowAggregate) -> Rows:
    columns = [(name, rows.batch.column(name).is_null().to_pylist()) for name in node.keys]
    causes = [
        ", ".join(f"null key '{name}'" for name, nulls in columns if nulls[row])
        for row in range(len(rows))
    ]
    origin = rows.origin
    arrays = [
        pa.array([node.uid] * len(rows)),
        pa.array(causes),
        pa.array([None if origin is None else origin.partition] * len(rows), pa.string()),
        pa.nulls(len(rows), pa.int64()) if origin is None else pa.array(origin.offsets),
        pa.array(as_json(rows.batch)),
    ]
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=ERRORS_SCHEMA), rows.timestamps, origin)
