"""Grouped tables against a dictionary of dictionaries, and what many or few members cost."""

import time
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.state import (
    MemoryArrays,
    MemoryChunkStore,
    ShardState,
    Table,
    TableSpec,
    ValueSpec,
    compaction,
    table,
)
from headrace._runtime.state.replica import open_replica
from headrace._runtime.state.rescale import rescale
from headrace.keys import extend_hashes, groups_of, hash_keys, key_groups, shards_of
from tests.examples import examples

SPEC = TableSpec(
    "entries",
    pa.schema([("user", pa.string()), ("item", pa.int64()), ("member", pa.string())]),
    (ValueSpec("count", pa.int64(), 0),),
    grouped=True,
)
NUMBERS = TableSpec(
    "numbers", pa.schema([("key", pa.int64()), ("member", pa.int64())]), grouped=True
)

groups = st.tuples(st.sampled_from(["ann", "bob", "", None]), st.integers(0, 2) | st.none())
members = st.text("abcdefgh", min_size=1, max_size=2) | st.none()
entries = st.tuples(groups, members)
steps = st.one_of(
    st.tuples(st.just("put"), st.dictionaries(entries, st.integers(0, 9), min_size=1, max_size=40)),
    st.tuples(st.just("remove"), st.lists(entries, unique=True, max_size=20)),
    st.tuples(st.just("remove all of"), groups),
    st.tuples(st.just("commit")),
    st.tuples(st.just("lose replica")),
    st.tuples(st.just("rescale"), st.integers(1, 3)),
)


class Shards:
    """Grouped state on several shards, and the dictionary that it must equal."""

    def __init__(self):
        self.stores, self.arrays = [MemoryChunkStore()], [MemoryArrays()]
        self.model = {}
        self.open()

    def open(self):
        count = len(self.stores)
        self.states = [
            ShardState([SPEC], store, arrays, groups_of(shard, count))
            for shard, (store, arrays) in enumerate(zip(self.stores, self.arrays, strict=True))
        ]
        for state in self.states:
            state.open()

    def commit(self):
        for state in self.states:
            state.commit()
        self.open()

    def rescale(self, count):
        self.commit()
        new = [MemoryChunkStore() for _ in range(count)]
        rescale(self.stores, [SPEC], new)
        self.stores, self.arrays = new, [MemoryArrays() for _ in range(count)]
        self.open()

    def lose_replica(self):
        self.commit()
        self.arrays = [MemoryArrays() for _ in self.stores]
        self.open()

    def put(self, rows):
        for shard, part in self._by_shard(list(rows)):
            keys, own, hashes = columns(part)
            slots, _ = shard.upsert(hashes, keys, own)
            shard.put("count", slots, np.array([rows[entry] for entry in part]))
        for (group, member), count in rows.items():
            self.model.setdefault(group, {})[member] = count

    def remove(self, gone):
        for shard, part in self._by_shard(gone):
            keys, _, hashes = columns(part)
            slots = shard.find(hashes, keys)
            shard.remove(slots[slots >= 0])
        for group, member in gone:
            self.model.get(group, {}).pop(member, None)

    def read(self, wanted):
        """The members of these groups, with their counts."""
        found = {}
        for shard, part in self._by_shard([(group, None) for group in wanted]):
            keys, own, _ = columns(part)
            slots, counts = shard.members(own, keys[:-1])
            *_, names = (column.to_pylist() for column in shard.keys(slots))
            pairs = list(zip(names, shard.get("count", slots).tolist(), strict=True))
            ends = np.cumsum(counts).tolist()
            for (group, _), count, end in zip(part, counts.tolist(), ends, strict=True):
                assert len(dict(pairs[end - count : end])) == count
                found[group] = dict(pairs[end - count : end])
        return found

    def _by_shard(self, rows):
        if not rows:
            return []
        _, own, _ = columns(rows)
        owners = shards_of(key_groups(own), len(self.stores)).tolist()
        return [
            (self.states[shard].table("entries", 0), [r for r, o in zip(rows, owners, strict=True) if o == shard])
            for shard in sorted(set(owners))
        ]  # fmt: skip


