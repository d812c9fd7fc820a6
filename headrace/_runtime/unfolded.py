"""Rows that cross the shuffle as they are, for steps of which only the other side knows what becomes of them.

A fed batch has some columns of the input, `__ts` (null where rows have no timestamps) and the hash of the key.
Dictionaries and views become plain arrays, because state holds no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.heavy import HeavyKeys
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import key_columns, number_keys, plain_key_type
from headrace._runtime.rows import Rows
from headrace.keys import hash_keys

__all__ = [
    "FOLD_BYTES",
    "FOLD_ROWS",
    "TIMESTAMP",
    "Gathered",
    "Unfolded",
    "join_batches",
    "plain_columns",
]

#: The column of a fed batch that holds the timestamp.
TIMESTAMP = "__ts"

#: Rows handled at once. More of them share a key, and what is left costs more behind the shuffle than here;
#: but beyond this many, and with about as many keys, grouping itself misses the caches.
FOLD_ROWS = 524_288
#: Wide rows are handled earlier.
FOLD_BYTES = 64 << 20
#: What is only sent need not be handled together: a few parcels are enough, and are still in the caches when they are split.
SEND_BYTES = 8 << 20

_OWN = [pa.field(TIMESTAMP, pa.int64()), pa.field(HASH, pa.uint64())]


def plain_columns(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """These columns as they are sent and kept."""
    return pa.schema([pa.field(name, plain_key_type(schema.field(name).type)) for name in names])


class Unfolded:
    """Makes fed batches of rows, and keeps them until they are sent."""

    def __init__(self, keys: Sequence[str], columns: pa.Schema) -> None:
        self._keys = keys
        self._columns = columns
        self._schema = pa.schema([*columns, *_OWN])
        self._gathered = Gathered(SEND_BYTES)
        self._joined: list[pa.RecordBatch] = []
        self._weights = HeavyKeys(tuple(keys))

    @property
    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of all that was taken, and their rows."""
        return self._weights.found

    def add(self, rows: Rows) -> None:
        """Keep rows; none has a null key."""
        if not len(rows):
            return
        named = dict(zip(rows.batch.schema.names, rows.batch.columns, strict=True))
        keys = key_columns(self._keys, named, len(rows))
        sent = [_as_type(named[field.name], field.type) for field in self._columns]
        arrays = [*sent, _timestamps(rows), pa.array(hash_keys(keys))]
        self._gathered.add(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        if self._gathered.is_enough:
            self._join()

    def take(self) -> list[pa.RecordBatch]:
        """All rows, in few batches; none are kept afterwards."""
        self._join()
        joined, self._joined = self._joined, []
        return joined

    def _join(self) -> None:
        batch = self._gathered.take()
        if batch is not None:
            self._joined.append(batch)
            self._weigh(batch)

    def _weigh(self, batch: pa.RecordBatch) -> None:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = key_columns(self._keys, named, batch.num_rows)
        # Rows are not grouped here for any other reason.
        if self._weights.suspects(keys):
            numbers, firsts = number_keys(keys)
            places = pa.array(firsts)
            self._weights.see([key.take(places) for key in keys], pa.array(np.bincount(numbers)))


class Gathered:
    """Batches of the same columns that wait until they are worth being handled together."""

    def __init__(self, limit: int = FOLD_BYTES) -> None:
        self._limit = limit
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep one more."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes

    @property
    def is_enough(self) -> bool:
        """Whether there are many rows, or large ones."""
        return self._rows >= FOLD_ROWS or self._bytes >= self._limit

    def take(self) -> pa.RecordBatch | None:
        """All as one batch, which is not kept; None if there are none."""
        batches, self._batches = self._batches, []
        self._rows = self._bytes = 0
        return join_batches(batches) if batches else None


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of all; there is at least one, and all have the same columns."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    arrays = [pa.concat_arrays(parts) for parts in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batches[0].schema)


def _timestamps(rows: Rows) -> pa.Array:
    if rows.timestamps is None:
        return pa.nulls(len(rows), pa.int64())
    timestamps: npt.NDArray[np.int64] = rows.timestamps
    return pa.array(timestamps)


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
