"""Members found one at a time are those that a batch finds."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.state import MemoryArrays, Table, TableSpec
from headrace._runtime.state.points import Points
from headrace.keys import extend_hashes, hash_keys

DAY = datetime(2025, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
POINTS = [
    (pa.int64(), [0, -1, 5, 2**63 - 1, -(2**63)]),
    (pa.uint8(), [0, 255]),
    (pa.bool_(), [True, False]),
    (pa.float64(), [0.0, -1.5, float("inf"), float("nan"), 1e300]),
    (pa.float32(), [0.5, float("nan")]),
    (pa.string(), ["", "a", "12345678", "123456789", "é" * 40, "x" * 1024, "x" * 1025]),
    (pa.large_binary(), [b"", b"\x00", b"\x00\x00", bytes(range(200)) * 9]),
    (pa.timestamp("us", tz="UTC"), [DAY, DAY + timedelta(microseconds=1)]),
    (pa.date32(), [DAY.date()]),
    (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("-7.00")]),
]


@pytest.mark.parametrize(("kind", "values"), POINTS, ids=[str(kind) for kind, _ in POINTS])
def test_single_members_are_found_where_a_batch_finds_them(kind, values):
    schema = pa.schema([("key", pa.int64()), ("member", kind)])
    table = Table(TableSpec("t", schema, grouped=True), MemoryArrays())
    keys = [pa.array([1, 2] * len(values)), pa.array(np.repeat(np.arange(len(values)), 2))]
    keys[1] = pa.array(values, type=kind).take(keys[1])
    own = hash_keys(keys[:1])
    slots, _ = table.upsert(extend_hashes(own, keys[1:]), keys, own)
    table.remove(slots[-1:])
    points = Points(table)
    ann, bob = points.groups(own[:2], [keys[0][:2]]).tolist()
    found = [points.find(ann, int(own[0]), value) for value in values]
    assert found == slots[::2].tolist()
    assert [points.find(bob, int(own[1]), v) for v in values] == [*slots[1:-1:2].tolist(), -1]
    assert points.find(bob, int(own[0]), values[0]) == -1


def test_single_members_with_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(Points, "_extend", lambda *_: 77)
    schema = pa.schema([("key", pa.int64()), ("member", pa.string())])
    table = Table(TableSpec("t", schema, grouped=True), MemoryArrays())
    same = np.full(30, 77, np.uint64)
    keys = [pa.array(list(range(3)) * 10), pa.array([f"m{n // 3}" for n in range(30)])]
    slots, _ = table.upsert(same, keys, same)
    points = Points(table)
    numbers = points.groups(same[:3], [keys[0][:3]]).tolist()
    found = [points.find(numbers[n % 3], 77, f"m{n // 3}") for n in range(30)]
    assert found == slots.tolist()
