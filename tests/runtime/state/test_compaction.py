"""The chunk log stays short, and what it says stays the same."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.state import (
    MemoryArrays,
    MemoryChunkStore,
    ShardState,
    TableSpec,
    ValueSpec,
    compaction,
)
from headrace._runtime.state.log import RANGES, Manifest, range_groups
from headrace._runtime.state.rescale import rescale
from headrace.keys import groups_of, hash_keys, key_groups, shards_of
from tests.examples import examples

SPEC = TableSpec("totals", pa.schema([("item", pa.int64())]), (ValueSpec("count", pa.int64(), 0),))


def opened(store, arrays=None, groups=range(128)):
    state = ShardState([SPEC], store, MemoryArrays() if arrays is None else arrays, groups)
    state.open()
    return state


def write(state, bucket, items, value):
    if len(items):
        keys = [pa.array(np.array(items, dtype=np.int64))]
        slots, _ = state.table("totals", bucket).upsert(hash_keys(keys), keys)
        state.table("totals", bucket).put("count", slots, np.full(len(items), value))


def erase(state, bucket, items):
    if len(items):
        table = state.table("totals", bucket)
        keys = [pa.array(np.array(items, dtype=np.int64))]
        slots = table.find(hash_keys(keys), keys)
        table.remove(slots[slots >= 0])


def contents(state):
    found = {}
    for bucket in state.buckets("totals"):
        table = state.table("totals", bucket)
        slots = table.live()
        items, counts = table.keys(slots)[0].to_pylist(), table.get("count", slots).tolist()
        found |= {(bucket, item): count for item, count in zip(items, counts, strict=True)}
    return found


def manifest(store):
    return Manifest.from_bytes(store.manifest(), "the test")


def run_history(script, stores, arrays, shards):
    """Apply epochs of (bucket, written, erased, horizon) to all shards; the expected rows."""
    model, horizon = {}, 0
    for number, (bucket, written, erased, new_horizon) in enumerate(script):
        horizon = max(horizon, new_horizon)
        place = max(bucket, horizon)
        for shard, store in enumerate(stores):
            state = opened(store, arrays[shard], groups_of(shard, shards))
            own = [item for item in written if owner(item, shards) == shard]
            write(state, place, own, number)
            erase(state, place, [item for item in erased if owner(item, shards) == shard])
            state.drop_before("totals", horizon)
            state.commit()
        model |= {(place, item): number for item in written}
        model = {
            (b, item): count
            for (b, item), count in model.items()
            if b >= horizon and not (b == place and item in erased)
        }
    return model


def owner(item, shards):
    return int(shards_of(key_groups(hash_keys([pa.array([item])])), shards)[0])


epochs = st.tuples(
    st.integers(0, 4),
    st.lists(st.integers(0, 60), unique=True, max_size=40),
    st.lists(st.integers(0, 60), unique=True, max_size=15),
    st.sampled_from([0, 0, 0, 0, 1, 2, 3]),
)


@pytest.fixture
def eager(monkeypatch):
    """Compaction that begins at once, so that short histories go through all of it."""
    monkeypatch.setattr(compaction, "_FEW_ROWS", 5)
    monkeypatch.setattr(compaction, "_FAN_IN", 4)
    monkeypatch.setattr(compaction, "_GARBAGE", 2)


@examples(60)
@given(st.lists(epochs, min_size=3, max_size=14), st.integers(0, 13))
def test_compaction_changes_nothing_that_is_read(eager, script, lag):
    store, old = MemoryChunkStore(), MemoryArrays()
    lag = min(lag, len(script))
    run_history(script[:lag], [store], [old], 1)
    model = run_history_from(script, store, lag)
    assert contents(opened(store)) == model
    assert contents(opened(store, old)) == model
    assert {entry.chunk for entry in manifest(store).entries} == set(store.chunks)


def run_history_from(script, store, lag):
    """Continue behind `lag` epochs with a fresh replica; the rows of the whole history."""
    model = run_history(script, [MemoryChunkStore()], [MemoryArrays()], 1)
    horizon = max((epoch[3] for epoch in script[:lag]), default=0)
    fresh = MemoryArrays()
    for number, (bucket, written, erased, new_horizon) in enumerate(script[lag:], lag):
        horizon = max(horizon, new_horizon)
        place = max(bucket, horizon)
        state = opened(store, fresh)
        write(state, place, written, number)
        erase(state, place, erased)
        state.drop_before("totals", horizon)
        state.commit()
    return model


@examples(60)
@given(
    st.lists(epochs, min_size=1, max_size=8),
    st.integers(1, 4),
    st.lists(st.integers(1, 5), min_size=1, max_size=2),
)
def test_rescaling_keeps_every_row_in_its_owner(eager, script, shards, path):
    stores = [MemoryChunkStore() for _ in range(shards)]
    model = run_history(script, stores, [MemoryArrays() for _ in range(shards)], shards)
    for count in path:
        new = [MemoryChunkStore() for _ in range(count)]
        rescale(stores, [SPEC], new)
        stores = new
    found = {}
    for shard, store in enumerate(stores):
        held = contents(opened(store, None, groups_of(shard, len(stores))))
        assert {owner(item, len(stores)) for _, item in held} <= {shard}
        assert not found.keys() & held.keys()
        found |= held
    assert found == model


def test_a_stale_replica_learns_of_removals_from_bases_alone(eager):
    store, stale, fresh = MemoryChunkStore(), MemoryArrays(), MemoryArrays()
    state = opened(store, stale)
    write(state, 0, range(100), 1)
    state.commit()
    state = opened(store, fresh)
    erase(state, 0, range(50))
    state.commit()
    erasure = manifest(store).sequence
    for number in range(2, 12):
        state = opened(store, fresh)
        write(state, 0, range(50, 100), number)
        state.commit()
    assert min(manifest(store).bases) > erasure
    assert manifest(store).since(stale.load_header()["stamp"]) is not None
    assert contents(opened(store, stale)) == {(0, item): 11 for item in range(50, 100)}


@pytest.mark.parametrize("shard", range(3))
def test_ranges_are_rewritten_in_turn_and_none_is_skipped(eager, shard, monkeypatch):
    monkeypatch.setattr(compaction, "_FAN_IN", 1_000)
    store, arrays, groups = MemoryChunkStore(), MemoryArrays(), groups_of(shard, 3)
    items = [item for item in range(300) if owner(item, 3) == shard]
    owned = [number for number in range(RANGES) if range_groups(number, groups)]
    rewritten = []
    for number in range(60):
        bases = manifest(store).bases if number else (0,) * RANGES
        state = opened(store, arrays, groups)
        write(state, 0, items[number % 3 :: 3], number)
        state.commit()
        new = [n for n in range(RANGES) if manifest(store).bases[n] != bases[n]]
        rewritten += sorted(new, key=lambda n: manifest(store).bases[n])
    assert len(rewritten) > 2 * RANGES
    turns = [owned[turn % len(owned)] for turn in range(len(rewritten))]
    assert rewritten == turns


def test_merging_small_deltas_keeps_removals(eager):
    store, arrays = MemoryChunkStore(), MemoryArrays()
    state = opened(store, arrays)
    write(state, 0, range(60_000), 1)
    state.commit()
    for number in range(4):
        state = opened(store, arrays)
        erase(state, 0, [number])
        state.commit()
    assert len(store.chunks) == 2
    assert contents(opened(store)) == {(0, item): 1 for item in range(4, 60_000)}


def test_many_small_epochs_leave_few_chunks():
    store, arrays, chance = MemoryChunkStore(), MemoryArrays(), random.Random(3)
    for number in range(300):
        state = opened(store, arrays)
        write(state, 0, chance.sample(range(5_000), 20), number)
        state.commit()
    assert len(store.chunks) < 32
    assert contents(opened(store)) == contents(opened(store, arrays))


def test_the_log_stays_within_a_multiple_of_the_live_rows():
    store, arrays, chance = MemoryChunkStore(), MemoryArrays(), np.random.default_rng(3)
    largest = 0
    for number in range(60):
        state = opened(store, arrays)
        write(state, 0, chance.permutation(50_000)[:20_000], number)
        before = manifest(store).sequence if store.manifest() else 0
        state.commit()
        rewritten = [e for e in manifest(store).entries if e.kind == "base" and e.sequence > before]
        assert sum(entry.rows for entry in rewritten) <= 2 * 20_000
        largest = max(largest, sum(entry.rows for entry in manifest(store).entries))
    assert any(manifest(store).bases)
    assert largest < 8 * 50_000
    assert contents(opened(store)) == contents(opened(store, arrays))


def test_large_commits_are_split_below_the_limit():
    store = MemoryChunkStore()
    state = opened(store)
    write(state, 0, np.arange(1_200_000), 1)
    state.commit()
    assert len(store.chunks) > 1
    assert all(len(content) <= 16 * 2**20 for content in store.chunks.values())
    assert len(contents(opened(store, None, range(64)))) == pytest.approx(600_000, rel=0.01)
