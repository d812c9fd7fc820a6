"""Rows that wait before the shuffle, and one grouping in Arrow that folds them for all aggregates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowStep
from headrace._runtime.aggregates.fold import Flush, Fold, Request
from headrace._runtime.heavy import HeavyKeys
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.unfolded import FOLD_BYTES, FOLD_ROWS

__all__ = ["RowBuffer", "columns_read", "fold_groups"]

Integers = npt.NDArray[np.int64]

#: How many rows a group has.
_ROWS = Request(None, "count_all")


class RowBuffer:
    """Rows of one step that wait to be folded together: only the columns that are read."""

    def __init__(self, node: WindowStep, folds: Sequence[Fold]) -> None:
        self._schema = node.input_schema
        self._read = columns_read(node, folds)
        self._traces = any(fold.traces for fold in folds)
        self.rows = 0
        self.bytes = 0
        self._batches: list[pa.RecordBatch] = []
        self._extras: list[tuple[Integers, ...]] = []
        self._timestamps: list[Integers] = []
        self._origins: list[tuple[int, Origin | None]] = []

    @property
    def full(self) -> bool:
        """It is time to fold."""
        return self.rows >= FOLD_ROWS or self.bytes >= FOLD_BYTES

    def add(self, rows: Rows, *extras: Integers) -> None:
        """Keep rows, and with each of them some numbers, for the next fold."""
        if not len(rows):
            return
        if self._traces:
            self._origins.append((self.rows, rows.origin))
        self._batches.append(rows.batch.select(self._read))
        self.bytes += self._batches[-1].nbytes
        self._extras.append(extras)
        assert rows.timestamps is not None
        self._timestamps.append(rows.timestamps)
        self.rows += len(rows)

    def take(self) -> tuple[Flush, list[Integers]]:
        """What waits, with its extra numbers; nothing waits afterwards. There is at least one row."""
        names = self._batches[0].schema.names
        columns = {name: _joined(self._batches, place) for place, name in enumerate(names)}
        flush = Flush(columns, np.concatenate(self._timestamps), self._origins)
        extras = [np.concatenate(parts) for parts in zip(*self._extras, strict=True)]
        self.rows = self.bytes = 0
        self._batches, self._extras, self._timestamps, self._origins = [], [], [], []
        return flush, extras


def fold_groups(
    flush: Flush,
    groups: Sequence[pa.Array],
    folds: Sequence[Fold],
    heavy: HeavyKeys | None = None,
    also: Sequence[Request] = (),
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The distinct groups, and in the same order what is `also` asked for, then the parts of every fold.

    `heavy` is shown the rows of each group, if the columns of the key are the first of them.
    """
    asked = [fold.requests(flush) for fold in folds]
    flat = [*also, *(request for requests in asked for request in requests)]
    counted = heavy is not None and (_counts_rows(flat) or heavy.suspects(groups))
    distinct, folded = _group(groups, [*flat, *([_ROWS] if counted else [])])
    if heavy is not None and counted:
        heavy.see(distinct, folded[-1])
    parts, folded = folded[: len(also)], folded[len(also) :]
    for fold, requests in zip(folds, asked, strict=True):
        parts += fold.partial(flush, folded[: len(requests)])
        folded = folded[len(requests) :]
    return distinct, parts


def _counts_rows(requests: Sequence[Request]) -> bool:
    return any(request.function == _ROWS.function for request in requests)


def columns_read(node: WindowStep, folds: Sequence[Fold]) -> list[str]:
    """The columns that keys and folds read, in the order of the input."""
    if any(fold.reads is None for fold in folds):
        return list(node.input_schema.names)
    wanted = {*node.keys, *(name for fold in folds for name in fold.reads or ())}
    return [name for name in node.input_schema.names if name in wanted]


def _group(
    keys: Sequence[pa.Array], requests: Sequence[Request]
) -> tuple[list[pa.Array], list[pa.Array]]:
    """The distinct keys, and what was requested for each of them, in the same order."""
    arrays = {f"k{i}": key for i, key in enumerate(keys)}
    # Asked twice, a thing is computed once: by name, and count_all has no column to be named by.
    calls: dict[str, tuple[object, ...]] = {}
    names: list[str] = []
    firsts: dict[tuple[int, str, int], int] = {}
    for i, (column, function, options) in enumerate(requests):
        if column is None:
            names.append(function)
            calls[function] = ([], function)
        else:
            first = firsts.setdefault((id(column), function, id(options)), i)
            names.append(f"c{first}_{function}")
            arrays[f"c{first}"] = column
            calls[names[-1]] = (f"c{first}", function, options)
    grouping = pa.table(arrays).group_by([f"k{i}" for i in range(len(keys))], use_threads=False)
    table = grouping.aggregate(list(calls.values()))
    columns = [*(f"k{i}" for i in range(len(keys))), *names]
    joined = [table.column(name).combine_chunks() for name in columns]
    return joined[: len(keys)], joined[len(keys) :]


def _joined(batches: Sequence[pa.RecordBatch], column: int) -> pa.Array:
    if len(batches) == 1:
        return batches[0].column(column)
    return pa.concat_arrays([batch.column(column) for batch in batches])
