"""Declarations of state that would do nothing, or something else than meant, are refused where the step is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError, UserCodeError
from headrace.testing import run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@dataclass
class Count:
    n: int


class Silent(hr.KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Count]:
        yield Count(value.n)


class TypeBehindEquals(Silent):
    seen = hr.state.Value[int]


class LifetimeOnly(Silent):
    seen = hr.state.TTL(SECOND)


class NamedAsMethod(Silent):
    close: hr.state.Value[int]  # type: ignore[assignment]


class NamedAsOpen(Silent):
    open: hr.state.Value[int] = hr.state.FOREVER


class Misspelt(Silent):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Count]:
        ctx.timers.register_event_time(ctx.timestamp)
        yield Count(value.n)

    def onTimer(self, timestamp: datetime, ctx: Any) -> Iterator[Count]:
        yield Count(0)


class MisspeltOnColumns(hr.KeyedBatchFunction):
    def process_batch(self, batch: Any, ctx: Any) -> Any:
        ctx.timers.register_event_time(ctx.slots, ctx.timestamps)
        return batch.select(["n"])


@dataclass(frozen=True)
class Settled(Silent):
    step: int
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Count]:
        self.seen.update((self.seen.value() or 0) + self.step)
        yield Count(self.seen.value() or 0)


class Short(hr.KeyedCoProcessFunction):
    seen: hr.state.Value[int] = hr.state.TTL(SECOND)

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Count]:
        yield Count(1)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Count]:
        self.seen.update(1)
        yield Count(2)


def source(env: hr.Environment, uid: str = "rows", *, timed: bool = True) -> Any:
    rows = [{"k": "a", "n": n, "at": START + n * SECOND} for n in range(3)]
    watermarks = hr.WatermarkStrategy.monotonous().with_timestamps("at") if timed else None
    schema = {"k": str, "n": int, "at": datetime}
    return env.from_source(MemorySource(rows, schema), watermarks=watermarks, uid=uid)


def run(function: Any, **options: Any) -> list[int]:
    env, sink = hr.Environment("declared", epochs=hr.Epochs(rows=1)), MemorySink()
    made = source(env).key_by("k").process(function, uid="step", **options)
    made.sink_to(sink, uid="out")
    run_local(env, shards=2)
    return [row["n"] for row in sink.to_pylist()]


@pytest.mark.parametrize("function", [TypeBehindEquals(), LifetimeOnly()])
def test_a_state_without_its_colon_is_refused(function: Any) -> None:
    with pytest.raises(BuildError, match=r"seen: hr\.state\.Value\[int\] = hr\.state\.FOREVER"):
        run(function)


@pytest.mark.parametrize("function", [NamedAsMethod(), NamedAsOpen()])
def test_a_state_named_as_a_method_is_refused(function: Any) -> None:
    with pytest.raises(BuildError, match="a state and a method; give the state another name"):
        run(function)


def test_a_timer_without_a_method_for_it_is_not_lost_in_silence() -> None:
    with pytest.raises(UserCodeError, match=r"def on_timer\(self, timestamp, ctx\)"):
        run(Misspelt())
    with pytest.raises(UserCodeError, match=r"def on_timers\(self, timers, ctx\)"):
        run(MisspeltOnColumns(), schema=Count)


def test_a_frozen_dataclass_can_be_a_function() -> None:
    assert run(Settled(2)) == [2, 4, 6]


def test_a_lifetime_in_event_time_is_refused_if_the_second_input_has_none() -> None:
    env = hr.Environment("declared")
    second = source(env, "timeless", timed=False).key_by("k")
    with pytest.raises(BuildError, match=r"'seen' of Short\) needs event time.*'timeless'"):
        source(env).key_by("k").connect(second).process(Short(), uid="step")


@pytest.mark.parametrize("many", [63, 64])
def test_more_values_than_can_be_told_apart_are_not_forgotten_in_silence(many: int) -> None:
    def process_element(self: Any, value: Any, ctx: Any) -> list[Any]:
        last = getattr(self, f"s{many - 1:02}")
        if value.n == 0:
            last.update(many)
        return [{"n": last.value() or 0}]

    states = {f"s{n:02}": hr.state.Value[int] for n in range(many)}
    members = {"__annotations__": states, "process_element": process_element}
    function = type("Many", (hr.KeyedProcessFunction,), members)()
    if many == 63:
        assert run(function, schema=Count) == [63, 63, 63]
    else:
        with pytest.raises(BuildError, match="declares 64 states of one value"):
            run(function, schema=Count)


class Collects(Silent):
    def __init__(self) -> None:
        self.clients: list[str] = []
        self.by_name: dict[str, str] = {}

    def open(self, ctx: Any) -> None:
        self.clients.append("a client that cannot travel")
        self.by_name["it"] = "neither can this"


def test_what_open_collects_while_a_step_is_built_does_not_travel_with_the_function() -> None:
    function = Collects()
    source(hr.Environment("declared")).key_by("k").process(function, uid="step")
    assert (function.clients, function.by_name) == ([], {})


class OfJava(Silent):
    def process_element(self, value: Any, ctx: Any, out: Any) -> None:  # type: ignore[override]
        out.collect(value)


class WithoutContext(Silent):
    def on_timer(self, ctx: Any) -> None:  # type: ignore[override]
        pass


class Awaited(Silent):
    async def process_element(self, value: Any, ctx: Any) -> Any:  # type: ignore[override]
        return []


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (
            OfJava(),
            r"OfJava\.process_element .* a row and the context, but takes \(value.* ctx.* out",
        ),
        (WithoutContext(), r"WithoutContext\.on_timer .* a timer and the context, but takes \(ctx"),
        (Awaited(), r"Awaited\.process_element is a coroutine function.*map_async"),
    ],
)
def test_a_method_that_cannot_be_called_is_refused_before_the_first_row(
    function: Any, told: str
) -> None:
    with pytest.raises(BuildError, match=told):
        run(function, schema=Count)


class OtherNames(Silent):
    on_timers = ("what another kind of function calls so",)


def test_an_attribute_may_have_the_name_of_a_method_of_another_kind() -> None:
    assert run(OtherNames()) == [0, 1, 2]
