"""Mistakes of people who know Flink are told with what to write instead."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.states import recorded_states
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError, UserCodeError
from headrace.testing import run_local


class Doing(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER

    def __init__(self, deed: Callable[[Any, Any], Any]) -> None:
        self.deed = deed

    def process_element(self, value: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.deed(self, ctx)
        yield {"n": value.n}


class Assigning(hr.KeyedBatchFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        self.seen = 1  # type: ignore[assignment]
        return batch


class Opening(hr.KeyedProcessFunction):
    def __init__(self, deed: Callable[[Any], Any]) -> None:
        self.deed = deed

    def open(self, ctx: Any) -> None:
        self.kept = self.deed(ctx)

    def process_element(self, value: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.kept.put("n", value.n)
        yield {"n": self.kept.get("n")}


def with_ttl(ctx: Any) -> Any:
    descriptor = hr.state.MapStateDescriptor("kept", str, int)
    descriptor.enable_time_to_live(hr.state.TTL(timedelta(hours=1), time="processing"))
    return ctx.get_map_state(descriptor)


def run(function: Any) -> list[dict[str, Any]]:
    env, sink = hr.Environment("job"), MemorySink()
    rows = env.from_source(MemorySource([{"n": 1}, {"n": 2}]), uid="in")
    rows.key_by("n").process(function, schema={"n": int}, uid="it").sink_to(sink, uid="out")
    run_local(env)
    return sink.to_pylist()


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (lambda _, ctx: ctx.timer_service(), r"no 'timer_service'; timers are ctx\.timers"),
        (lambda _, ctx: ctx.get_current_key(), r"the key is ctx\.key"),
        (lambda _, ctx: ctx.timers.register_event_time_timer(0), r"register_event_time\(instant\)"),
        (lambda _, ctx: ctx.whatever, r"ctx has no 'whatever'; it has clock, key, metrics"),
        (lambda _, ctx: ctx.timers.cancel(), r"it has delete_event_time, delete_processing_time"),
    ],
)
def test_names_that_are_not_there_are_told_with_those_that_are(deed: Any, told: str) -> None:
    with pytest.raises(UserCodeError, match=told):
        run(Doing(deed))


@pytest.mark.parametrize("function", [Doing(lambda me, _: setattr(me, "seen", 1)), Assigning()])
def test_assigning_to_state_is_refused(function: Any) -> None:
    with pytest.raises(UserCodeError, match=r"assigns to self\.seen.*self\.seen\.update"):
        run(function)


def test_attributes_of_ones_own_may_be_assigned() -> None:
    assert len(run(Doing(lambda me, _: setattr(me, "cache", 1)))) == 2


def test_descriptors_are_written_as_in_flink() -> None:
    assert run(Opening(with_ttl)) == [{"n": 1}, {"n": 2}]
    (kept,) = recorded_states(Opening(with_ttl)).specs
    assert kept.ttl == hr.state.TTL(timedelta(hours=1), time="processing")


def ill_kept(ctx: Any) -> Any:
    return ctx.get_state(hr.state.ValueStateDescriptor("n", int, ttl=timedelta(hours=1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (
            lambda ctx: ctx.get_metrics_group(),
            "no 'get_metrics_group'; .* metrics are in the context",
        ),
        (ill_kept, r"Opening\.n: ttl= takes an hr\.state\.TTL"),
    ],
)
def test_what_open_cannot_do_is_told(deed: Any, told: str) -> None:
    with pytest.raises(BuildError, match=told):
        run(Opening(deed))
