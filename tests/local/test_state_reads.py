"""Declared state of every kind, read at the end of a run: as a table, and as a function would see it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace._graph.nodes import KeyedProcess
from headrace._runtime.process.reads.query import Query
from headrace._runtime.process.reads.tables import places_of
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError
from headrace.testing import LocalResult, run_local

ROW = {"user": str, "shop": int, "n": int}


@dataclass
class Spot:
    x: int
    label: str


class Mean(hr.AggregateFunction):
    def create_accumulator(self) -> tuple[int, ...]:
        return (0, 0)

    def add(self, value: int, accumulator: tuple[int, ...]) -> tuple[int, ...]:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: tuple[int, ...]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        return (a[0] + b[0], a[1] + b[1])


class Everything(hr.KeyedProcessFunction):
    spot: hr.state.Value[Spot] = hr.state.FOREVER
    odd: hr.state.Value[int] = hr.state.FOREVER
    total: hr.state.Reducing[int] = hr.state.keep(reduce=operator.add, forever=True)
    mean: hr.state.Aggregating[int, float] = hr.state.keep(aggregate=Mean(), forever=True)
    items: hr.state.List[int] = hr.state.FOREVER
    seen: hr.state.Map[int, str] = hr.state.FOREVER
    maybe: hr.state.Map[str, int | None] = hr.state.FOREVER
    brief: hr.state.Map[int, int] = hr.state.TTL(timedelta(hours=1), time="processing")

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        n = value.n
        self.spot.update(Spot(n, value.user))
        if n % 2:
            self.odd.update(n)
        else:
            self.odd.clear()
        self.total.add(n)
        self.mean.add(n)
        self.items.add(n)
        self.seen.put(n % 3, f"n{n}")
        if n > 10:
            self.seen.remove(0)
        self.maybe.put("none" if n % 2 else "some", None if n % 2 else n)
        self.brief.put(n % 2, n)
        yield {"user": value.user, "shop": value.shop, "n": n}


def ran(rows: int = 14, **options: Any) -> LocalResult:
    env = hr.Environment("reads", epochs=hr.Epochs(rows=4))
    made = [{"user": "ab"[n % 2], "shop": n % 3, "n": n} for n in range(rows)]
    stream = env.from_source(MemorySource(made, ROW), uid="in")
    step = stream.key_by("user", "shop").process(Everything(), schema=ROW, uid="all")
    step.sink_to(MemorySink(), uid="out")
    return run_local(env, **options)


def asked(result: LocalResult, name: str, key: Any) -> Any:
    assert result._plan is not None
    nodes = result._plan.nodes.values()
    node = next(node for node in nodes if isinstance(node, KeyedProcess))
    spec = next(spec for spec in node.states if spec.name == name)
    query = Query(node, spec, places_of(node)[name], key)
    return query.answer([log for _, log in sorted(result._logs.items())])


def keys(n: int) -> tuple[str, int]:
    return "ab"[n % 2], n % 3


def test_a_value_has_a_row_for_each_key_that_has_one() -> None:
    found = ran(shards=2).read_state("all", "odd").to_pylist()
    assert found == [
        {"user": "b", "shop": 0, "value": 9},
        {"user": "b", "shop": 1, "value": 13},
        {"user": "b", "shop": 2, "value": 11},
    ]


def test_structs_sums_and_accumulators_are_read_as_they_are_stored() -> None:
    result = ran(shards=2)
    spots = result.read_state("all", "spot")
    assert spots["value"].to_pylist()[0] == {"x": 12, "label": "a"}
    assert result.read_state("all", "total")["value"].to_pylist() == [18, 14, 10, 12, 21, 16]
    assert result.read_state("all", "mean")["value"].to_pylist()[0] == [18, 3]


def test_items_are_numbered_and_entries_have_their_keys() -> None:
    result = ran(shards=3)
    items = result.read_state("all", "items").to_pylist()
    assert [row for row in items if (row["user"], row["shop"]) == ("a", 1)] == [
        {"user": "a", "shop": 1, "ordinal": 0, "value": 4},
        {"user": "a", "shop": 1, "ordinal": 1, "value": 10},
    ]
    assert len(items) == 14
    seen = result.read_state("all", "seen").to_pylist()
    assert {"user": "a", "shop": 1, "map_key": 1, "value": "n10"} in seen
    assert not [row for row in seen if (row["user"], row["shop"]) == ("a", 0)]
    assert result.read_state("all", "maybe")["value"].to_pylist()[-1] is None
    assert result.read_state("all", "brief")["value"].to_pylist() == [12, 10, 8, 9, 13, 11]


def test_what_is_read_depends_neither_on_shards_nor_on_crashes() -> None:
    one, many = ran(shards=1), ran(shards=4, rescale={2: 3}, crashes=[(1, "staged")])
    for name in ("spot", "odd", "total", "mean", "items", "seen", "maybe", "brief"):
        found = one.read_state("all", name)
        assert many.read_state("all", name).equals(found), name
        assert found.num_rows > 0


class Rules(hr.KeyedBroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield {"user": value.user, "shop": len(self.rules), "n": value.n}

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        self.rules[f"{value.user}{value.shop}"] = value.n


class Dealt(hr.ProcessFunction):
    items: hr.state.OperatorList[int]

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.items.add(value.n)
        yield {"user": value.user, "shop": value.shop, "n": value.n}


class Columns(hr.KeyedBatchFunction):
    rows: hr.state.Value[int] = hr.state.FOREVER

    def process_batch(self, batch: Any, ctx: Any) -> Any:
        rows = self.rows.get(ctx.keys, default=0)
        np.add.at(rows, ctx.slots, 1)
        self.rows.put(ctx.keys, rows)
        return batch


def rows_of(env: hr.Environment, uid: str) -> hr.Stream:
    made = [{"user": "ab"[n % 2], "shop": n % 3, "n": n} for n in range(14)]
    return env.from_source(MemorySource(made, ROW), uid=uid)


def test_broadcast_state_is_read_once() -> None:
    env = hr.Environment("rules", epochs=hr.Epochs(rows=4))
    rules = rows_of(env, "rules").broadcast()
    step = rows_of(env, "in").key_by("user").connect(rules)
    step.process(Rules(), schema=ROW, uid="check").sink_to(MemorySink(), uid="out")
    result = run_local(env, shards=3)
    expected = {f"{'ab'[n % 2]}{n % 3}": n for n in range(14)}
    found = result.read_state("check", "rules").to_pydict()
    assert dict(zip(found["map_key"], found["value"], strict=True)) == expected
    assert list(found) == ["map_key", "value"]
    assert asked(result, "rules", None) == expected


def test_items_of_operators_are_those_of_all_shards() -> None:
    env = hr.Environment("dealt", epochs=hr.Epochs(rows=4))
    step = rows_of(env, "in").process(Dealt(), schema=ROW, uid="deal")
    step.sink_to(MemorySink(), uid="out")
    result = run_local(env, shards=3)
    found = result.read_state("deal", "items").to_pydict()
    assert sorted(found["value"]) == list(range(14))
    assert found["ordinal"] == list(range(14))
    assert asked(result, "items", None) == found["value"]


def test_state_of_columns_is_read_as_that_of_rows() -> None:
    env = hr.Environment("columns", epochs=hr.Epochs(rows=4))
    step = rows_of(env, "in").key_by("user").process(Columns(), schema=ROW, uid="count")
    step.sink_to(MemorySink(), uid="out")
    found = run_local(env, shards=2).read_state("count", "rows")
    assert found.to_pydict() == {"user": ["a", "b"], "value": [7, 7]}


def test_one_key_is_seen_as_its_function_sees_it() -> None:
    result = ran(shards=2)
    assert asked(result, "spot", ("a", 0)) == Spot(12, "a")
    assert asked(result, "odd", ("a", 0)) is None
    assert asked(result, "odd", ("b", 1)) == 13
    assert asked(result, "total", ("a", 0)) == 18
    assert asked(result, "mean", ("a", 0)) == 6.0
    assert asked(result, "items", ("a", 0)) == [0, 6, 12]
    assert asked(result, "seen", ("b", 1)) == {1: "n13"}
    assert asked(result, "maybe", ("b", 1)) == {"none": None}
    assert asked(result, "brief", ("b", 1)) == {1: 13}
    assert asked(result, "items", ("nobody", 0)) == []
    assert asked(result, "seen", ("nobody", 0)) == {}
    assert asked(result, "mean", ("nobody", 0)) is None


@pytest.mark.parametrize("key", ["a", ("a", "b"), ("a", 1, 2), (1, 1)])
def test_a_key_of_another_shape_is_refused(key: Any) -> None:
    with pytest.raises(
        BuildError, match=r"'all' are user \(string\), shop \(int64\).*give a tuple"
    ):
        asked(ran(rows=2), "odd", key)
