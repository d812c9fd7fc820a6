"""The index by time: keys come up when they should, and its slices are few."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.sessions.due import Due, slice_starts
from headrace._runtime.windows.sessions.layout import AT, DUE, Layout
from headrace._runtime.windows.sessions.store import SessionTable
from headrace.keys import hash_keys
from headrace.watermarks import NO_WATERMARK
from tests.examples import examples

LAYOUT = Layout(pa.schema([("key", pa.int64())]), (), None)
SECOND = 1_000_000
DAY = 86_400 * SECOND


class Index:
    """An index on a state of its own."""

    def __init__(self) -> None:
        self.state = ShardState(LAYOUT.tables, MemoryChunkStore(), MemoryArrays(), range(128))
        self.state.open()
        self.sessions = SessionTable(self.state)
        self.due = Due(self.state, self.sessions)

    def add(self, at: dict[int, int], now: int, step: int) -> None:
        keys = pa.array(list(at), pa.int64())
        zeros = pa.array(np.zeros(len(at), np.int32))
        heads, _ = self.sessions.rows.upsert(hash_keys([keys]), [keys, zeros])
        self.due.add(heads, np.array(list(at.values()), np.int64), now, step)

    def take(self, before: int, now: int) -> list[int]:
        heads = self.due.take(before, now)
        return sorted(self.sessions.keys(heads)[0].to_pylist())

    @property
    def slices(self) -> int:
        return len(self.state.buckets(DUE))


@given(
    st.lists(st.integers(1, 2**62), min_size=1),
    st.integers(-(2**61), 2**61),
    st.integers(0, 2**62),
)
def test_a_slice_begins_behind_now_and_not_behind_its_times(
    distances: list[int], now: int, step: int
) -> None:
    at = now + np.array(distances, np.int64)
    starts = slice_starts(at, now, step)
    assert (starts > now).all()
    assert (starts <= at).all()


steps = st.sampled_from([0, 1, 2, 7, 100, SECOND, DAY])
entries = st.dictionaries(st.integers(0, 20), st.sampled_from([1, 2, 5, 60, 4000, SECOND, 3 * DAY]))


@examples(60)
@given(st.lists(st.tuples(steps, entries), min_size=1, max_size=12))
def test_a_key_comes_up_exactly_when_its_time_has_come(
    epochs: list[tuple[int, dict[int, int]]],
) -> None:
    index, now, waits = Index(), 0, dict[int, int]()
    for step, distances in epochs:
        before, now = now, now + step
        due = sorted(key for key, at in waits.items() if at <= now)
        assert index.take(before, now) == due
        for key in due:
            del waits[key]
        # A key is entered again only for an earlier time, or when it has come up.
        sooner = {
            key: now + distance
            for key, distance in distances.items()
            if now + distance < waits.get(key, 2**63)
        }
        waits |= sooner
        if sooner:
            index.add(sooner, now, step)
        index.state.commit()


def test_slices_are_few_however_far_times_reach() -> None:
    index, random = Index(), np.random.default_rng(0)
    before = now = 0
    most = 0
    for _ in range(300):
        before, now = now, now + SECOND
        heads = index.take(before, now)
        far = (
            random.integers(1, 3 * DAY, 40).tolist() + random.integers(1, 60 * SECOND, 40).tolist()
        )
        keys = [*heads, *random.integers(0, 10**9, 80).tolist()]
        index.add({key: now + time for key, time in zip(keys, far, strict=False)}, now, SECOND)
        most = max(most, index.slices)
    assert 5 < most < 200


def test_slices_are_few_while_there_is_no_time() -> None:
    index = Index()
    for epoch in range(400):
        at = {epoch: DAY + epoch * SECOND}
        index.add(at, NO_WATERMARK + 1, 0)
    assert index.slices < 200
    assert index.take(NO_WATERMARK + 1, DAY + 3 * SECOND) == [0, 1, 2, 3]


def test_a_slice_that_is_reached_long_before_its_times_is_cut_once() -> None:
    index = Index()
    index.add({key: SECOND + key for key in range(100)}, 0, 1)
    (start,) = index.state.buckets(DUE)
    assert index.take(start - 5, start + 5) == []
    assert min(index.state.buckets(DUE)) > start + 5
    assert index.take(start + 5, SECOND) == [0]


def test_an_entry_that_was_overtaken_is_skipped() -> None:
    index = Index()
    index.add({1: 100}, 0, 1)
    index.add({1: 50}, 0, 1)
    assert index.take(0, 60) == [1]
    index.add({1: 5000}, 60, 1)
    assert index.take(60, 200) == []
    assert index.take(200, 5000) == [1]


def test_what_comes_next_is_known() -> None:
    index = Index()
    assert index.due.next(0) is None
    index.add({1: 1000, 2: 1001, 3: 10**9}, 0, 64)
    assert index.due.next(0) == (1000, 2)


def test_the_time_of_a_key_is_kept_with_it() -> None:
    index = Index()
    index.add({1: 100, 2: 70}, 0, 1)
    rows = index.sessions.rows
    assert sorted(rows.get(AT, rows.live()).tolist()) == [70, 100]
