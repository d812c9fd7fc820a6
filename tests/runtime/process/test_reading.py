"""Declared state out of chunk logs: which rows there are, and what they are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.process.layout import KEYS, THERE
from headrace._runtime.process.reads.tables import Place, find_place, state_table
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState, TableSpec, ValueSpec
from headrace.errors import BuildError
from headrace.keys import KEY_GROUPS, extend_hashes, groups_of, hash_keys, key_groups, shards_of

USER = pa.field("user", pa.string())
VALUES = TableSpec(
    KEYS,
    pa.schema([USER]),
    (ValueSpec(THERE, pa.int64(), 0), ValueSpec("=small", pa.bool_()), ValueSpec("=n", pa.int64())),
)
ITEMS = TableSpec(
    "list:items", pa.schema([USER, ("#", pa.int64())]), (ValueSpec("=", pa.string()),)
)
ENTRIES = TableSpec(
    "map:seen", pa.schema([USER, ("key", pa.int64())]), (ValueSpec("=", pa.string()),)
)


class Shards:
    """The chunk logs of a step, written as an operator writes them: an epoch a call."""

    def __init__(self, *specs: TableSpec, shards: int = 2) -> None:
        self._specs = specs
        self.logs = [MemoryChunkStore() for _ in range(shards)]

    def write(
        self,
        name: str,
        keys: Sequence[Sequence[Any]],
        values: dict[str, list[Any]],
        *,
        gone: bool = False,
    ) -> None:
        spec = next(spec for spec in self._specs if spec.name == name)
        columns = [
            pa.array(part, f.type)
            for part, f in zip(zip(*keys, strict=True), spec.keys, strict=True)
        ]
        hashes = hash_keys(columns[:1])
        if len(columns) > 1:
            hashes = extend_hashes(hashes, columns[1:])
        owners = shards_of(key_groups(hashes), len(self.logs))
        for shard, log in enumerate(self.logs):
            state = ShardState(self._specs, log, MemoryArrays(), groups_of(shard, len(self.logs)))
            state.open()
            places = np.flatnonzero(owners == shard)
            table = state.table(name, 0)
            slots, _ = table.upsert(hashes[places], [c.take(pa.array(places)) for c in columns])
            if gone:
                table.remove(slots)
            for column, kept in values.items():
                kind = next(v.type for v in spec.values if v.name == column)
                table.put(column, slots, pa.array(kept, kind).take(pa.array(places)))
            state.commit()


def test_a_value_is_read_of_the_keys_that_have_it() -> None:
    shards = Shards(VALUES)
    users = [["ann"], ["bob"], ["cid"], ["dan"]]
    shards.write(KEYS, users, {THERE: [3, 1, 2, 2], "=small": [True] * 4, "=n": [1, 2, 3, 4]})
    shards.write(KEYS, [["ann"], ["eve"]], {THERE: [2, 2], "=n": [10, 5]})
    shards.write(KEYS, [["dan"]], {}, gone=True)
    small, n = Place("value", VALUES, "=small", 1, 0), Place("reducing", VALUES, "=n", 1, 1)
    assert state_table(small, shards.logs).to_pydict() == {"user": ["bob"], "value": [True]}
    found = state_table(n, shards.logs)
    assert found.to_pydict() == {"user": ["ann", "cid", "eve"], "value": [10, 3, 5]}
    assert found.schema.equals(pa.schema([USER, ("value", pa.int64())]))


def test_entries_of_maps_and_items_of_lists_are_rows_in_order() -> None:
    shards = Shards(ITEMS, ENTRIES, shards=3)
    rows = [["bob", 7], ["ann", 4], ["bob", 3], ["ann", 9]]
    shards.write("map:seen", rows, {"=": ["b7", "a4", None, "a9"]})
    shards.write("list:items", rows, {"=": ["b7", "a4", "b3", "a9"]})
    seen = state_table(Place("map", ENTRIES, "=", 1), shards.logs)
    assert seen.to_pydict() == {
        "user": ["ann", "ann", "bob", "bob"],
        "map_key": [4, 9, 3, 7],
        "value": ["a4", "a9", None, "b7"],
    }
    items = state_table(Place("list", ITEMS, "=", 1), shards.logs)
    assert items.to_pydict() == {
        "user": ["ann", "ann", "bob", "bob"],
        "ordinal": [0, 1, 0, 1],
        "value": ["a4", "a9", "b3", "b7"],
    }


def test_a_none_among_numbers_is_read_as_one() -> None:
    columns = (ValueSpec("=", pa.int64()), ValueSpec("#none", pa.bool_()))
    spec = TableSpec("map:m", ENTRIES.keys, columns)
    shards = Shards(spec)
    shards.write("map:m", [["ann", 1], ["ann", 2]], {"=": [0, 0], "#none": [True, False]})
    assert state_table(Place("map", spec, "=", 1), shards.logs)["value"].to_pylist() == [None, 0]


def test_one_key_group_is_read_alone() -> None:
    shards = Shards(VALUES)
    users = [[f"user-{n}"] for n in range(300)]
    shards.write(KEYS, users, {THERE: [2] * 300, "=n": list(range(300))})
    place = Place("value", VALUES, "=n", 1, 1)
    parts = [state_table(place, shards.logs, range(g, g + 1)) for g in range(KEY_GROUPS)]
    assert sorted(pa.concat_tables(parts)["value"].to_pylist()) == list(range(300))
    group = int(key_groups(hash_keys([pa.array(["user-7"])]))[0])
    assert "user-7" in parts[group]["user"].to_pylist()


def test_no_rows_are_a_table_with_the_right_columns() -> None:
    place = Place("list", ITEMS, "=", 1)
    for logs in ([], [MemoryChunkStore()]):
        found = state_table(place, logs)
        assert found.num_rows == 0
        assert found.schema.names == ["user", "ordinal", "value"]


def test_a_key_column_keeps_its_name() -> None:
    spec = TableSpec(
        "map:m", pa.schema([("value", pa.int64()), ("k", pa.string())]), ENTRIES.values
    )
    shards = Shards(spec)
    shards.write("map:m", [[1, "a"]], {"=": ["x"]})
    found = state_table(Place("map", spec, "=", 1), shards.logs)
    assert found.to_pydict() == {"value": [1], "map_key": ["a"], "value_": ["x"]}


def test_a_place_survives_json_and_what_is_not_there_is_answered_with_what_is() -> None:
    place = Place("map", ENTRIES, "=", 1)
    step = {"operator": 1, "states": {"seen": place.to_json(), "last": place.to_json()}}
    states = json.loads(json.dumps({"detector": step}))
    assert find_place(states, "detector", "seen") == (1, place)
    with pytest.raises(BuildError, match=r"no step 'counts' with declared state.*'detector'"):
        find_place(states, "counts", "seen")
    with pytest.raises(BuildError, match=r"'detector' has no state 'sum'. It has: 'last', 'seen'"):
        find_place(states, "detector", "sum")
    with pytest.raises(BuildError, match="None has any"):
        find_place({}, "detector", "sum")


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.bool_(), [False, None]),
        (pa.float32(), [-0.5, 2.0]),
        (pa.uint64(), [1, 2**63]),
        (pa.date32(), [date(2025, 1, 1), date(2025, 1, 2)]),
        (pa.time64("us"), [time(1), time(2)]),
        (pa.duration("us"), [timedelta(1), timedelta(2)]),
        (pa.timestamp("us", "UTC"), [datetime(2025, 1, 1, tzinfo=UTC), None]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal(3)]),
        (pa.binary(), [b"a", b"b"]),
        (pa.binary(3), [b"abc", b"abd"]),
        (pa.large_string(), ["a", "b"]),
    ],
)
def test_keys_of_every_type_are_read_in_order(kind: pa.DataType, keys: list[Any]) -> None:
    spec = TableSpec(KEYS, pa.schema([("k", kind)]), VALUES.values)
    shards = Shards(spec)
    shards.write(KEYS, [[key] for key in reversed(keys)], {THERE: [2, 2], "=n": [2, 1]})
    found = state_table(Place("value", spec, "=n", 1, 1), shards.logs)
    assert found["k"].to_pylist() == keys
    assert found["value"].to_pylist() == [1, 2]
    assert found.schema.field("k").type == kind
