"""State against a dictionary: random changes, commits, restores and drops."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState, TableSpec, ValueSpec
from headrace.errors import CheckpointDamaged, EngineError
from headrace.keys import hash_keys
from tests.examples import examples

SPEC = TableSpec(
    "totals",
    pa.schema([("user", pa.string()), ("item", pa.int32())]),
    (
        ValueSpec("count", pa.int64(), 0),
        ValueSpec("note", pa.string()),
        ValueSpec("seen", pa.list_(pa.int64())),
    ),
)
EVERYTHING = range(128)

keys = st.tuples(st.sampled_from(["ann", "bob", "", "é" * 9, None]), st.integers(-3, 3) | st.none())
values = st.tuples(
    st.integers(-9, 9),
    st.none() | st.text(max_size=3),
    st.none() | st.lists(st.none() | st.integers(0, 5), max_size=3),
)
steps = st.one_of(
    st.tuples(
        st.just("put"), st.integers(0, 3), st.dictionaries(keys, values, min_size=1, max_size=9)
    ),
    st.tuples(st.just("remove"), st.integers(0, 3), st.lists(keys, unique=True, max_size=5)),
    st.tuples(st.just("drop"), st.integers(0, 3)),
    st.tuples(st.just("commit")),
    st.tuples(st.just("lose replica")),
    st.tuples(st.just("crash")),
)


def columns(rows):
    return [
        pa.array([key[i] for key in rows], type=field.type) for i, field in enumerate(SPEC.keys)
    ]


def contents(state):
    found = {}
    for bucket in state.buckets("totals"):
        table = state.table("totals", bucket)
        slots = table.live()
        held = [column.to_pylist() for column in table.keys(slots)]
        held += [table.arrow(value.name, slots).to_pylist() for value in SPEC.values]
        assert len(slots) == table.size
        for user, item, *kept in zip(*held, strict=True):
            found[bucket, (user, item)] = tuple(kept)
    return found


def put(table, rows):
    keys = columns(list(rows))
    slots, _ = table.upsert(hash_keys(keys), keys)
    count, note, seen = zip(*rows.values(), strict=True)
    table.put("count", slots, np.array(count))
    table.put("note", slots, pa.array(note, type=pa.string()))
    table.put("seen", slots, pa.array(seen, type=pa.list_(pa.int64())))


def opened(store, arrays):
    state = ShardState([SPEC], store, arrays, EVERYTHING)
    state.open()
    return state


@examples(80)
@given(st.lists(steps, max_size=25))
def test_state_equals_a_dictionary_through_commits_crashes_and_restores(script):
    store, arrays, horizon = MemoryChunkStore(), MemoryArrays(), 0
    state, model, durable = opened(store, arrays), {}, ({}, 0)
    for step in script:
        match step:
            case ("put", bucket, rows) if bucket >= horizon:
                put(state.table("totals", bucket), rows)
                model |= {(bucket, key): tuple(row) for key, row in rows.items()}
            case ("remove", bucket, gone) if bucket >= horizon and gone:
                table = state.table("totals", bucket)
                found = table.find(hash_keys(columns(gone)), columns(gone))
                assert [(bucket, key) in model for key in gone] == (found >= 0).tolist()
                table.remove(found[found >= 0])
                model = {k: v for k, v in model.items() if k[0] != bucket or k[1] not in gone}
            case ("drop", bucket) if bucket > horizon:
                horizon = bucket
                state.drop_before("totals", bucket)
                model = {k: v for k, v in model.items() if k[0] >= bucket}
            case ("commit",):
                assert state.commit() == state.stamp
                durable = (dict(model), horizon)
                state = opened(store, arrays)
            case ("lose replica",):
                arrays, (model, horizon) = MemoryArrays(), (dict(durable[0]), durable[1])
                state = opened(store, arrays)
            case ("crash",):
                model, horizon = dict(durable[0]), durable[1]
                state = opened(store, arrays)
        assert contents(state) == model


def test_a_new_key_starts_with_initial_values():
    table = opened(MemoryChunkStore(), MemoryArrays()).table("totals", 0)
    rows = columns([("ann", 1), ("bob", 2)])
    slots, is_new = table.upsert(hash_keys(rows), rows)
    assert is_new.tolist() == [True, True]
    assert table.get("count", slots).tolist() == [0, 0]
    assert table.get("note", slots).to_pylist() == [None, None]
    assert table.upsert(hash_keys(rows), rows)[1].tolist() == [False, False]


def test_a_removed_key_comes_back_with_initial_values():
    table = opened(MemoryChunkStore(), MemoryArrays()).table("totals", 0)
    put(table, {("ann", 1): (5, "x", [1])})
    table.remove(table.live())
    rows = columns([("ann", 1)])
    slots, is_new = table.upsert(hash_keys(rows), rows)
    assert is_new.tolist() == [True]
    assert table.get("count", slots).tolist() == [0]
    assert table.get("seen", slots).to_pylist() == [None]


def test_a_commit_without_changes_keeps_the_stamp_and_writes_nothing():
    store, arrays = MemoryChunkStore(), MemoryArrays()
    state = opened(store, arrays)
    put(state.table("totals", 0), {("ann", 1): (5, "x", [1])})
    stamp, chunks = state.commit(), dict(store.chunks)
    again = opened(store, arrays)
    assert again.commit() == stamp
    assert again.previous == stamp
    assert store.chunks == chunks


def test_a_replica_catches_up_with_each_commit_of_another_host():
    store, here, elsewhere = MemoryChunkStore(), MemoryArrays(), MemoryArrays()
    for number, arrays in enumerate([here, elsewhere, elsewhere, elsewhere]):
        state = opened(store, arrays)
        put(state.table("totals", 0), {("ann", number): (number, None, None)})
        state.commit()
    assert sorted(count for count, _, _ in contents(opened(store, here)).values()) == [0, 1, 2, 3]


def test_a_dropped_bucket_cannot_be_written_again():
    state = opened(MemoryChunkStore(), MemoryArrays())
    state.drop_before("totals", 10)
    with pytest.raises(EngineError, match="before its horizon 10"):
        state.table("totals", 9)


def test_chunks_behind_the_horizon_are_deleted():
    store = MemoryChunkStore()
    state = opened(store, MemoryArrays())
    put(state.table("totals", 0), {("ann", 1): (5, "x", [1])})
    state.commit()
    state.drop_before("totals", 1)
    state.commit()
    assert store.chunks == {}


def test_a_flipped_bit_in_a_chunk_is_noticed():
    store = MemoryChunkStore()
    state = opened(store, MemoryArrays())
    put(state.table("totals", 0), {("ann", 1): (5, "x", [1])})
    state.commit()
    content = bytearray(store.chunks[1])
    content[-20] ^= 1
    store.chunks[1] = bytes(content)
    with pytest.raises(CheckpointDamaged, match="chunk 1 "):
        opened(store, MemoryArrays())


def test_a_missing_chunk_is_noticed():
    store = MemoryChunkStore()
    state = opened(store, MemoryArrays())
    put(state.table("totals", 0), {("ann", 1): (5, "x", [1])})
    state.commit()
    store.chunks.clear()
    with pytest.raises(CheckpointDamaged, match="missing"):
        opened(store, MemoryArrays())


def test_a_damaged_manifest_is_noticed():
    store = MemoryChunkStore()
    state = opened(store, MemoryArrays())
    put(state.table("totals", 0), {("ann", 1): (5, "x", [1])})
    state.commit()
    store.manifest_bytes = store.manifest_bytes[:-3] + b"0}]"
    with pytest.raises(CheckpointDamaged, match="manifest"):
        opened(store, MemoryArrays())
