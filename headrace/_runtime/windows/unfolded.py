"""Rows that cross the shuffle as they are, for windows whose bounds only the other side knows.

A fed batch has some columns of the input, `__ts` (null where rows have no timestamps) and the hash of the key.
Dictionaries and views become plain arrays, because state holds no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowStep
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import key_columns, number_keys, plain_key_type, plain_keys_schema
from headrace._runtime.rows import Rows
from headrace._runtime.windows.folding import FOLD_BYTES, FOLD_ROWS
from headrace._runtime.windows.heavy import HeavyKeys
from headrace.aggregates import Aggregate
from headrace.keys import hash_keys

__all__ = [
    "TIMESTAMP",
    "Unfolded",
    "folds_in_order",
    "is_enough",
    "join_batches",
    "plain_columns",
]

#: The column of a fed batch that holds the timestamp.
TIMESTAMP = "__ts"

_OWN = [pa.field(TIMESTAMP, pa.int64()), pa.field(HASH, pa.uint64())]


def plain_columns(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """These columns as they are sent and kept."""
    return pa.schema([pa.field(name, plain_key_type(schema.field(name).type)) for name in names])


def folds_in_order(node: WindowStep) -> tuple[Fold, ...]:
    """What computes the aggregates where parts are merged in the order in which their rows arrived.

    Then no order need be kept beside them. Values that count once are kept as lists, since members of a table
    cannot be told apart by window.
    """
    keys = plain_keys_schema(node.keys, node.input_schema)
    columns = plain_columns(node.input_schema, node.input_schema.names)

    def setting(aggregate: Aggregate) -> Setting:
        overlapping = aggregate.kind == "count_distinct"
        return Setting(node.uid, columns, keys, overlapping=overlapping, weighted=node.weighted)

    return tuple(make_fold(name, a, setting(a)) for name, a in node.aggregates)


class Unfolded:
    """Makes fed batches of rows, and keeps them until they are sent."""

    def __init__(self, keys: Sequence[str], columns: pa.Schema) -> None:
        self._keys = keys
        self._columns = columns
        self._schema = pa.schema([*columns, *_OWN])
        self._batches: list[pa.RecordBatch] = []
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
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        if is_enough(self._batches):
            self._join()

    def take(self) -> list[pa.RecordBatch]:
        """All rows, in few batches; none are kept afterwards."""
        self._join()
        joined, self._joined = self._joined, []
        return joined

    def _join(self) -> None:
        if self._batches:
            self._joined.append(join_batches(self._batches))
            self._batches = []
            self._weigh(self._joined[-1])

    def _weigh(self, batch: pa.RecordBatch) -> None:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = key_columns(self._keys, named, batch.num_rows)
        # Rows are not grouped here for any other reason.
        if self._weights.suspects(keys):
            numbers, firsts = number_keys(keys)
            places = pa.array(firsts)
            self._weights.see([key.take(places) for key in keys], pa.array(np.bincount(numbers)))


def is_enough(batches: Sequence[pa.RecordBatch]) -> bool:
    """Whether these batches are worth being handled together."""
    rows = sum(batch.num_rows for batch in batches)
    return bool(rows >= FOLD_ROWS or sum(batch.nbytes for batch in batches) >= FOLD_BYTES)


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
