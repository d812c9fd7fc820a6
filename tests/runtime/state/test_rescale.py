"""What shards have as a whole, when their number changes: the same everywhere, dealt out anew, or joined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState, TableSpec, ValueSpec
from headrace._runtime.state.rescale import rescale
from headrace._runtime.state.spec import Spread
from headrace.keys import (
    KEY_GROUPS,
    extend_hashes,
    groups_of,
    hash_keys,
    home_in,
    key_groups,
    shards_of,
)

HOME = pa.field("home", pa.int64())
NAMES = TableSpec(
    "names",
    pa.schema([HOME, pa.field("name", pa.string())]),
    (ValueSpec("n", pa.int64(), 0),),
    grouped=True,
    spread="everywhere",
)
BY_KEY = TableSpec(
    "by key", pa.schema([pa.field("key", pa.int64())]), (ValueSpec("n", pa.int64(), 0),)
)


def items(spread: Spread) -> TableSpec:
    keys = pa.schema([HOME, pa.field("number", pa.int64())])
    return TableSpec("items", keys, (ValueSpec("text", pa.string()),), grouped=True, spread=spread)


class Shards:
    """Tables on so many shards."""

    def __init__(self, specs: list[TableSpec], shards: int) -> None:
        self.specs = specs
        self.stores = [MemoryChunkStore() for _ in range(shards)]

    def open(self, shard: int) -> ShardState:
        groups = groups_of(shard, len(self.stores))
        state = ShardState(self.specs, self.stores[shard], MemoryArrays(), groups)
        state.open()
        return state

    def put(self, shard: int, table: str, members: pa.Array, column: str, found: pa.Array) -> None:
        state = self.open(shard)
        own = hash_keys([self.homes(shard, len(members))])
        keys = [self.homes(shard, len(members)), members]
        slots, _ = state.table(table, 0).upsert(extend_hashes(own, [members]), keys, own)
        state.table(table, 0).put(column, slots, found)
        state.commit()

    def rescale(self, shards: int) -> Shards:
        moved = Shards(self.specs, shards)
        rescale(self.stores, self.specs, moved.stores)
        return moved

    def members(self, shard: int, table: str, column: str) -> dict[object, object]:
        """What a shard finds under its own home, as a running step does."""
        found = self.open(shard).table(table, 0)
        homes = self.homes(shard, 1)
        slots, _ = found.members(hash_keys([homes]), [homes])
        names = found.keys(slots)[-1].to_pylist()
        return dict(zip(names, found.arrow(column, slots).to_pylist(), strict=True))

    def homes(self, shard: int, many: int) -> pa.Array:
        return pa.array(np.full(many, home_in(groups_of(shard, len(self.stores)))))


@pytest.mark.parametrize("counts", [(1, 3), (2, 3), (3, 1), (3, 128)])
def test_every_new_shard_has_all_of_a_table_that_is_everywhere(counts: tuple[int, int]) -> None:
    shards = Shards([BY_KEY, NAMES], counts[0])
    names = pa.array(["a", "b", "c"])
    for shard in range(counts[0]):
        shards.put(shard, "names", names, "n", pa.array([1, 2, 3]))
        shards.put(shard, "names", names.slice(1, 1), "n", pa.array([20]))
    moved = shards.rescale(counts[1])
    for shard in range(counts[1]):
        assert moved.members(shard, "names", "n") == {"a": 1, "b": 20, "c": 3}
        # A chunk says which key groups it holds: those of another shard would not be read.
        assert moved.open(shard).table("names", 0).size == 3


def test_a_table_that_is_everywhere_can_be_changed_afterwards() -> None:
    shards = Shards([NAMES], 2)
    for shard in range(2):
        shards.put(shard, "names", pa.array(["a"]), "n", pa.array([1]))
    moved = shards.rescale(3)
    for shard in range(3):
        moved.put(shard, "names", pa.array(["a", "b"]), "n", pa.array([10, 2]))
    again = moved.rescale(2)
    assert [again.members(shard, "names", "n") for shard in range(2)] == [{"a": 10, "b": 2}] * 2


@pytest.mark.parametrize("counts", [(1, 3), (2, 3), (3, 1), (3, 2)])
def test_items_are_dealt_out_evenly_and_numbered_anew(counts: tuple[int, int]) -> None:
    shards = Shards([items("dealt")], counts[0])
    texts = [f"{shard}.{n}" for shard in range(counts[0]) for n in range(4)]
    for shard in range(counts[0]):
        mine = pa.array([text for text in texts if text.startswith(f"{shard}.")])
        shards.put(shard, "items", pa.array(np.arange(4) * 10), "text", mine)
    moved = shards.rescale(counts[1])
    found = [moved.members(shard, "items", "text") for shard in range(counts[1])]
    assert sorted(text for share in found for text in share.values()) == texts
    assert max(map(len, found)) - min(map(len, found)) <= 1
    for share in found:
        assert sorted(share) == list(range(len(share)))
        in_order = [share[number] for number in sorted(share)]
        assert in_order == sorted(in_order)


def test_a_union_gives_all_items_to_every_shard() -> None:
    shards = Shards([items("union")], 2)
    shards.put(0, "items", pa.array([0, 1]), "text", pa.array(["a", "b"]))
    shards.put(1, "items", pa.array([0]), "text", pa.array(["c"]))
    moved = shards.rescale(3)
    found = [moved.members(shard, "items", "text") for shard in range(3)]
    assert found == [{0: "a", 1: "b", 2: "c"}] * 3


def test_shards_that_never_had_anything_have_nothing_afterwards() -> None:
    for spec in (NAMES, items("dealt"), items("union")):
        moved = Shards([spec], 2).rescale(3)
        assert [moved.open(shard).table(spec.name, 0).size for shard in range(3)] == [0, 0, 0]
    shards = Shards([items("dealt")], 2)
    shards.put(1, "items", pa.array([0]), "text", pa.array(["a"]))
    moved = shards.rescale(3)
    found = [moved.members(shard, "items", "text") for shard in range(3)]
    assert sorted(found, key=len) == [{}, {}, {0: "a"}]


@pytest.mark.parametrize("counts", [(2, 1), (2, 3), (3, 2)])
def test_every_row_stays_even_if_another_shard_has_dropped_its_bucket(
    counts: tuple[int, int],
) -> None:
    shards = Shards([BY_KEY], counts[0])
    keys = np.arange(300)
    owners = shards_of(key_groups(hash_keys([pa.array(keys)])), counts[0])
    for shard in range(counts[0]):
        state, mine = shards.open(shard), pa.array(keys[owners == shard])
        for bucket in range(shard, 4):
            state.table("by key", bucket).upsert(hash_keys([mine]), [mine])
        state.drop_before("by key", shard)
        state.commit()
    moved = shards.rescale(counts[1])
    found = []
    for shard in range(counts[1]):
        state = moved.open(shard)
        for bucket in state.buckets("by key"):
            table = state.table("by key", bucket)
            found += [(key, bucket) for key in table.key(0, table.live()).to_pylist()]
    expected = [(key, bucket) for key in keys for bucket in range(owners[key], 4)]
    assert sorted(found) == expected


def test_every_shard_has_a_home_in_its_own_key_groups() -> None:
    for shards in range(1, KEY_GROUPS + 1):
        for shard in range(shards):
            groups = groups_of(shard, shards)
            (group,) = key_groups(hash_keys([pa.array([home_in(groups)])]))
            assert group in groups
