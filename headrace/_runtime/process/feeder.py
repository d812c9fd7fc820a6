"""The half of a process step before the shuffle: rows without a key leave, all others are sent as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace._graph.nodes import ERRORS, KeyedProcess
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded, plain_columns

__all__ = [
    "OFFSET",
    "ORIGIN",
    "PARTITION",
    "SOURCE",
    "ProcessFeeder",
    "sent_columns",
    "with_origins",
]

#: Where a row came from, if anybody will want to know.
SOURCE = "__source"
PARTITION = "__partition"
OFFSET = "__offset"
ORIGIN = [
    pa.field(SOURCE, pa.string()),
    pa.field(PARTITION, pa.string()),
    pa.field(OFFSET, pa.int64()),
]


def sent_columns(node: KeyedProcess, side: int) -> pa.Schema:
    """The columns of a row on its way to the shard."""
    schema = node.input_schemas[side]
    columns = plain_columns(schema, schema.names)
    return pa.schema([*columns, *(ORIGIN if _tells_origins(node, side) else ())])


class ProcessFeeder(Feeder):
    """Sends the rows of one task for one input, in order of arrival."""

    def __init__(self, node: KeyedProcess, side: int) -> None:
        self._node = node
        self._keys = node.keys[side]
        self._tells_origins = _tells_origins(node, side)
        self._unfolded = Unfolded(self._keys, sent_columns(node, side))

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those that cannot be used."""
        rows, dead = split_null_keys(rows, self._node.uid, self._keys)
        if dead is not None:
            yield ERRORS, dead
        if self._tells_origins:
            rows = with_origins(rows)
        self._unfolded.add(rows)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._unfolded.take()

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys."""
        return self._unfolded.heavy


def _tells_origins(node: KeyedProcess, side: int) -> bool:
    # Broadcast rows come in the order of their sources, however many tasks read them.
    is_broadcast = node.kind == "broadcast" and side == 1
    return node.ordered or node.on_error == "dead_letter" or is_broadcast


def with_origins(rows: Rows) -> Rows:
    """Rows with where they came from as further columns."""
    origin, many = rows.origin, len(rows)
    columns = [
        pa.array([None if origin is None else origin.source] * many, pa.string()),
        pa.array([None if origin is None else origin.partition] * many, pa.string()),
        pa.nulls(many, pa.int64()) if origin is None else pa.array(origin.offsets, pa.int64()),
    ]
    batch = rows.batch
    for field, column in zip(ORIGIN, columns, strict=True):
        batch = batch.append_column(field, column)
    return rows.with_batch(batch)
