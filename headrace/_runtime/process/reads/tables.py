"""Declared state read from outside: chunk logs become an Arrow table. Pure.

What is read is what lies in the tables of a step, in the types in which it is stored. A result has the key
columns and then

    value, reducing, aggregating    value: one row a key; of an aggregation its accumulator
    map, broadcast                  map_key, value: one row an entry
    list, operator list and union   ordinal, value: one row an item, from 0

in order of all columns but the last. State that belongs to no key has no key columns; broadcast state is read
from the first shard, the items of operators from one shard behind the other. A name that a key column has
already gets a '_' behind it.

A `Place` says where one state lies. It goes into the checkpoint, so that state can be read without the graph.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import KeyedProcess
from headrace._graph.plan import Plan
from headrace._runtime import registry
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.process.layout import KEYS, THERE, VALUE_KINDS, Layout, column_of
from headrace._runtime.process.states.whole import WHOLE
from headrace._runtime.state import ChunkStore, MemoryArrays, Table, TableSpec, ValueSpec
from headrace._runtime.state.columns import to_arrow
from headrace._runtime.state.deltas import keep_groups
from headrace._runtime.state.loading import current_rows
from headrace._runtime.state.log import Entry, Manifest
from headrace._runtime.state.tables import Tables
from headrace.endpoints import Json
from headrace.errors import BuildError
from headrace.keys import KEY_GROUPS, check_key_type
from headrace.state import StateSpec

__all__ = ["ALL_GROUPS", "Place", "find_place", "places_of", "recorded_places", "state_table"]

ALL_GROUPS = range(KEY_GROUPS)
#: The column of `grouped` tables that tells a None from a number.
_NONE = "#none"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a state lies: in this column of this table."""

    kind: str
    table: TableSpec
    column: str
    #: How many of the table's key columns are the key that the user sees.
    keys: int
    #: The bit of `THERE` that says whether a key has it; None: every row counts.
    bit: int | None = None

    @property
    def inner(self) -> int | None:
        """The place of the table's key column that tells the rows of one key apart."""
        return None if self.kind in VALUE_KINDS else len(self.table.keys) - 1

    @property
    def has_items(self) -> bool:
        """Whether rows are told apart by their number."""
        return self.inner is not None and self.kind not in ("map", "broadcast")

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; types as Arrow writes them."""
        return {
            "kind": self.kind,
            "table": self.table.name,
            "key columns": _packed(self.table.keys),
            "value columns": _packed(pa.schema([(v.name, v.type) for v in self.table.values])),
            "column": self.column,
            "keys": self.keys,
            "bit": self.bit,
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Place:
        """The inverse of `to_json`."""
        columns = tuple(ValueSpec(f.name, f.type) for f in _unpacked(fields["value columns"]))
        table = TableSpec(fields["table"], _unpacked(fields["key columns"]), columns)
        return Place(fields["kind"], table, fields["column"], fields["keys"], fields["bit"])


def places_of(node: KeyedProcess) -> dict[str, Place]:
    """By name, where the states of a step lie."""
    tables = {spec.name: spec.ungrouped() for spec in registry.tables(node)}
    return {spec.name: _place(Layout(node), spec, tables) for spec in node.states}


def recorded_places(plan: Plan) -> dict[str, Json]:
    """What a checkpoint says of declared state: uid -> the step's stage as Spark counts, its states."""
    return {
        node.uid: {
            "operator": plan.stages - 1 - plan.stage_of[number],
            "states": {name: place.to_json() for name, place in places_of(node).items()},
        }
        for number, node in plan.nodes.items()
        if isinstance(node, KeyedProcess) and node.states
    }


def find_place(states: Mapping[str, Any], uid: str, name: str) -> tuple[int, Place]:
    """The stage and the place of a state in what `recorded_places` made; what there is, if it is not there."""
    if uid not in states:
        raise BuildError(
            f"There is no step '{uid}' with declared state. {_listed('Steps that have some', states)}"
        )
    step = states[uid]
    if name not in step["states"]:
        raise BuildError(
            f"The step '{uid}' has no state '{name}'. {_listed('It has', step['states'])}"
        )
    return step["operator"], Place.from_json(step["states"][name])


