"""What functions count in a job: exact, whatever crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import LocalResult, run_local

ROW = {"user": str, "n": int}


class Counting(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.metrics.counter("rows").inc()
        ctx.metrics.counter("total").inc(value.n)
        ctx.metrics.histogram("n").update(value.n / 3)
        ctx.metrics.gauge("last").set(value.n)
        self.seen.update((self.seen.value() or 0) + 1)
        if value.n % 5 == 0:
            ctx.metrics.counter("fives").inc()
        yield {"user": ctx.key, "n": value.n}


def counted(function: Any, rows: int = 20, **options: Any) -> LocalResult:
    env = hr.Environment("counted", epochs=hr.Epochs(rows=4))
    source = MemorySource([{"user": f"user-{n % 7}", "n": n} for n in range(rows)], ROW)
    stream = env.from_source(source, uid="in")
    step = stream.key_by("user").process(function, schema=ROW, uid="counting")
    step.sink_to(MemorySink(), uid="out")
    return run_local(env, **options)


def test_metrics_of_a_run_are_those_of_its_rows() -> None:
    found = counted(Counting(), shards=2).metrics["counting"]
    assert {name: found[name] for name in ("rows", "total", "fives")} == {
        "rows": 20,
        "total": sum(range(20)),
        "fives": 4,
    }
    assert (found["n"].count, found["n"].max) == (20, 19 / 3)
    assert found["last"] in {float(n) for n in range(16, 20)}


@pytest.mark.parametrize("point", POINTS)
def test_crashes_count_nothing_twice_and_lose_nothing(point: Any) -> None:
    calm = counted(Counting(), shards=2)
    disturbed = counted(Counting(), shards=2, crashes=[(epoch, point) for epoch in (0, 2, 3)])
    assert disturbed.restarts == 3
    assert disturbed.metrics == calm.metrics


def test_metrics_depend_neither_on_shards_nor_on_tasks() -> None:
    one = counted(Counting(), shards=1).metrics["counting"]
    many = counted(Counting(), shards=3, tasks=2, rescale={2: 5}).metrics["counting"]
    assert {**one, "last": 0} == {**many, "last": 0}


class Passing(hr.ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.metrics.counter("rows").inc()
        ctx.metrics.histogram("n").update(value.n)
        yield {"user": value.user, "n": value.n}


def test_functions_without_keys_count_before_and_behind_a_shuffle() -> None:
    env = hr.Environment("passing", epochs=hr.Epochs(rows=4))
    source = MemorySource([{"user": f"user-{n % 7}", "n": n} for n in range(20)], ROW)
    first = env.from_source(source, uid="in").process(Passing(), schema=ROW, uid="first")
    step = first.key_by("user").process(Counting(), schema=ROW, uid="counting")
    step.process(Passing(), schema=ROW, uid="second").sink_to(MemorySink(), uid="out")
    crashes: list[tuple[int, Any]] = [(1, "task"), (2, "staged"), (3, "durable")]
    found = run_local(env, shards=2, tasks=2, crashes=crashes).metrics
    assert {uid: metrics["rows"] for uid, metrics in found.items()} == {
        "first": 20,
        "counting": 20,
        "second": 20,
    }
    assert found["first"]["n"] == found["second"]["n"]


def test_a_failure_that_is_tried_again_counts_once() -> None:
    failed: list[int] = []

    class Stumbling(Counting):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield from super().process_element(value, ctx)
            if value.n == 9 and not failed:
                failed.append(value.n)
                raise OSError("the disk was away")

    assert counted(Stumbling(), shards=1).metrics == counted(Counting(), shards=1).metrics
    assert failed == [9]


def test_a_name_of_two_kinds_names_the_step() -> None:
    class Confused(hr.KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.metrics.counter("n").inc()
            ctx.metrics.gauge("n").set(1)

    with pytest.raises(UserCodeError, match="'counting' uses the metric 'n' as a gauge"):
        counted(Confused())


def test_the_state_of_a_run_can_be_read() -> None:
    result = counted(Counting(), shards=3, crashes=[(1, "staged")])
    found = result.read_state("counting", "seen")
    assert found.to_pydict() == {
        "user": [f"user-{n}" for n in range(7)],
        "value": [3, 3, 3, 3, 3, 3, 2],
    }
    with pytest.raises(hr.errors.BuildError, match=r"has no state 'sen'\. It has: 'seen'"):
        result.read_state("counting", "sen")
