"""Each row goes to one stream."""

from typing import Any

import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local

ROW = {"n": int | None}


def split(**conditions: Any) -> tuple[hr.Environment, dict[str, MemorySink], Any]:
    env = hr.Environment("parts", epochs=hr.Epochs(rows=4))
    numbers = [{"n": n} for n in [*range(10), None]]
    parts = env.from_source(MemorySource(numbers, ROW), uid="in").split(uid="it", **conditions)
    sinks = {name: MemorySink() for name in (*parts.names, "rest")}
    for name, sink in sinks.items():
        parts[name].sink_to(sink, uid=f"{name}-out")
    return env, sinks, parts


def found(sinks: dict[str, MemorySink]) -> dict[str, list[Any]]:
    return {name: [row["n"] for row in sink.to_pylist()] for name, sink in sinks.items()}


def test_a_row_goes_to_the_first_condition_that_is_true() -> None:
    env, sinks, _ = split(
        small=hr.col("n") < 4, even=lambda row: row.n is not None and row.n % 2 == 0
    )
    counts = run_local(env).counts["it"]
    assert found(sinks) == {
        "small": [0, 1, 2, 3],
        "even": [4, 6, 8],
        "rest": [5, 7, 9, None],
    }
    assert counts == {"in": 11, "side:small": 4, "side:even": 3, "out": 4}


def test_a_function_is_not_asked_about_rows_that_were_taken() -> None:
    asked: list[Any] = []
    env, sinks, _ = split(small=hr.col("n") < 8, seen=lambda row: asked.append(row.n) or False)
    run_local(env)
    assert asked == [8, 9, None]
    assert found(sinks)["rest"] == [8, 9, None]


def test_streams_that_nobody_takes_are_counted() -> None:
    env = hr.Environment("parts")
    numbers = env.from_source(MemorySource([{"n": 1}, {"n": 2}], ROW), uid="in")
    numbers.split(one=hr.col("n") == 1, uid="it").rest.sink_to(MemorySink(), uid="out")
    assert run_local(env).counts["it"] == {"in": 2, "side:one": 1, "out": 1}


@pytest.mark.parametrize("point", POINTS)
def test_failing_rows_are_dead_letters_and_crashes_change_nothing(point: Any) -> None:
    env, sinks, parts = split(
        odd=lambda row: row.n % 2 == 1, big=lambda row: 8 // row.n == 1, on_error="dead_letter"
    )
    dead = MemorySink()
    parts.errors.sink_to(dead, uid="dead")
    counts = run_local(env, crashes=[(1, point)]).counts["it"]
    assert found(sinks) == {"odd": [1, 3, 5, 7, 9], "big": [6, 8], "rest": [2, 4]}
    causes = [letter["cause"].partition(":")[0] for letter in dead.to_pylist()]
    assert sorted(causes) == ["TypeError", "ZeroDivisionError"]
    assert counts == {"in": 11, "side:odd": 5, "side:big": 2, "out": 2, "dead": 2}


def test_parts_keep_time() -> None:
    from datetime import UTC, datetime, timedelta

    start = datetime(2025, 1, 1, tzinfo=UTC)
    env, sink = hr.Environment("parts"), MemorySink()
    rows = [{"n": n, "at": start + timedelta(seconds=n)} for n in range(20)]
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    source = env.from_source(MemorySource(rows), watermarks=strategy, uid="in")
    even = source.split(even=lambda row: row.n % 2 == 0, uid="it").even
    window = even.key_by("n").window(hr.windows.Tumbling(timedelta(seconds=10)))
    window.aggregate(rows=hr.count(), uid="windows").sink_to(sink, uid="out")
    run_local(env)
    assert len(sink.to_pylist()) == 10
