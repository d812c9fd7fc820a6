"""State that only grows is told of once, on the line that builds the step, with how to say that it is meant."""

import operator
import warnings
from collections.abc import Iterator
from datetime import timedelta
from functools import wraps
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors import memory
from headrace.errors import UnboundedStateWarning
from headrace.state import (
    FOREVER,
    TTL,
    List,
    ListStateDescriptor,
    Map,
    MapStateDescriptor,
    Reducing,
    Value,
    ValueStateDescriptor,
    keep,
)

Rows = Iterator[dict[str, Any]]


def warned(function: Any, key: pa.DataType | None = None) -> list[str]:
    """What is said when a step with this function is built."""
    schema = pa.schema([("user", key or pa.string()), ("n", pa.int64())])
    env = hr.Environment("lint")
    rows = env.from_source(memory.MemorySource([], schema=schema), uid="rows")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows.key_by("user").process(function, schema={"n": int}, uid="counter")
    assert {w.category for w in caught} <= {UnboundedStateWarning}
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


class Counter(hr.KeyedProcessFunction):
    seen: Value[int]

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update((self.seen.value() or 0) + 1)


def test_the_warning_names_step_line_state_key_and_the_ways_out() -> None:
    (text,) = warned(Counter())
    for part in (
        "'counter' (test_lint.py:",
        "'seen'",
        "'user'",
        "hr.state.TTL",
        "= hr.state.FOREVER",
    ):
        assert part in text


def test_a_warning_can_be_turned_off_by_its_class() -> None:
    env = hr.Environment("lint")
    rows = env.from_source(memory.MemorySource([{"user": "ada"}]), uid="rows")
    with pytest.warns(UnboundedStateWarning, match="'process-1'"):
        rows.key_by("user").process(Counter(), schema={"n": int})


@pytest.mark.parametrize(
    ("key", "grows"),
    [
        (pa.string(), True),
        (pa.int64(), True),
        (pa.int32(), True),
        (pa.timestamp("us", tz="UTC"), True),
        (pa.dictionary(pa.int32(), pa.string()), True),
        (pa.dictionary(pa.int8(), pa.string()), False),
        (pa.dictionary(pa.int32(), pa.bool_()), False),
        (pa.bool_(), False),
        (pa.int8(), False),
        (pa.uint8(), False),
    ],
)
def test_only_a_key_with_many_values_makes_state_grow(key: pa.DataType, *, grows: bool) -> None:
    assert bool(warned(Counter(), key)) is grows


def test_one_column_with_many_values_is_enough() -> None:
    env = hr.Environment("lint")
    rows = env.from_source(memory.MemorySource([{"user": "ada", "up": True}]), uid="rows")
    with pytest.warns(UnboundedStateWarning, match="every 'up' and 'user' that"):
        rows.key_by("up", "user").process(Counter(), schema={"n": int}, uid="counter")


class Forever(Counter):
    seen: Value[int] = FOREVER


class Kept(Counter):
    seen: Value[int] = keep(forever=True)


class Living(Counter):
    seen: Value[int] = TTL(timedelta(hours=1), time="processing")


class Direct(Counter):
    def process_element(self, value: Any, ctx: Any) -> Any:
        if value.n < 0:
            self.seen.clear()


class ToNothing(Counter):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update(None)


