"""Entries and items with a time to live, one by one: what is seen of them, and when they leave the table."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._runtime import registry
from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.layout import Layout
from headrace._runtime.process.states import entries, lists
from headrace._runtime.process.states.lists import ListHandle, Lists
from headrace._runtime.process.states.maps import MapHandle, Maps
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.keys import hash_keys
from tests.examples import examples
from tests.oracle.kept import KINDS, Now, expired
from tests.runtime.process import test_lists, test_maps
from tests.runtime.process.grouped_states import Doing, node_of, said

US = timedelta(microseconds=1)
KEYS = ["ann", "bob", "cid"]
NEVER = 1 << 60


class MapOnWrite(Doing):
    acts = test_maps.ACTS
    state: hr.state.Map[str, int] = hr.state.TTL(4 * US)


class MapOnRead(Doing):
    acts = test_maps.ACTS
    state: hr.state.Map[str, int] = hr.state.TTL(4 * US, update="read_and_write")


class MapByClock(Doing):
    acts = test_maps.ACTS
    state: hr.state.Map[str, int] = hr.state.TTL(4 * US, time="processing")


class ListOnWrite(Doing):
    acts = test_lists.ACTS
    state: hr.state.List[str] = hr.state.TTL(4 * US)


class ListOnRead(Doing):
    acts = test_lists.ACTS
    state: hr.state.List[str] = hr.state.TTL(4 * US, update="read_and_write")


class Aging:
    """One state beside the oracle's, without an operator around it."""

    def __init__(self, function: Doing) -> None:
        self.node = node_of(function)
        (self.spec,) = self.node.states
        self._acts = function.acts
        self._cursor = Cursor()
        made: tuple[Any, Any] = (
            (MapHandle, Maps) if self.spec.kind == "map" else (ListHandle, Lists)
        )
        self._handle, self._make = made[0](self.spec, "doing", self._cursor), made[1]
        self._log = MemoryChunkStore()
        self._pieces: dict[str, Any] = {key: {} for key in KEYS}
        #: By code, when to look at a key.
        self._planned: dict[int, int] = {}
        self._now = Now("", 0, 0, 0)
        kind = KINDS[self.spec.kind]
        self._model = kind(self.spec, lambda: self._pieces[self._now.key], lambda: self._now)

    def epoch(self, before: int, now: int, early: Any, rows: Any) -> None:
        """Rows before the tick, what is over goes, rows behind it."""
        state = ShardState(registry.tables(self.node), self._log, MemoryArrays(), range(128))
        state.open()
        touched = Touched(Layout(self.node).keys)
        columns = [pa.array(KEYS)]
        touched.codes(hash_keys(columns), columns)
        store = self._make(self.spec, state, touched, None, "doing")
        store.load(0)
        self._handle.serve(store)
        self._rows(early, before)
        due = [code for code, time in self._planned.items() if time <= now]
        if due:
            nexts = store.expire(self.spec.ttl.time, due, now)
            self._planned |= dict(zip(due, nexts, strict=True))
        self._expire(now)
        self._rows(rows, now)
        aged = sorted(store.aged(self.spec.ttl.time))
        for code, time in zip(aged, store.renew(self.spec.ttl.time, aged, now), strict=True):
            self._planned[code] = min(time or NEVER, self._planned.get(code) or NEVER)
        self._planned = {code: time for code, time in self._planned.items() if 0 < time < NEVER}
        store.write()
        state.commit()
        left = [time for pieces in self._pieces.values() for _, time in pieces.values()]
        assert state.rows(f"{self.spec.kind}:state", 0) == sum(time + 4 > now for time in left)

    def _rows(self, rows: Any, reached: int) -> None:
        for key, by, ops in rows:
            stamp = max(0, reached + by)
            self._now = Now(key, stamp, reached, reached)
            at = self._cursor
            at.code, at.stamp, at.watermark, at.clock = KEYS.index(key), stamp, reached, reached
            program = json.dumps(ops)
            assert said(self._acts, self._handle, program) == said(self._acts, self._model, program)

    def _expire(self, now: int) -> None:
        for pieces in self._pieces.values():
            for slot, (_, time) in list(pieces.items()):
                if expired(self.spec, time, Now("", 0, now, now)):
                    del pieces[slot]


STEPS = {"map": test_maps.operations(st.sampled_from("abcdef"), st.integers(0, 9)),
         "list": test_lists.operations(st.text("ab", max_size=2))}  # fmt: skip


@pytest.mark.parametrize("kind", [MapOnWrite, MapOnRead, MapByClock, ListOnWrite, ListOnRead])
@pytest.mark.parametrize(("small", "single"), [(64, 32), (1, 0), (1, 1)])
@examples(8)
@given(stuff=st.data())
def test_entries_and_items_live_one_by_one(kind, small, single, stuff, monkeypatch):
    monkeypatch.setattr(entries, "SMALL", small)
    monkeypatch.setattr(entries, "_SINGLE", single)
    monkeypatch.setattr(lists, "SMALL", small)
    aging = Aging(kind())
    row = st.tuples(st.sampled_from(KEYS), st.integers(-3, 3), STEPS[aging.spec.kind])
    rows = st.lists(row, max_size=5)
    now = 0
    for by, early, late in stuff.draw(
        st.lists(st.tuples(st.integers(0, 5), rows, rows), min_size=1, max_size=5)
    ):
        aging.epoch(now, now + by, early, late)
        now += by
