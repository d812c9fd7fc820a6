"""Timers by name: what Flink's documentation promises, worked out by hand on a line of seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import run_local

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDER = {"key": str, "at": datetime, "do": str, "by": int}
FIRED = {"key": str, "at": int, "domain": str, "timestamp": int}


class Obeys(hr.KeyedProcessFunction):
    """Sets and deletes what rows tell it to; every other timer sets one more."""

    def process_element(self, value: Any, ctx: Any) -> None:
        """`by` seconds from the row's own time, or from the clock's."""
        if value.do == "set":
            ctx.timers.register_event_time(ctx.timestamp + value.by * SECOND)
        elif value.do == "delete":
            ctx.timers.delete_event_time(ctx.timestamp + value.by * SECOND)
        elif value.do == "set by clock":
            ctx.timers.register_processing_time(ctx.clock + value.by * SECOND)
        elif value.do == "naive":
            ctx.timers.register_event_time(datetime(2026, 1, 1))

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[dict[str, Any]]:
        """Tell, and chain."""
        seconds = int((timestamp - START).total_seconds())
        yield {
            "key": ctx.key,
            "at": seconds if ctx.time_domain == "event" else -1,
            "domain": ctx.time_domain,
            "timestamp": int((ctx.timestamp - START).total_seconds()) - seconds,
        }
        if ctx.key == "chain" and seconds < 12:
            ctx.timers.register_event_time(timestamp + SECOND)
        if ctx.key == "chain" and seconds == 10:
            ctx.timers.delete_event_time(timestamp + SECOND)


def fired(
    orders: Sequence[tuple[int, str, str, int]],
    *,
    rows: int = 1,
    bounded: bool = True,
    **options: Any,
) -> list[Any]:
    """(time, key) of the timers that fire, in order; rows are (time, key, what to do, by how much)."""
    env, out = hr.Environment("timers"), MemorySink()
    given = [
        dict(zip(ORDER, (k, START + at * SECOND, do, by), strict=True)) for at, k, do, by in orders
    ]
    times = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    stream = env.from_source(
        MemorySource(given, schema=ORDER, bounded=bounded), watermarks=times, uid="orders"
    )
    obeys = stream.key_by("key").process(Obeys(), schema=FIRED, uid="obeys")
    obeys.sink_to(out, uid="out")
    run_local(env, **{"shards": 1, "epochs": hr.Epochs(rows=rows), **options})
    assert all(row["timestamp"] == 0 for row in out.to_pylist())
    return [(row["at"], row["key"]) for row in out.to_pylist()]


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_timers_fire_in_order_of_time_whatever_the_order_of_setting(rows: int) -> None:
    orders = [(0, "a", "set", 9), (0, "b", "set", 3), (0, "a", "set", 5), (10, "a", "none", 0)]
    assert fired(orders, rows=rows) == [(3, "b"), (5, "a"), (9, "a")]


@pytest.mark.parametrize("rows", [1, 100])
def test_timers_of_a_key_and_an_instant_are_one(rows: int) -> None:
    orders = [(0, "a", "set", 5), (1, "a", "set", 4), (2, "b", "set", 3), (3, "a", "set", 2)]
    assert sorted(fired(orders, rows=rows)) == [(5, "a"), (5, "b")]


@pytest.mark.parametrize("rows", [1, 100])
def test_a_deleted_timer_does_not_fire_and_can_be_set_again(rows: int) -> None:
    orders = [
        (0, "a", "set", 5), (0, "b", "set", 5), (1, "a", "delete", 4), (1, "b", "delete", 4),
        (2, "b", "set", 3), (2, "c", "delete", 9),
    ]  # fmt: skip
    assert fired(orders, rows=rows) == [(5, "b")]


def test_a_timer_far_ahead_and_the_same_from_near_are_one() -> None:
    # Set an hour before it lies in long slices, set a second before in short ones.
    orders = [
        (0, "a", "set", 3600),
        (3599, "a", "set", 1),
        (3599, "b", "set", 1),
        (3700, "b", "x", 0),
    ]
    assert sorted(fired(orders)) == [(3600, "a"), (3600, "b")]
    both_ways = [*orders[:2], (3599, "a", "delete", 1), *orders[2:]]
    assert fired(both_ways) == [(3600, "b")]


def test_a_timer_behind_the_watermark_fires_behind_the_rows_of_the_epoch() -> None:
    orders = [(5, "a", "x", 0), (6, "a", "set", -3), (6, "a", "set", -4), (6, "a", "set", -3)]
    assert fired(orders) == [(3, "a"), (2, "a"), (3, "a")]
    # In one epoch they wait for each other, and the two that are alike are one.
    together = [orders[0], (7, "a", "x", 0), (7, "a", "x", 0), *orders[1:]]
    assert fired(together, rows=3) == [(2, "a"), (3, "a")]


def test_on_timer_sets_and_deletes_timers_that_fire_in_the_same_epoch() -> None:
    # 8 sets 9, 9 sets 10, 10 sets 11 and deletes it again.
    assert fired([(0, "chain", "set", 8), (60, "x", "x", 0)]) == [
        (8, "chain"), (9, "chain"), (10, "chain"),
    ]  # fmt: skip


def test_all_timers_fire_when_bounded_input_ends() -> None:
    assert fired([(0, "a", "set", 100_000_000), (0, "b", "set", 1)]) == [
        (1, "b"),
        (100_000_000, "a"),
    ]


def test_a_timer_by_the_clock_makes_an_epoch_run() -> None:
    orders = [(0, "a", "set by clock", 30), (0, "b", "set by clock", 0)]
    found = fired(orders, rows=2, bounded=False, wait=timedelta(minutes=1))
    assert found == [(-1, "b"), (-1, "a")]


def test_timers_survive_crashes_and_rescaling_once() -> None:
    orders = [(n, "abc"[n % 3], "set", n % 7 + 1) for n in range(30)]
    quiet = fired(orders, rows=4)
    crashes = [(n, point) for n in range(1, 8) for point in ("task", "staged", "durable")]
    shaken = fired(orders, rows=4, crashes=crashes, rescale={3: 3, 6: 2})
    assert sorted(shaken) == sorted(quiet)
    assert len(quiet) == len({(at, key) for at, key in quiet})


def test_a_timer_without_a_time_zone_is_refused() -> None:
    with pytest.raises(UserCodeError, match="datetime with a time zone"):
        fired([(0, "a", "naive", 0)])


class Heartbeat(hr.KeyedProcessFunction):
    """A timer that always sets the next one."""

    def process_element(self, value: Any, ctx: Any) -> None:
        """The first."""
        ctx.timers.register_event_time(ctx.timestamp)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[dict[str, Any]]:
        """The next."""
        yield {"key": ctx.key, "at": 0, "domain": "event", "timestamp": 0}
        ctx.timers.register_event_time(timestamp + timedelta(days=1))


def test_a_timer_that_always_sets_the_next_one_does_not_hang_at_the_end_of_the_input() -> None:
    env = hr.Environment("heartbeat")
    row = {"key": "a", "at": START, "do": "", "by": 0}
    times = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    stream = env.from_source(MemorySource([row], schema=ORDER), watermarks=times, uid="rows")
    beats = stream.key_by("key").process(Heartbeat(), schema=FIRED, uid="beats")
    beats.sink_to(MemorySink(), uid="out")
    with pytest.raises(UserCodeError, match=r"ctx.watermark.year == 9999"):
        run_local(env, shards=1)
