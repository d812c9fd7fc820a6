"""The rows of one input of a join: how they are sent, and how they are kept by key.

A kept row is a row of a grouped table: the columns of the key, a number that tells the rows of a key apart, and all
other columns as one value. So the rows of any number of keys are one gather, whichever keys there are beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import JoinStep
from headrace._runtime.operator import HASH
from headrace._runtime.ordering import stable_order
from headrace._runtime.plain_keys import key_columns, plain_keys_schema
from headrace._runtime.state import Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, plain_columns
from headrace.keys import extend_hashes

__all__ = [
    "NUMBER",
    "Columns",
    "Side",
    "add_rows",
    "in_order",
    "read_rows",
    "row_values",
    "rows_table",
    "write_rows",
]

Integers = npt.NDArray[np.int64]
#: Columns of rows by name.
Columns = Mapping[str, pa.Array]

#: Tells the rows of one key apart.
NUMBER = pa.field("__number", pa.int64())
_ROW = "row"


@dataclass(frozen=True)
class Side:
    """One input: its key, and what else of a row is kept."""

    number: int
    key_names: tuple[str, ...]
    keys: pa.Schema
    carried: pa.Schema
    #: What is sent to the shard: all columns, `change` too where it has a meaning.
    sent: pa.Schema

    @classmethod
    def of(cls, node: JoinStep, number: int, *, changing: bool = False) -> Side:
        """The side of a step; `changing`: its column `change` says what becomes of a row and is not kept."""
        schema, names = node.input_schemas[number], node.keys[number]
        carried = [n for n in schema.names if n not in names and not (changing and n == CHANGE)]
        return cls(
            number,
            names,
            plain_keys_schema(names, schema),
            plain_columns(schema, carried),
            plain_columns(schema, schema.names),
        )

    def key_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of sent rows, as they are grouped and stored."""
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        return key_columns(self.key_names, named, batch.num_rows)

    def columns(self, batch: pa.RecordBatch, places: Integers | None = None) -> Columns:
        """The columns of sent rows, or of those at some places."""
        if places is not None:
            batch = batch.select(self.sent.names).take(pa.array(places))
        return {name: batch.column(name) for name in self.sent.names}


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Sent rows in order of time."""
    times = batch.column(TIMESTAMP).to_numpy()
    if (times[1:] >= times[:-1]).all():
        return batch
    return batch.take(pa.array(stable_order(times)))


def rows_table(name: str, side: Side, values: Sequence[ValueSpec] = ()) -> TableSpec:
    """A table of kept rows, with further values of each."""
    kept = (*values, *row_values(side))
    return TableSpec(name, pa.schema([*side.keys, NUMBER]), kept, grouped=True)


def row_values(side: Side) -> list[ValueSpec]:
    """What a table keeps of a row beside its key, if there is anything."""
    return [ValueSpec(_ROW, pa.struct(list(side.carried)))] if side.carried.names else []


def add_rows(table: Table, side: Side, batch: pa.RecordBatch, numbers: Integers) -> Integers:
    """Keep sent rows under these numbers; their slots."""
    hashes: npt.NDArray[np.uint64] = batch.column(HASH).to_numpy()
    number = pa.array(numbers)
    slots, _ = table.upsert(
        extend_hashes(hashes, [number]), [*side.key_columns(batch), number], hashes
    )
    write_rows(table, side, batch, slots)
    return slots


def write_rows(table: Table, side: Side, batch: pa.RecordBatch, slots: Integers) -> None:
    """Write what is kept of sent rows, beside their keys, to these slots."""
    if side.carried.names:
        arrays = [batch.column(field.name) for field in side.carried]
        table.put(_ROW, slots, pa.StructArray.from_arrays(arrays, fields=list(side.carried)))


def read_rows(table: Table, side: Side, slots: Integers) -> Columns:
    """The columns of kept rows."""
    found: dict[str, Any] = {
        name: table.key(place, slots) for place, name in enumerate(side.key_names)
    }
    if side.carried.names:
        found |= zip(side.carried.names, table.arrow(_ROW, slots).flatten(), strict=True)
    return found
