"""Map state against dictionaries: any operations, any keys, small and large, through restores and undoing."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.process.states import entries
from headrace._runtime.process.states.maps import MapHandle, Maps
from headrace.errors import BuildError, UserCodeError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.examples import examples
from tests.runtime.process.grouped_states import Doing, Undoing, expected, kept_rows, node_of, run

NAN = float("nan")
ACTS: dict[str, Any] = {
    "get": lambda m, key, *default: m.get(key, *default),
    "put": lambda m, key, value: m.put(key, value),
    "put_all": lambda m, *pairs: m.put_all(dict(pairs)),
    "remove": lambda m, key: m.remove(key),
    "contains": lambda m, key: (m.contains(key), key in m),
    "keys": lambda m: (m.keys(), list(m)),
    "values": lambda m: m.values(),
    "items": lambda m: m.items(),
    "len": lambda m: (len(m), m.is_empty()),
    "clear": lambda m: m.clear(),
    "at": lambda m, key: m[key],
    "set": operator.setitem,
    "drop": operator.delitem,
}


class Plain:
    """A map as it should be: a dictionary by the key as it is stored, shown in order."""

    def __init__(self) -> None:
        self._entries: dict[Any, Any] = {}

    def get(self, key, default=None):
        return self._entries.get(_plain(key), default)

    def put(self, key, value):
        self._entries[_plain(key)] = value

    def put_all(self, entries):
        for key, value in entries.items():
            self.put(key, value)

    def remove(self, key):
        self._entries.pop(_plain(key), None)

    def contains(self, key):
        return _plain(key) in self._entries

    def keys(self):
        return sorted(self._entries, key=lambda k: (k != k, k))

    def values(self):
        return [self._entries[key] for key in self.keys()]

    def items(self):
        return [(key, self._entries[key]) for key in self.keys()]

    def is_empty(self):
        return not self._entries

    def clear(self):
        self._entries = {}

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        if not self.contains(key):
            raise KeyError(key)
        return self.get(key)

    def __delitem__(self, key):
        if not self.contains(key):
            raise KeyError(key)
        self.remove(key)

    __setitem__, __contains__ = put, contains


def _plain(key):
    if isinstance(key, float):
        return NAN if math.isnan(key) else key + 0.0
    return key


class Texts(Doing):
    acts = ACTS
    state: hr.state.Map[str, int] = hr.state.FOREVER


class Numbers(Doing):
    acts = ACTS
    state: hr.state.Map[int, str] = hr.state.FOREVER


class Floats(Doing):
    acts = ACTS
    state: hr.state.Map[float, int | None] = hr.state.FOREVER


KINDS = {
    Texts: (st.sampled_from(["a", "b", "", "é" * 9, "f" * 20, "g"]), st.integers(0, 9)),
    Numbers: (st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 7]), st.text("xy", max_size=2)),
    Floats: (st.sampled_from([0.0, -0.0, NAN, 1.5, math.inf]), st.none() | st.integers(0, 9)),
}


def operations(keys: st.SearchStrategy[Any], values: st.SearchStrategy[Any]) -> Any:
    reads = [st.tuples(st.just(name), keys) for name in ("get", "contains", "at")]
    wholes = [st.tuples(st.just(name)) for name in ("keys", "values", "items", "len", "clear")]
    writes = [st.tuples(st.just(name), keys, values) for name in ("put", "set", "put", "get")]
    gone = [st.tuples(st.just(name), keys) for name in ("remove", "drop")]
    many = st.lists(st.tuples(keys, values), max_size=3).map(lambda pairs: ("put_all", *pairs))
    return st.lists(st.one_of(*reads, *wholes, *writes, *gone, many), max_size=6)


def streams(kind: type) -> Any:
    rows = st.tuples(st.sampled_from(["ann", "bob", "cid"]), operations(*KINDS[kind]))
    return st.lists(st.lists(rows, max_size=8), min_size=1, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("small", "single"), [(64, 32), (2, 1), (0, 0)])
@examples(10)
@given(stuff=st.data())
def test_maps_are_dictionaries_through_restores(kind, small, single, stuff, monkeypatch):
    monkeypatch.setattr(entries, "SMALL", small)
    monkeypatch.setattr(entries, "_SINGLE", single)
    epochs = stuff.draw(streams(kind))
    restores = stuff.draw(
        st.dictionaries(st.integers(0, len(epochs) - 1), st.integers(1, 4), max_size=2)
    )
    found = run(node_of(kind()), epochs, shards=2, restores=restores)
    assert found == expected(ACTS, Plain, epochs)


@pytest.mark.parametrize(("small", "single"), [(64, 32), (1, 0), (1, 1)])
@examples(10)
@given(epochs=streams(Texts), failing=st.sets(st.integers(0, 39)))
def test_what_was_undone_is_as_if_it_had_not_been(small, single, epochs, failing, monkeypatch):
    monkeypatch.setattr(entries, "SMALL", small)
    monkeypatch.setattr(entries, "_SINGLE", single)
    undoing = Undoing(Texts(), MapHandle, Maps)
    assert undoing.run(epochs, failing) == undoing.expected(Plain, epochs, failing)


def test_a_large_map_is_neither_read_for_an_entry_nor_for_its_size(monkeypatch):
    many = [["put_all", *([f"k{i}", i] for i in range(5_000))]]
    node = node_of(Texts())
    steps = [many, [["get", "k7"], ["put", "k7", 1], ["put", "new", 2], ["remove", "k9"], ["len"]]]
    read = []
    original = entries.Grouped.objects
    monkeypatch.setattr(
        entries.Grouped,
        "objects",
        lambda self, slots: read.append(len(slots)) or original(self, slots),
    )
    assert run(node, [[("ann", ops)] for ops in steps])[-1][1] == repr(
        [7, None, None, None, (5_000, False)]
    )
    assert sum(read) == 1


def test_large_maps_are_read_when_enough_of_them_was_asked_for(monkeypatch):
    fill = [
        (key, [["put_all", *([f"k{i}", i] for i in range(100))]]) for key in ("ann", "bob", "cid")
    ]
    read = []
    original = entries.Grouped.objects
    monkeypatch.setattr(
        entries.Grouped,
        "objects",
        lambda self, slots: read.append(len(slots)) or original(self, slots),
    )
    asked = [
        (key, [["get", f"k{i}"], ["put", f"k{i}", -i]])
        for i in range(0, 90, 7)
        for key in ("ann", "bob")
    ]
    looks = [("ann", [["items"]]), ("bob", [["len"]]), ("cid", [["get", "k5"]])]
    epochs = [fill, [*asked, *looks], looks]
    assert run(node_of(Texts()), epochs) == expected(ACTS, Plain, epochs)
    singles = [size for size in read if size == 1]
    assert 300 in read
    assert len(singles) < 12


def test_entries_leave_the_table_when_a_map_is_emptied():
    harness = StepHarness(node_of(Texts()))
    fill = '[["put_all", ["a", 1], ["b", 2], ["c", 3]]]'
    for number, ops in enumerate([fill, '[["clear"], ["put", "b", 5]]', '[["remove", "b"]]']):
        row = (number + 1, {"key": "ann", "n": 0, "ops": ops})
        harness.epoch(StepEpoch(number, number + 1, [row]))
        assert kept_rows(harness, "map:state") == [3, 1, 0][number]


class Odd(hr.KeyedProcessFunction):
    """Does one thing to one of several maps."""

    texts: hr.state.Map[str, int] = hr.state.FOREVER
    numbers: hr.state.Map[int, int] = hr.state.FOREVER
    days: hr.state.Map[datetime, Decimal] = hr.state.FOREVER

    def __init__(self, act):
        self.act = act

    def process_element(self, value, ctx):
        self.act(self)
        yield {"key": ctx.key, "n": value.n, "said": ""}


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (lambda f: f.texts.put(None, 1), "no entry for None"),
        (lambda f: f.texts.get(None), "no entry for None"),
        (lambda f: f.texts.put("a", None), "does not take None: remove"),
        (lambda f: f.texts.put("a", "x"), "must be int64"),
        (lambda f: f.texts.put(5, 1), "must be string"),
        (lambda f: f.numbers.put(2**63, 1), "must be int64"),
        (lambda f: f.numbers.put("a", 1), "must be int64"),
        (lambda f: f.numbers.put(1.5, 1), "must be int64, but it is 1.5"),
        (lambda f: f.numbers.put(1, 1.5), "must be int64, but it is 1.5"),
        (lambda f: f.days.put(datetime(2025, 1, 1), Decimal(1)), "naive"),
    ],
)
def test_what_does_not_fit_is_refused_on_the_line_that_puts_it(act, complaint):
    with pytest.raises(UserCodeError, match=complaint):
        run(node_of(Odd(act)), [[("ann", [])]])


def test_a_missing_entry_is_a_key_error():
    with pytest.raises(UserCodeError, match="KeyError: 'x'"):
        run(node_of(Odd(lambda f: f.texts["x"])), [[("ann", [])]])


@dataclass
class Visit:
    pages: list[str]
    took: float | None = None


class Version:
    """A type that Arrow does not know."""

    def __init__(self, text: str) -> None:
        self.parts = tuple(map(int, text.split(".")))

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


CODEC = hr.state.Codec(storage=str, encode=str, decode=Version)


class Objects(Doing):
    acts: ClassVar[dict[str, Any]] = {
        "add": lambda f, key: f.visits.put(key, Visit([f"page {key}"], 1.5)),
        "change": lambda f, key: f.visits.get(key).pages.append("unseen"),
        "see": lambda f: f.visits.items(),
        "day": lambda f, n: f.days.put(DAY + timedelta(days=n), Decimal(n) / 4),
        "days": lambda f: f.days.items(),
        "version": lambda f, v: f.versions.put(Version(v), Version(v + ".0")),
        "versions": lambda f: [(str(k), str(v)) for k, v in f.versions.items()],
    }
    visits: hr.state.Map[int, Visit] = hr.state.FOREVER
    days: hr.state.Map[datetime, Decimal] = hr.state.FOREVER
    versions: hr.state.Map[Annotated[Version, CODEC], Annotated[Version, CODEC]] = hr.state.FOREVER

    @property
    def state(self):
        return self


DAY = datetime(2025, 1, 1, tzinfo=UTC)


def test_objects_come_back_as_they_were_declared_before_a_restart_and_after_it():
    first = [["add", 2], ["add", 1], ["change", 1], ["day", 3], ["day", 1], ["version", "1.10"]]
    looks = [["see"], ["days"], ["versions"]]
    found = run(node_of(Objects()), [[("a", [*first, *looks])], [("a", looks)]], restores={1: 3})
    visits = [(1, Visit(["page 1"], 1.5)), (2, Visit(["page 2"], 1.5))]
    (_, before), (_, after) = found
    assert before.endswith(after[1:])
    assert after.startswith(repr([visits])[:-1])
    assert "[('1.10', '1.10.0')]" in after


def test_keys_that_are_not_plain_values_are_refused_when_the_step_is_built():
    class Wrong(hr.KeyedProcessFunction):
        state: hr.state.Map[list[int], int] = hr.state.FOREVER

        def process_element(self, value, ctx):
            yield {}

    with pytest.raises(BuildError, match=r"Wrong.state: the key of an entry must be a plain value"):
        node_of(Wrong())


def test_a_row_that_fails_leaves_the_map_as_it_was():
    programs = ['[["put", "a", 1]]', '[["put", "a", 2], ["clear"], ["fail"]]', '[["items"]]']
    rows = [(1, {"key": "ann", "n": n, "ops": ops}) for n, ops in enumerate(programs)]
    out = StepHarness(node_of(Texts(), on_error="dead_letter")).epoch(StepEpoch(0, 1, rows))
    assert len(out[ERRORS]) == 1
    assert out[MAIN][-1]["said"] == "[[('a', 1)]]"