def columns(rows):
    """Key columns, hashes of groups, hashes of rows."""
    kinds = [field.type for field in SPEC.keys]
    flat = zip(*((*group, member) for group, member in rows), strict=True)
    keys = [pa.array(values, type=kind) for values, kind in zip(flat, kinds, strict=True)]
    own = hash_keys(keys[:-1])
    return keys, own, extend_hashes(own, keys[-1:])


@pytest.fixture
def eager(monkeypatch):
    """Renumbering and compaction that begin at once."""
    monkeypatch.setattr(table, "_FIRST_SLOTS", 4)
    monkeypatch.setattr(compaction, "_FEW_ROWS", 5)
    monkeypatch.setattr(compaction, "_FAN_IN", 4)
    monkeypatch.setattr(compaction, "_GARBAGE", 2)


@examples(40)
@given(st.lists(steps, max_size=25), st.lists(groups, unique=True))
def test_members_equal_a_dictionary_through_commits_restores_and_rescaling(eager, script, some):
    shards = Shards()
    for step in script:
        match step:
            case ("put", rows):
                shards.put(rows)
            case ("remove", gone):
                shards.remove(gone)
            case ("remove all of", group):
                shards.remove([(group, member) for member in shards.model.get(group, {})])
            case ("commit",):
                shards.commit()
            case ("lose replica",):
                shards.lose_replica()
            case ("rescale", count):
                shards.rescale(count)
        wanted = dict.fromkeys([*some, *shards.model])
        assert shards.read(wanted) == {group: shards.model.get(group, {}) for group in wanted}


def numbers_table():
    return Table(NUMBERS, MemoryArrays())


def add(table, keys, members, hashes=None):
    arrays = [pa.array(np.asarray(c, dtype=np.int64)) for c in (keys, members)]
    own = hash_keys(arrays[:1]) if hashes is None else hashes
    return table.upsert(extend_hashes(own, arrays[1:]), arrays, own)[0]


def read(table, keys, hashes=None, **options):
    arrays = [pa.array(np.asarray(keys, dtype=np.int64))]
    own = hash_keys(arrays) if hashes is None else hashes
    slots, counts = table.members(own, arrays, **options)
    found = iter(table.keys(slots)[1].to_pylist())
    return [sorted(next(found) for _ in range(count)) for count in counts.tolist()], counts.tolist()


def test_groups_with_one_hash_are_told_apart():
    table, same = numbers_table(), np.full(60, 77, dtype=np.uint64)
    add(table, np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20), same)
    gone = add(table, [4, 4, 4], [0, 1, 2], same[:3])
    table.remove(gone)
    add(table, [5, 20], [3, 3], same[:2])
    found, _ = read(table, [3, 4, 5, 20, 21], same[:5])
    assert found == [[0, 1, 2], [], [0, 1, 2, 3], [3], []]


def test_runs_tell_the_members_of_rows_that_share_groups(monkeypatch):
    monkeypatch.setattr(table, "_PROBE_ROWS", 2)
    kept = Table(NUMBERS, MemoryArrays())
    keys = pa.array([7, 8, 7, 9, 7])
    members = pa.array([0, 1, 2, 3, 4])
    hashes = hash_keys([keys])
    slots, _ = kept.upsert(extend_hashes(hashes, [members]), [keys, members], hashes)
    asked = pa.array([7, 5, 9, 7, 7])
    starts, counts = kept.runs(hash_keys([asked]), [asked])
    assert counts.tolist() == [3, 0, 1, 3, 3]
    for key, start, count in zip(asked.to_pylist(), starts, counts, strict=True):
        found = kept.slots_at(np.arange(start, start + count))
        right = [slot for slot, other in zip(slots, keys.to_pylist(), strict=True) if other == key]
        assert sorted(found.tolist()) == sorted(right)


def test_members_of_large_groups_are_counted_and_not_read():
    table = numbers_table()
    add(table, [1] * 5 + [2] * 50 + [3] * 2, [*range(5), *range(50), *range(2)])
    arrays = [pa.array([1, 2, 3, 4])]
    slots, counts = table.members(hash_keys(arrays), arrays, at_most=5)
    assert counts.tolist() == [5, 50, 2, 0]
    assert table.keys(slots)[0].to_pylist() == [1] * 5 + [3] * 2


