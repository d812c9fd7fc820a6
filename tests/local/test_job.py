"""A job in this process: every row once, whatever happens; errors that say what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import headrace as hr
from headrace._epochs.splits import Slice
from headrace._local.epoch import deal
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import BuildError, EngineError, UserCodeError
from headrace.testing import cut, fail, run_local
from headrace.watermarks import END_OF_TIME

START = datetime(2025, 1, 1, tzinfo=UTC)
NUMBER = {"n": int}


def numbers(*entries: Any, bounded: bool = True) -> tuple[hr.Environment, MemorySink]:
    """A job that doubles the numbers of a list."""
    rows = [{"n": entry} if isinstance(entry, int) else entry for entry in entries]
    env, sink = hr.Environment("numbers", epochs=hr.Epochs(rows=2)), MemorySink()
    source = env.from_source(MemorySource(rows, NUMBER, bounded=bounded), uid="in")
    source.map(lambda row: {"n": row.n * 2}, schema=NUMBER, uid="double").sink_to(sink, uid="out")
    return env, sink


def values(sink: MemorySink) -> list[int]:
    return [row["n"] for row in sink.to_pylist()]


def test_rows_arrive_in_order_and_the_end_is_an_epoch_of_its_own() -> None:
    env, sink = numbers(1, 2, 3)
    result = run_local(env)
    assert values(sink) == [2, 4, 6]
    assert [epoch.ranges["in"]["0"] for epoch in result.epochs] == [(0, 2), (2, 3), (3, 3)]
    assert result.finished
    assert result.watermarks == {"in": END_OF_TIME}


def test_counts_account_for_every_row() -> None:
    env, _ = numbers(1, 2, 3)
    assert run_local(env).counts["double"] == {"in": 3, "out": 3}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_crash_neither_loses_nor_doubles(point: Any, epoch: int) -> None:
    env, sink = numbers(1, 2, 3)
    result = run_local(env, crashes=[(epoch, point)])
    assert values(sink) == [2, 4, 6]
    assert result.restarts == 1


def test_replayed_epoch_is_the_one_that_was_planned() -> None:
    env, _ = numbers(1, 2, 3)
    calm, disturbed = run_local(env), run_local(env, crashes=[(1, "staged"), (1, "task")])
    cuts = [[epoch.ranges for epoch in result.epochs] for result in (calm, disturbed)]
    assert cuts[0] == cuts[1]


def test_unknown_crash_point_is_refused() -> None:
    env, _ = numbers(1)
    with pytest.raises(BuildError, match=r"no crash point 'lunch'.*'staged'"):
        run_local(env, crashes=[(0, "lunch")])  # type: ignore[list-item]


def test_cut_ends_an_epoch() -> None:
    env, sink = numbers(1, cut(), 2, 3, 4)
    result = run_local(env)
    assert [epoch.ranges["in"]["0"] for epoch in result.epochs][:2] == [(0, 1), (1, 3)]
    assert values(sink) == [2, 4, 6, 8]


def test_failed_read_is_tried_again() -> None:
    env, sink = numbers(1, fail("disk on fire", times=2), 2)
    assert run_local(env).restarts == 2
    assert values(sink) == [2, 4]


def test_failure_that_stays_is_raised() -> None:
    env, sink = numbers(1, 2, fail("disk on fire", times=9), 3)
    with pytest.raises(EngineError, match="disk on fire"):
        run_local(env)
    assert values(sink) == [2, 4]


def test_error_of_user_code_names_step_and_offset() -> None:
    env = hr.Environment("broken")
    source = env.from_source(MemorySource([{"n": 1}, {"n": 0}], NUMBER), uid="in")
    source.map(lambda row: {"n": 1 // row.n}, schema=NUMBER, uid="divide").sink_to(
        MemorySink(), uid="out"
    )
    with pytest.raises(UserCodeError, match="'divide'") as caught:
        run_local(env)
    assert "partition '0', offset 1" in str(caught.value)


def test_unbounded_input_ends_when_nothing_is_left_to_do() -> None:
    env, sink = numbers(1, 2, bounded=False)
    result = run_local(env)
    assert values(sink) == [2, 4]
    assert not result.finished


def test_interval_between_epochs_is_waited_for() -> None:
    env, sink = numbers(1, 2, 3)
    spaced = hr.Epochs(rows=1, min_interval=timedelta(minutes=1))
    result = run_local(env, epochs=spaced)
    clocks = [epoch.clock_us for epoch in result.epochs]
    assert all(later - earlier >= 60_000_000 for earlier, later in pairwise(clocks))
    assert values(sink) == [2, 4, 6]


def per_key(rows: list[dict[str, Any]]) -> tuple[hr.Environment, MemorySink]:
    env, sink = hr.Environment("windows", epochs=hr.Epochs(rows=3)), MemorySink()
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    source = MemorySource(rows, {"key": str, "at": datetime})
    result = (
        env.from_source(source, watermarks=strategy, uid="in")
        .key_by("key")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .aggregate(rows=hr.count(), uid="count")
    )
    result.sink_to(sink, uid="out")
    return env, sink


ROWS = [{"key": f"k{n % 7}", "at": START + timedelta(seconds=n)} for n in range(40)]


@pytest.mark.parametrize("path", [{2: 3}, {2: 3, 5: 1}, {1: 2, 3: 128, 6: 5}])
def test_state_moves_to_another_number_of_shards(path: dict[int, int]) -> None:
    env, sink = per_key(ROWS)
    run_local(env, 2)
    calm = sorted(sink.to_pylist(), key=str)
    run_local(env, 2, rescale=path)
    assert sorted(sink.to_pylist(), key=str) == calm
    assert sum(row["rows"] for row in calm) == len(ROWS)


def test_crash_while_the_shards_change_is_survived() -> None:
    env, sink = per_key(ROWS)
    run_local(env, 3, rescale={4: 2}, crashes=[(3, "durable"), (4, "staged"), (4, "task")])
    assert sum(row["rows"] for row in sink.to_pylist()) == len(ROWS)


def test_every_task_gets_a_part_of_every_range() -> None:
    source = MemorySource([{"n": 1}], NUMBER)
    parts = deal([Slice("in", "0", 0, 5), Slice("in", "1", 3, 4)], {"in": source}, 3)
    read = [(s.partition, n) for part in parts for s in part for n in range(s.start, s.end)]
    assert sorted(read) == [("0", n) for n in range(5)] + [("1", 3)]
    assert len(parts) == 3


def test_nothing_to_read_is_still_one_task() -> None:
    assert deal([], {}, 3) == [()]
