"""Tables of one bucket: exact keys, growth, removal, and what counts as a change."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.state import MemoryArrays, Table, TableSpec, ValueSpec
from headrace.keys import hash_keys

COUNT = (ValueSpec("count", pa.int64(), 0),)


def table_by(*kinds, values=COUNT):
    schema = pa.schema([(f"key{i}", kind) for i, kind in enumerate(kinds)])
    return Table(TableSpec("t", schema, values), MemoryArrays())


def upsert(table, *columns):
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, table.spec.keys, strict=True)]
    return table.upsert(hash_keys(arrays), arrays)


def test_random_batches_find_the_slots_they_made():
    table, chance, known = table_by(pa.int64()), np.random.default_rng(5), {}
    for _ in range(40):
        items = chance.choice(300_000, 5_000, replace=False)
        slots, is_new = upsert(table, items)
        assert is_new.tolist() == [item not in known for item in items.tolist()]
        for item, slot in zip(items.tolist(), slots.tolist(), strict=True):
            assert known.setdefault(item, slot) == slot
    assert table.size == len(known) == len(set(known.values()))
    absent = [pa.array(np.arange(300_000, 301_000))]
    assert (table.find(hash_keys(absent), absent) == -1).all()


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_keys_with_one_hash_are_told_apart(kind):
    table = table_by(kind)
    keys = [pa.array(range(500)).cast(kind)]
    same = np.full(500, 77, dtype=np.uint64)
    first, is_new = table.upsert(same, keys)
    again, is_new_again = table.upsert(same[::2], [keys[0].take(pa.array(range(0, 500, 2)))])
    assert len(set(first.tolist())) == 500
    assert is_new.all()
    assert not is_new_again.any()
    assert again.tolist() == first[::2].tolist()
    other = [pa.array([500]).cast(kind)]
    assert table.find(same[:1], other).tolist() == [-1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int16(), [-5, 0, 9, None]),
        (pa.float64(), [0.0, 1.5, float("inf"), None]),
        (pa.bool_(), [True, False, None]),
        (pa.string(), ["", "a", "ab", None]),
        (pa.large_binary(), [b"", b"\x00", b"\x00\x00", None]),
        (pa.timestamp("ms", tz="UTC"), [datetime(2025, 1, 1, tzinfo=UTC), None]),
        (pa.date32(), [datetime(2025, 1, 1, tzinfo=UTC).date(), None]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), None]),
    ],
    ids=str,
)
def test_every_key_type_comes_back_as_it_went_in(kind, values):
    table = table_by(kind, pa.int64())
    slots, is_new = upsert(table, values, [1] * len(values))
    assert is_new.all()
    assert not upsert(table, values[::-1], [1] * len(values))[1].any()
    assert upsert(table, values[:1], [2])[1].all()
    kept = table.keys(slots)
    assert kept[0].type == kind
    assert kept[0].to_pylist() == values


def test_equal_floats_are_one_key():
    table = table_by(pa.float64())
    slots, _ = upsert(table, [0.0, float("nan")])
    assert upsert(table, [-0.0, -float("nan")])[0].tolist() == slots.tolist()


def test_changes_are_each_slot_once_until_taken():
    table = table_by(pa.int64())
    slots, _ = upsert(table, range(100))
    assert table.take_changes().tolist() == list(range(100))
    assert table.take_changes().tolist() == []
    table.touch(slots[[3, 3, 1]])
    table.put("count", slots[1:3], np.array([5, 6]))
    assert table.take_changes().tolist() == sorted(slots[1:4].tolist())


def test_looking_a_key_up_is_no_change():
    table = table_by(pa.int64())
    upsert(table, range(10))
    table.take_changes()
    upsert(table, range(10))
    assert table.take_changes().tolist() == []


def test_values_survive_growth():
    table = table_by(pa.int64())
    slots, _ = upsert(table, range(100))
    table.put("count", slots, np.arange(100))
    upsert(table, range(100, 100_000))
    assert table.get("count", slots).tolist() == list(range(100))


def test_half_dead_tables_are_renumbered_between_epochs():
    values = (ValueSpec("count", pa.int64(), 0), ValueSpec("note", pa.string()))
    table = table_by(pa.string(), values=values)
    names = [f"user {n}" for n in range(6_000)]
    slots, _ = upsert(table, names)
    table.put("note", slots, pa.array(names))
    table.put("count", slots, np.arange(6_000))
    table.remove(slots[:5_000])
    table.tidy()
    keys = [pa.array(names[5_000:])]
    rest = table.find(hash_keys(keys), keys)
    assert sorted(rest.tolist()) == list(range(1_000))
    assert table.size == 1_000
    assert table.get("note", rest).to_pylist() == names[5_000:]
    assert table.get("count", rest).tolist() == list(range(5_000, 6_000))
    assert upsert(table, names[:1])[1].all()


def test_overwritten_text_does_not_pile_up():
    arrays = MemoryArrays()
    schema, values = pa.schema([("k", pa.int64())]), (ValueSpec("note", pa.string()),)
    table = Table(TableSpec("t", schema, values), arrays)
    slots, _ = upsert(table, range(1_000))
    for number in range(200):
        table.put("note", slots, pa.array([f"{number}" * 20] * 1_000))
        table.tidy()
    assert sum(arrays.open(name).size for name in table.blocks) < 3_000_000
    assert table.get("note", slots[:1]).to_pylist() == ["199" * 20]


def test_a_table_opens_from_its_blocks():
    arrays = MemoryArrays()
    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
    spec = TableSpec("t", schema, (ValueSpec("tags", pa.list_(pa.string())), *COUNT))
    table = Table(spec, arrays)
    slots, _ = upsert(table, ["a", None], [1, None])
    table.put("tags", slots, pa.array([["x", None], None]))
    again = Table(spec, arrays, table.blocks)
    assert [column.to_pylist() for column in again.keys(slots)] == [["a", None], [1, None]]
    assert again.get("tags", slots).to_pylist() == [["x", None], None]
    assert again.size == 2