def test_members_survive_growth_and_every_size_of_run():
    table, model, chance = numbers_table(), {}, np.random.default_rng(8)
    for number in range(60):
        keys = (chance.integers(0, 40, 300) ** 2) // 40
        rows = sorted(set(zip(keys.tolist(), chance.integers(0, 90, 300).tolist(), strict=True)))
        slots = add(table, *zip(*rows, strict=True))
        for key, member in rows:
            model.setdefault(key, set()).add(member)
        if number % 3:
            gone = slots[:: number % 5 + 1]
            for key, member in zip(*(c.to_pylist() for c in table.keys(gone)), strict=True):
                model[key].discard(member)
            table.remove(gone)
        found, _ = read(table, range(45))
        assert found == [sorted(model.get(key, ())) for key in range(45)]


def test_an_empty_group_is_found_again_or_made_anew_when_texts_were_compacted():
    spec = TableSpec("t", pa.schema([("key", pa.string()), ("member", pa.int64())]), grouped=True)
    table = Table(spec, MemoryArrays())
    names = [pa.array([f"user {n}" for n in range(9_000)]), pa.array([0] * 9_000)]
    own = hash_keys(names[:1])
    hashes = extend_hashes(own, names[1:])
    slots, _ = table.upsert(hashes, names, own)
    table.remove(slots[:4_400])
    table.tidy()
    assert table.members(own, names[:1])[1].tolist() == [0] * 4_400 + [1] * 4_600
    table.upsert(hashes, names, own)
    table.tidy()
    assert table.members(own, names[:1])[1].tolist() == [1] * 9_000


def test_a_table_opens_from_its_blocks():
    arrays = MemoryArrays()
    table = Table(NUMBERS, arrays)
    add(table, [1, 1, 2], [7, 8, 9])
    again = Table(NUMBERS, arrays, table.blocks)
    assert read(again, [2, 1])[0] == [[9], [7, 8]]


class Unread(MemoryChunkStore):
    """A log that nobody reads: the replica is whole."""

    def chunk(self, number):
        raise AssertionError(number)


def test_groups_lie_in_the_mapped_files_of_a_replica(tmp_path):
    store = Unread()
    for number in range(4):
        arrays = open_replica(
            tmp_path / "replicas", "one", operator="t", shard=0, wait=timedelta(0)
        )
        state = ShardState([NUMBERS], store, arrays, range(128))
        state.open()
        add(
            state.table("numbers", 0),
            np.arange(700) % 7,
            np.full(700, number * 1_000) + np.arange(700),
        )
        state.commit()
        found, counts = read(state.table("numbers", 0), [6, 9])
        assert counts == [100 * (number + 1), 0]
        assert found[0][:2] == [6, 13]
        arrays.close()


def test_a_group_of_many_members_is_read_and_left_in_few_steps():
    table, many = numbers_table(), 200_000
    add(table, np.arange(1_000), np.zeros(1_000))
    slots = add(table, np.full(many, 5), np.arange(many) + 1)
    began = time.perf_counter()
    for _ in range(50):
        found = read_counts(table, [4, 5, 6])
        assert found == [1, many + 1, 1]
    reading = (time.perf_counter() - began) / 50
    began = time.perf_counter()
    for slot in slots[:100]:
        table.remove(np.array([slot]))
        add(table, [5], [-1])
    leaving = (time.perf_counter() - began) / 100
    assert read_counts(table, [5]) == [many + 1 - 100 + 1]
    # Two numpy passes over the members, and nothing that depends on them: generous on a busy machine.
    assert reading < 0.05
    assert leaving < 0.02


def read_counts(table, keys):
    arrays = [pa.array(keys)]
    slots, counts = table.members(hash_keys(arrays), arrays)
    assert len(slots) == counts.sum()
    return counts.tolist()


def test_runs_left_behind_are_given_back():
    arrays = MemoryArrays()
    table, sizes = Table(NUMBERS, arrays), []
    add(table, np.repeat(np.arange(20_000), 5), np.tile(np.arange(5), 20_000))
    for turn in range(60):
        slots = add(
            table, np.tile(np.arange(10_000), 4), np.repeat(np.arange(4), 10_000) + 5 + turn
        )
        table.remove(slots)
        table.tidy()
        sizes.append(sum(arrays.open(name).size for name in table.blocks))
    assert max(sizes[20:]) <= max(sizes[:20]) < 16_000_000
    assert read(table, [3, 15_000])[0] == [[0, 1, 2, 3, 4]] * 2
