"""List state against lists: any operations, short and long, through restores and undoing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._runtime.process.states import lists
from headrace.errors import UserCodeError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.examples import examples
from tests.runtime.process.grouped_states import Doing, Undoing, expected, kept_rows, node_of, run

ACTS: dict[str, Any] = {
    "get": lambda state: state.get(),
    "add": lambda state, value: state.add(value),
    "add_all": lambda state, *values: state.add_all(values),
    "update": lambda state, *values: state.update(values),
    "clear": lambda state: state.clear(),
}


class Plain:
    """A list as it should be."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def get(self):
        return self._items.copy()

    def add(self, value):
        self._items.append(value)

    def add_all(self, values):
        self._items += values

    def update(self, values):
        self._items = list(values)

    def clear(self):
        self._items = []


class Texts(Doing):
    acts = ACTS
    state: hr.state.List[str] = hr.state.FOREVER


class Numbers(Doing):
    acts = ACTS
    state: hr.state.List[int | None] = hr.state.FOREVER


KINDS = {Texts: st.text("ab", max_size=2), Numbers: st.none() | st.integers(-3, 3)}


def operations(values: st.SearchStrategy[Any]) -> Any:
    many = st.lists(values, max_size=4)
    return st.lists(
        st.one_of(
            st.just(("get",)),
            st.tuples(st.just("add"), values),
            many.map(lambda items: ("add_all", *items)),
            many.map(lambda items: ("update", *items)),
            st.just(("clear",)),
        ),
        max_size=4,
    )


def streams(kind: type) -> Any:
    rows = st.tuples(st.sampled_from(["ann", "bob", "cid"]), operations(KINDS[kind]))
    return st.lists(st.lists(rows, max_size=8), min_size=1, max_size=5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("small", [64, 2])
@examples(10)
@given(stuff=st.data())
def test_lists_are_lists_through_restores(kind, small, stuff, monkeypatch):
    monkeypatch.setattr(lists, "SMALL", small)
    epochs = stuff.draw(streams(kind))
    restores = stuff.draw(
        st.dictionaries(st.integers(0, len(epochs) - 1), st.integers(1, 4), max_size=2)
    )
    found = run(node_of(kind()), epochs, shards=2, restores=restores)
    assert found == expected(ACTS, Plain, epochs)


@pytest.mark.parametrize("small", [64, 2])
@examples(10)
@given(epochs=streams(Texts), failing=st.sets(st.integers(0, 39)))
def test_what_was_undone_is_as_if_it_had_not_been(small, epochs, failing, monkeypatch):
    monkeypatch.setattr(lists, "SMALL", small)
    undoing = Undoing(Texts(), lists.ListHandle, lists.Lists)
    assert undoing.run(epochs, failing) == undoing.expected(Plain, epochs, failing)


def test_adding_reads_nothing(monkeypatch):
    read = []
    monkeypatch.setattr(lists.Grouped, "objects", lambda _, slots: read.append(len(slots)))
    rows = [("ann", [["add", "x"]]), ("bob", [["add_all", "y", "z"]])]
    run(node_of(Texts()), [rows] * 3)
    assert read == []


def test_items_leave_the_table_when_a_list_is_emptied():
    harness = StepHarness(node_of(Texts()))
    steps = ['[["add_all", "a", "b", "c"]]', '[["update", "d"]]', '[["clear"]]']
    for number, ops in enumerate(steps):
        row = (number + 1, {"key": "ann", "n": 0, "ops": ops})
        harness.epoch(StepEpoch(number, number + 1, [row]))
        assert kept_rows(harness, "list:state") == [3, 1, 0][number]


@dataclass
class Visit:
    pages: list[str]


class Odd(hr.KeyedProcessFunction):
    """Does one thing to one of several lists."""

    numbers: hr.state.List[int] = hr.state.FOREVER
    visits: hr.state.List[Visit] = hr.state.FOREVER

    def __init__(self, act):
        self.act = act

    def process_element(self, value, ctx):
        yield {"key": ctx.key, "n": value.n, "said": repr(self.act(self))}


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (lambda f: f.numbers.add(None), "does not take None: leave it out"),
        (lambda f: f.numbers.add("x"), "must be int64"),
        (lambda f: f.numbers.add_all([1, 2, "x"]), "must be int64"),
        (lambda f: f.numbers.update([1, 2**63]), "must be int64"),
        (lambda f: f.visits.add({"page": 1}), "pages"),
    ],
)
def test_what_does_not_fit_is_refused_on_the_line_that_adds_it(act, complaint):
    with pytest.raises(UserCodeError, match=complaint):
        run(node_of(Odd(act)), [[("ann", [])]])


def test_objects_are_nobody_elses_to_change():
    def act(function):
        if not function.visits.get():
            visit = Visit(["a"])
            function.visits.add(visit)
            visit.pages.append("unseen")
        function.visits.get()[0].pages.append("unseen")
        function.visits.get().append(Visit([]))
        return function.visits.get()

    found = run(node_of(Odd(act)), [[("ann", [])], [("ann", [])]], restores={1: 2})
    assert [what for _, what in found] == [repr([Visit(["a"])])] * 2


def test_a_long_list_is_read_in_the_order_of_its_items():
    fill = [
        ("ann", [["add_all", *(f"{n}" for n in range(start, start + 700))]]) for start in (0, 700)
    ]
    found = run(node_of(Texts()), [fill[:1], fill[1:], [("ann", [["get"]])]], restores={2: 3})
    assert found[-1][1] == repr([[f"{n}" for n in range(1_400)]])
