"""Rows of tables as record batches, and back: what goes into a chunk and what comes out of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state.chunks import BUCKET, HASHES, REMOVED
from headrace._runtime.state.columns import plain, to_arrow
from headrace._runtime.state.index import Hashes, Slots
from headrace._runtime.state.spec import TableSpec
from headrace._runtime.state.table import Table
from headrace.keys import key_groups

__all__ = ["apply_rows", "chunk_schema", "keep_groups", "rows_of", "split_buckets"]


def chunk_schema(spec: TableSpec) -> pa.Schema:
    """The columns of a table's rows in a chunk."""
    return pa.schema(
        [
            pa.field(BUCKET, pa.int64()),
            pa.field(HASHES, pa.uint64()),
            pa.field(REMOVED, pa.bool_()),
            *(pa.field(f"k{i}", field.type) for i, field in enumerate(spec.keys)),
            *(pa.field(f"v{i}", value.type) for i, value in enumerate(spec.values)),
        ]
    )


def rows_of(spec: TableSpec, buckets: Iterable[tuple[int, Table, Slots]]) -> pa.RecordBatch | None:
    """These slots of the buckets of one table as rows sorted by key group; None if there are none."""
    parts = [(bucket, table, slots) for bucket, table, slots in buckets if slots.size]
    if not parts:
        return None
    if len(parts) == 1:
        # Of several, all rows are sorted together below.
        parts = [(bucket, table, _by_group(table, slots)) for bucket, table, slots in parts]
    schema = chunk_schema(spec)
    batches = [
        pa.RecordBatch.from_arrays(_columns(bucket, table, slots), schema=schema)
        for bucket, table, slots in parts
    ]
    if len(batches) == 1:
        return batches[0]
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    groups = key_groups(rows.column(HASHES).to_numpy())
    return rows.take(plain(np.argsort(groups, kind="stable")))


def keep_groups(rows: pa.RecordBatch, groups: range) -> pa.RecordBatch:
    """The rows whose key group lies in a range, without copying."""
    found = key_groups(rows.column(HASHES).to_numpy())
    start = int(np.searchsorted(found, groups.start, side="left"))
    stop = (
        int(np.searchsorted(found, groups.stop, side="left")) if groups.stop < 128 else len(found)
    )
    return rows.slice(start, stop - start)


def split_buckets(rows: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of each bucket."""
    buckets = rows.column(BUCKET).to_numpy()
    distinct = np.unique(buckets)
    if distinct.size == 1:
        return [(int(distinct[0]), rows)]
    return [
        (int(bucket), rows.take(plain(np.flatnonzero(buckets == bucket)))) for bucket in distinct
    ]


def apply_rows(table: Table, rows: pa.RecordBatch, *, tombstones: bool = False) -> None:
    """Fold a chunk's rows of one bucket in. `tombstones` keeps removed rows that were not there."""
    removed = rows.column(REMOVED).to_numpy(zero_copy_only=False)
    if removed.any():
        _remove(table, rows.take(plain(np.flatnonzero(removed))), tombstones=tombstones)
        rows = rows.take(plain(np.flatnonzero(~removed)))
    hashes, keys, values = _parts(table.spec, rows)
    slots, _ = table.upsert(hashes, keys)
    for value, column in zip(table.spec.values, values, strict=True):
        table.put(value.name, slots, column)
    table.touch(slots)


def _remove(table: Table, rows: pa.RecordBatch, *, tombstones: bool) -> None:
    hashes, keys, _ = _parts(table.spec, rows)
    slots = table.upsert(hashes, keys)[0] if tombstones else table.find(hashes, keys)
    table.remove(slots[slots >= 0])


def _parts(spec: TableSpec, rows: pa.RecordBatch) -> tuple[Hashes, list[pa.Array], Sequence[Any]]:
    first = 3 + len(spec.keys)
    hashes: npt.NDArray[np.uint64] = rows.column(HASHES).to_numpy()
    return hashes, rows.columns[3:first], rows.columns[first:]


def _by_group(table: Table, slots: Slots) -> Slots:
    return slots[np.argsort(key_groups(table.hashes(slots)), kind="stable")]


def _columns(bucket: int, table: Table, slots: Slots) -> list[pa.Array]:
    return [
        to_arrow(np.full(slots.size, bucket, dtype=np.int64), pa.int64()),
        to_arrow(table.hashes(slots), pa.uint64()),
        to_arrow(~table.is_live(slots), pa.bool_()),
        *table.keys(slots),
        *(table.arrow(value.name, slots) for value in table.spec.values),
    ]