class OnTimer(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        self.seen.clear()


class InAnotherMethod(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        self._forget()

    def _forget(self) -> None:
        self.seen.clear()


class Inherited(InAnotherMethod):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update(1)


class Generator(Counter):
    def on_timer(this, timestamp: Any, ctx: Any) -> Rows:
        yield {"n": this.seen.value()}
        this.seen.clear()


class InAnInnerFunction(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        def forget() -> None:
            self.seen.clear()

        forget()


class UnderAnotherName(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        seen = self.seen
        seen.clear()


def take_away(state: Value[int]) -> None:
    state.clear()


class Elsewhere(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        take_away(self.seen)


class InATuple(Counter):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        for state in (self.seen,):
            state.clear()


def traced(method: Any) -> Any:
    @wraps(method)
    def call(*arguments: Any) -> Any:
        return method(*arguments)

    return call


class Decorated(Counter):
    @traced
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        self.seen.clear()


@pytest.mark.parametrize(
    "function",
    [
        Forever, Kept, Living, Direct, ToNothing, OnTimer, InAnotherMethod, Inherited, Generator, InAnInnerFunction,
        UnderAnotherName, Elsewhere, InATuple, Decorated,
    ],
)  # fmt: skip
def test_nothing_is_said_of_state_that_is_cleared_or_meant(function: type) -> None:
    assert warned(function()) == []


class Visits(hr.KeyedProcessFunction):
    """Uses maps in every way that takes nothing away."""

    pages: Map[str, int]

    def process_element(self, value: Any, ctx: Any) -> Rows:
        self.pages[value.n] = self.pages.get(value.n, 0) + 1
        self.pages.put("x", 1)
        if "y" in self.pages and len(self.pages) > 3 and self.pages["y"] > 1:
            yield {"n": sum(self.pages[page] for page in self.pages)}


class Removed(Visits):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        self.pages.remove("x")


class Deleted(Visits):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        del self.pages[str(timestamp)]


class Passed(Visits):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        take_away(self.pages)


def test_entries_that_are_only_added_grow() -> None:
    (text,) = warned(Visits())
    assert "'pages'" in text


@pytest.mark.parametrize("function", [Removed, Deleted, Passed])
def test_entries_may_go_one_by_one(function: type) -> None:
    assert warned(function()) == []


class Last(hr.KeyedProcessFunction):
    items: List[int]

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.items.add(value.n)


class Emptied(Last):
    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        self.items.update([])


def test_a_list_is_cleared_by_other_items() -> None:
    assert len(warned(Last())) == 1
    assert warned(Emptied()) == []


class Several(hr.KeyedProcessFunction):
    total: Reducing[int] = keep(reduce=operator.add)
    last: Value[int]
    once: Value[int]
    meant: Value[int] = FOREVER

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.once.clear()


def test_several_states_are_told_in_one_warning() -> None:
    (text,) = warned(Several())
    assert "the states 'last', 'total' for" in text
    assert (
        "last: ... = hr.state.FOREVER; total: ... = hr.state.keep(reduce=..., forever=True)" in text
    )
    assert "'once'" not in text
    assert "'meant'" not in text


class Opened(hr.KeyedProcessFunction):
    def open(self, ctx: Any) -> None:
        self.a = ctx.get_state(ValueStateDescriptor("first", int))
        self.b = ctx.get_list_state(ListStateDescriptor("second", int))
        self.c = ctx.get_map_state(MapStateDescriptor("third", str, value_type=int, forever=True))
        self.more = {"d": ctx.get_state(ValueStateDescriptor("fourth", int))}

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.b.clear()


def test_descriptors_are_found_by_the_attribute_that_holds_them() -> None:
    (text,) = warned(Opened())
    assert "the state 'first'" in text
    assert 'ValueStateDescriptor("first", ..., forever=True)' in text
    # Where the handle of 'fourth' is used cannot be seen.
    assert "fourth" not in text


def test_code_without_source_is_read_too() -> None:
    scope: dict[str, Any] = {"Counter": Counter}
    exec(
        "class Typed(Counter):\n    def on_timer(self, timestamp, ctx):\n        self.seen.clear()",
        scope,
    )
    assert warned(scope["Typed"]()) == []


class OnColumns(hr.KeyedBatchFunction):
    seen: Value[int]

    def process_batch(self, batch: Any, ctx: Any) -> Any:
        self.seen.put(ctx.keys, self.seen.get(ctx.keys, default=0) + 1)


class ClearedOnColumns(OnColumns):
    def on_timers(self, timers: Any, ctx: Any) -> Any:
        self.seen.clear(ctx.keys)


def test_functions_on_columns_are_read_alike() -> None:
    assert len(warned(OnColumns())) == 1
    assert warned(ClearedOnColumns()) == []
