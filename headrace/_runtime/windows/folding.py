"""Folds buffered rows by (key, pane) with one grouping in Arrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.aggregates.fold import Flush, Fold, Request
from headrace._runtime.plain_keys import plain_key
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.windows.layout import Layout
from headrace.keys import hash_keys

__all__ = ["Folder"]

Integers = npt.NDArray[np.int64]


class Folder:
    """Rows of one step that wait to be folded together: only the columns that are read."""

    def __init__(self, node: WindowAggregate, layout: Layout) -> None:
        self._layout = layout
        self._keys = node.keys
        self._schema = node.input_schema
        self._read = _columns_read(node, layout.folds)
        self._traces = any(fold.traces for fold in layout.folds)
        self.rows = 0
        self.bytes = 0
        self._batches: list[pa.RecordBatch] = []
        self._panes: list[Integers] = []
        self._timestamps: list[Integers] = []
        self._origins: list[tuple[int, Origin | None]] = []

    def add(self, rows: Rows, panes: Integers) -> None:
        """Keep rows for the next fold."""
        if not len(rows):
            return
        if self._traces:
            self._origins.append((self.rows, rows.origin))
        self._batches.append(rows.batch.select(self._read))
        self.bytes += self._batches[-1].nbytes
        self._panes.append(panes)
        assert rows.timestamps is not None
        self._timestamps.append(rows.timestamps)
        self.rows += len(rows)

    def fold(self) -> pa.RecordBatch:
        """One row for every key and pane; nothing waits afterwards."""
        columns = {name: _joined(self._batches, i) for i, name in enumerate(self._read)}
        flush = Flush(columns, np.concatenate(self._timestamps), self._origins)
        panes = np.concatenate(self._panes)
        self.rows = self.bytes = 0
        self._batches, self._panes, self._timestamps, self._origins = [], [], [], []
        return self._fold(flush, panes)

    def _fold(self, flush: Flush, panes: Integers) -> pa.RecordBatch:
        keys = [plain_key(flush.columns[name]) for name in self._keys]
        # Most folds lie in one pane, and a key of one column is grouped faster.
        one_pane = panes[0] if panes.min() == panes.max() else None
        if one_pane is None:
            keys.append(pa.array(panes))
        asked = [fold.requests(flush) for fold in self._layout.folds]
        groups, folded = _group(keys, [request for requests in asked for request in requests])
        starts = (
            pa.array(np.full(len(groups[0]), one_pane)) if one_pane is not None else groups.pop()
        )
        parts: list[pa.Array] = []
        for fold, requests in zip(self._layout.folds, asked, strict=True):
            parts += fold.partial(flush, folded[: len(requests)])
            folded = folded[len(requests) :]
        arrays = [*groups, starts, pa.array(hash_keys(groups)), *parts]
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.fed)


def _columns_read(node: WindowAggregate, folds: Sequence[Fold]) -> list[str]:
    if any(fold.reads is None for fold in folds):
        return list(node.input_schema.names)
    wanted = {*node.keys, *(name for fold in folds for name in fold.reads or ())}
    return [name for name in node.input_schema.names if name in wanted]


def _group(
    keys: Sequence[pa.Array], requests: Sequence[Request]
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The distinct keys, and what was requested for each of them, in the same order."""
    arrays = {f"k{i}": key for i, key in enumerate(keys)}
    calls: list[tuple[object, ...]] = []
    names: list[str] = []
    for i, (column, function, options) in enumerate(requests):
        if column is None:
            calls.append(([], function))
            names.append(function)
        else:
            arrays[f"c{i}"] = column
            calls.append((f"c{i}", function, options))
            names.append(f"c{i}_{function}")
    # count_all has no column to be named by; asked twice, it is computed once.
    distinct = [call for i, call in enumerate(calls) if names.index(names[i]) == i]
    grouping = pa.table(arrays).group_by([f"k{i}" for i in range(len(keys))], use_threads=False)
    table = grouping.aggregate(distinct)
    columns = [*(f"k{i}" for i in range(len(keys))), *names]
    joined = [table.column(name).combine_chunks() for name in columns]
    return joined[: len(keys)], joined[len(keys) :]


def _joined(batches: Sequence[pa.RecordBatch], column: int) -> pa.Array:
    if len(batches) == 1:
        return batches[0].column(column)
    return pa.concat_arrays([batch.column(column) for batch in batches])
