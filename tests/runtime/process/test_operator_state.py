"""Items of steps without keys: what shards hold, across crashes and changes of their number, as a model says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.process.spreading import dealt
from headrace.errors import UserCodeError
from headrace.keys import key_groups, shards_of
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from tests.examples import examples
from tests.runtime.process.cases import process_node

ROWS = {"n": int, "do": str}
SAID = {"n": int, "items": list[int]}


class Doing:
    """Does to the items of its shard what the row says, and shows them."""

    def _act(self, value: Any) -> Iterator[Any]:
        items: Any = self.items  # type: ignore[attr-defined]
        if value.do == "add":
            items.add(value.n)
        elif value.do == "replace":
            items.update([value.n, -value.n])
        elif value.do == "clear":
            items.clear()
        yield {"n": value.n, "items": items.get()}


class Listed(Doing, hr.ProcessFunction):
    items: hr.state.OperatorList[int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._act(value)


class United(Doing, hr.ProcessFunction):
    items: hr.state.OperatorUnion[int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._act(value)


class Both(Doing, hr.CoProcessFunction):
    items: hr.state.OperatorList[int]

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._act(value)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self._act(value)


def step(function: Any, **said: Any) -> Any:
    two = isinstance(function, hr.CoProcessFunction)
    inputs = [ROWS, ROWS] if two else [ROWS]
    return process_node(
        function,
        "co" if two else "keyed",
        schema=SAID,
        inputs=inputs,
        keys=[()] * len(inputs),
        **said,
    )


class Model:
    """Lists of numbers, one a shard."""

    def __init__(self, shards: int, *, union: bool) -> None:
        self.lists: list[list[int]] = [[] for _ in range(shards)]
        self.union = union

    def rescale(self, shards: int) -> None:
        if shards != len(self.lists):
            joined = [n for items in self.lists for n in items]
            self.lists = [joined[:] if self.union else joined[i::shards] for i in range(shards)]

    def epoch(self, node: Any, rows: list[SidedRow]) -> list[Any]:
        said = []
        for side in range(len(node.inputs)):
            for row in rows:
                if row.side == side:
                    items = self.lists[self._shard(node, row)]
                    said.append({"n": row.fields["n"], "items": self._act(items, row.fields)})
        return said

    def _shard(self, node: Any, row: SidedRow) -> int:
        (group,) = key_groups(dealt(timed_rows(node.input_schemas[0], [row]), 0))
        return int(shards_of(group[None], len(self.lists))[0])

    def _act(self, items: list[int], fields: Any) -> list[int]:
        n = fields["n"]
        if fields["do"] == "add":
            items.append(n)
        elif fields["do"] == "replace":
            items[:] = [n, -n]
        elif fields["do"] == "clear":
            items.clear()
        return items[:]


@st.composite
def streams(draw: st.DrawFn, sides: int = 1) -> list[StepEpoch]:
    numbers = iter(range(1, 1000))
    verbs = st.sampled_from(["add"] * 5 + ["replace", "clear", "look"])
    epochs = []
    for number in range(draw(st.integers(1, 5))):
        drawn = draw(st.lists(st.tuples(verbs, st.integers(0, sides - 1)), max_size=12))
        rows = [
            SidedRow(0, {"n": n, "do": verb}, side, ("source", "0", n))
            for (verb, side), n in zip(drawn, numbers, strict=False)
        ]
        epochs.append(StepEpoch(number, number + 1, rows))
    return epochs


@pytest.mark.parametrize("function", [Listed(), United(), Both()], ids=["list", "union", "two"])
@examples(15)
@given(data=st.data(), shards=st.integers(1, 4))
def test_items_are_those_of_a_plain_list(function: Any, data: Any, shards: int) -> None:
    node = step(function)
    epochs = data.draw(streams(len(node.inputs)))
    places = st.integers(0, len(epochs) - 1)
    restores = data.draw(st.dictionaries(places, st.integers(1, 4), max_size=2))
    crashes = data.draw(st.lists(places, unique=True))
    found = StepHarness(node, shards).run(epochs, restores=restores, crashes=crashes)[MAIN]
    model, right = Model(shards, union=isinstance(function, United)), []
    for number, epoch in enumerate(epochs):
        model.rescale(restores.get(number, len(model.lists)))
        right += model.epoch(node, epoch.rows)
    assert sorted(found, key=repr) == sorted(right, key=repr)


def test_no_item_is_lost_or_doubled_when_lists_are_dealt_anew() -> None:
    rows = [SidedRow(0, {"n": n, "do": "add"}, 0, ("source", "0", n)) for n in range(40)]
    look = [SidedRow(0, {"n": -1, "do": "look"}, 0, ("source", "1", n)) for n in range(64)]
    stream = [
        StepEpoch(0, 1, rows),
        StepEpoch(1, 2),
        StepEpoch(2, 3),
        StepEpoch(3, 4, look),
    ]
    found = StepHarness(step(Listed()), 2).run(stream, restores={1: 5, 2: 1, 3: 3})[MAIN]
    lists = {tuple(row["items"]) for row in found if row["n"] == -1}
    assert len(lists) == 3
    assert sorted(n for items in lists for n in items) == list(range(40))
    assert max(map(len, lists)) - min(map(len, lists)) <= 1


def test_timers_and_keys_are_refused() -> None:
    class Timed(hr.ProcessFunction):
        items: hr.state.OperatorList[int]

        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timers.register_event_time(ctx.timestamp)

    stream = [StepEpoch(0, 1, [SidedRow(0, {"n": 1, "do": ""}, 0, ("source", "0", 1))])]
    with pytest.raises(UserCodeError, match=r"uses ctx.timers, but its rows have no keys"):
        StepHarness(step(Timed())).run(stream)


def test_a_row_that_fails_leaves_the_items_as_they_were() -> None:
    class Fails(Listed):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield from self._act(value)
            if value.n < 0:
                raise ValueError("below zero")

    rows = [(1, "add"), (-2, "add"), (3, "add"), (-4, "clear"), (-5, "replace"), (6, "look")]
    stream = [
        StepEpoch(0, 1, [SidedRow(0, {"n": n, "do": do}, 0, ("source", "0", abs(n)))])
        for n, do in rows
    ]
    node = step(Fails(), on_error="dead_letter")
    found = StepHarness(node).run(stream)
    assert [(row["n"], row["items"]) for row in found[MAIN]] == [(1, [1]), (3, [1, 3]), (6, [1, 3])]
    assert [row["offset"] for row in found[ERRORS]] == [2, 4, 5]
    together = [StepEpoch(0, 1, [row for epoch in stream for row in epoch.rows])]
    assert StepHarness(node).run(together)[MAIN] == found[MAIN]