def state_table(place: Place, logs: Sequence[ChunkStore], groups: range = ALL_GROUPS) -> pa.Table:
    """All rows of a state in these key groups, out of the chunk logs of the shards."""
    if place.kind == "broadcast":
        # Every shard has all of it.
        logs = logs[:1]
    shards = [_stored(place, log, groups) for log in logs]
    if not place.keys:
        shards = [_sorted(rows) for rows in shards]
    rows = pa.concat_tables([_stored_schema(place).empty_table(), *shards])
    if place.keys:
        rows = _sorted(rows)
    return _numbered(rows) if place.has_items else rows


def _place(layout: Layout, spec: StateSpec, tables: Mapping[str, TableSpec]) -> Place:
    keys = 0 if layout.dealt or spec.kind in WHOLE else len(layout.keys)
    if spec.kind in VALUE_KINDS:
        return Place(spec.kind, tables[KEYS], column_of(spec), keys, bit=layout.values.index(spec))
    table = tables[f"{spec.kind}:{spec.name}"]
    return Place(spec.kind, table, table.values[0].name, keys)


def _sorted(rows: pa.Table) -> pa.Table:
    """In order of all columns but the last, as far as there is one."""
    names = [field.name for field in list(rows.schema)[:-1] if check_key_type(field.type)]
    return rows.sort_by([(name, "ascending") for name in names]) if names else rows


def _stored(place: Place, log: ChunkStore, groups: range) -> pa.Table:
    """The rows of one shard."""
    schema = _stored_schema(place)
    content = log.manifest()
    if content is None:
        return schema.empty_table()
    name = place.table.name
    tables = Tables([place.table], MemoryArrays())
    manifest = Manifest.from_bytes(content, "a step")
    for entry in sorted(manifest.entries, key=lambda e: (e.sequence, e.chunk)):
        if name in entry.buckets and _touch(entry, groups):
            for table, rows in current_rows(log, manifest, entry):
                if table == name:
                    tables.apply(name, keep_groups(rows, groups))
    opened = [tables.get(name, bucket) for bucket in tables.buckets(name)]
    parts = [pa.RecordBatch.from_arrays(_columns(place, t), schema=schema) for t in opened]
    return pa.Table.from_batches(parts, schema)


def _touch(entry: Entry, groups: range) -> bool:
    return entry.groups[0] < groups.stop and groups.start <= entry.groups[1]


def _columns(place: Place, table: Table) -> list[pa.Array]:
    slots = table.live()
    if place.bit is not None:
        there: Any = table.get(THERE, slots)
        slots = slots[(there >> place.bit) & 1 == 1]
    keys = table.keys(slots)
    inner = [] if place.inner is None else [keys[place.inner]]
    values = table.arrow(place.column, slots)
    if any(value.name == _NONE for value in place.table.values):
        values = pc.if_else(to_arrow(table.get(_NONE, slots), pa.bool_()), None, values)
    return [*keys[: place.keys], *inner, values]


def _stored_schema(place: Place) -> pa.Schema:
    fields = list(place.table.keys)[: place.keys]
    if place.inner is not None:
        told = "ordinal" if place.has_items else "map_key"
        fields.append(pa.field(told, place.table.keys.field(place.inner).type))
    kinds = {value.name: value.type for value in place.table.values}
    fields.append(pa.field("value", kinds[place.column]))
    names: list[str] = []
    for field in fields:
        name = field.name
        while name in names:
            name += "_"
        names.append(name)
    return pa.schema([field.with_name(name) for field, name in zip(fields, names, strict=True)])


def _numbered(rows: pa.Table) -> pa.Table:
    """Items numbered from 0 for each key; as they are stored there may be gaps."""
    place = rows.num_columns - 2
    ordinals = np.arange(rows.num_rows)
    if place and rows.num_rows:
        numbers, firsts = number_keys([c.combine_chunks() for c in rows.columns[:place]])
        ordinals -= firsts[numbers]
    return rows.set_column(place, rows.schema.field(place).name, pa.array(ordinals))


def _listed(intro: str, names: Mapping[str, Any]) -> str:
    return (
        f"{intro}: {', '.join(repr(name) for name in sorted(names))}." if names else "None has any."
    )


def _packed(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _unpacked(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
