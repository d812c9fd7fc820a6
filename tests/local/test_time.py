"""Time in a whole job, in this process: what comes out, and that a crash changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.generator import Nexmark
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.endpoints import Enumerator, Span
from headrace.errors import UserCodeError
from headrace.testing import LocalResult, cut, run_local
from headrace.watermarks import CLOCK, END_OF_TIME, NO_WATERMARK

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCHEMA = {"key": str, "at": datetime}
TUMBLING = hr.windows.Tumbling(10 * SECOND)
BY_COLUMN = hr.WatermarkStrategy.monotonous().with_timestamps("at")


def row(second: float, key: str = "k") -> dict[str, Any]:
    return {"key": key, "at": START + second * SECOND}


def us(second: float) -> int:
    return int((START + second * SECOND).timestamp() * 1_000_000)


def windowed(stream: Any, uid: str = "count", window: Any = TUMBLING) -> Any:
    return stream.key_by("key").window(window).aggregate(rows=hr.count(), uid=uid)


def job(
    source: Any, strategy: Any, *, rows: int = 3, window: Any = TUMBLING
) -> tuple[hr.Environment, MemorySink, MemorySink]:
    """Rows per key and window, and those that are late."""
    env = hr.Environment("time", epochs=hr.Epochs(rows=rows))
    out, late = MemorySink(), MemorySink()
    result = windowed(env.from_source(source, watermarks=strategy, uid="in"), window=window)
    result.sink_to(out, uid="out")
    result.late.sink_to(late, uid="late")
    return env, out, late


def counts(sink: MemorySink) -> list[tuple[int, int]]:
    """(second of the window, rows), sorted."""
    return sorted(
        (int((found["window_start"] - START) / SECOND), found["rows"]) for found in sink.to_pylist()
    )


def marks(result: LocalResult, uid: str = "in") -> list[int]:
    return [epoch.watermarks[uid] for epoch in result.epochs]


# generators


class EveryOther(hr.WatermarkGenerator):
    """Ten seconds behind the greatest timestamp, but it speaks in every second epoch only."""

    def __init__(self) -> None:
        self.greatest: np.datetime64 | None = None
        self.epochs = 0

    def on_events(self, timestamps: Any) -> None:
        self.greatest = max(timestamps.max(), self.greatest or timestamps.min())

    def on_epoch(self, clock: datetime) -> datetime | None:
        self.epochs += 1
        if self.greatest is None or self.epochs % 2:
            return None
        return self.greatest.item().replace(tzinfo=UTC) - 10 * SECOND


GENERATED = hr.WatermarkStrategy.for_generator(EveryOther).with_timestamps("at")
LINES = [[row(n) for n in range(0, 60, 2)], [row(n, "j") for n in range(0, 60, 3)]]


def test_a_generator_makes_the_watermarks() -> None:
    env, out, _ = job(MemorySource([row(n) for n in range(12)], SCHEMA), GENERATED)
    result = run_local(env)
    assert marks(result) == [NO_WATERMARK, us(2 - 10), us(2 - 10), us(8 - 10), END_OF_TIME]
    assert counts(out) == [(0, 10), (10, 2)]


def test_a_generator_sees_each_partition_alone_and_whole() -> None:
    env, _, _ = job(MemorySource(partitions=LINES, schema=SCHEMA), GENERATED, rows=4)
    calm = run_local(env)
    parted = run_local(env, tasks=3)
    assert marks(calm) == marks(parted)
    # The slower of the two: after two epochs it has shown 0, 3, 6, 9 seconds.
    assert marks(calm)[3] == us(6 * 2 - 2 - 10)


@pytest.mark.parametrize("point", POINTS)
def test_a_generator_goes_on_where_it_was_after_a_crash(point: Any) -> None:
    env, out, _ = job(MemorySource(partitions=LINES, schema=SCHEMA), GENERATED, rows=8)
    calm = run_local(env)
    found = counts(out)
    disturbed = run_local(env, crashes=[(epoch, point) for epoch in (1, 2, 4)])
    assert marks(disturbed) == marks(calm)
    assert counts(out) == found
    assert disturbed.restarts == 3


def test_an_error_of_a_generator_names_its_source() -> None:
    class Broken(EveryOther):
        def on_events(self, timestamps: Any) -> None:
            raise ZeroDivisionError

    broken = hr.WatermarkStrategy.for_generator(Broken).with_timestamps("at")
    env, _, _ = job(MemorySource([row(1)], SCHEMA), broken)
    with pytest.raises(UserCodeError, match="watermark generator of source 'in'"):
        run_local(env)


# clocks


def test_ingestion_time_is_the_clock_of_the_epoch_that_reads() -> None:
    source = MemorySource([row(0), row(0), cut(), row(-9999)], SCHEMA)
    env, out, late = job(source, hr.WatermarkStrategy.ingestion_time())
    result = run_local(env, step=30 * SECOND)
    starts = [found["window_start"].timestamp() for found in out.to_pylist()]
    clocks = [epoch.clock_us / 1e6 for epoch in result.epochs]
    assert [clock // 10 * 10 for clock in clocks[:2]] == starts
    assert [found["rows"] for found in out.to_pylist()] == [2, 1]
    assert late.to_pylist() == []


def test_a_step_that_waits_for_the_clock_fires_if_the_run_waits_too() -> None:
    source = MemorySource([row(0)], SCHEMA, bounded=False)
    env, out, _ = job(source, hr.WatermarkStrategy.ingestion_time(), rows=1)
    run_local(env, step=timedelta(milliseconds=1))
    assert out.to_pylist() == []
    result = run_local(env, step=timedelta(milliseconds=1), wait=20 * SECOND)
    (found,) = out.to_pylist()
    # It fires as soon as it can: at the first instant behind the last microsecond of the window.
    assert result.epochs[-1].clock_us == found["window_end"].timestamp() * 1_000_000
    assert not result.finished


def test_the_clock_is_in_every_epoch() -> None:
    env, _, _ = job(MemorySource([row(n) for n in range(9)], SCHEMA), BY_COLUMN)
    epochs = run_local(env).epochs
    assert [e.watermarks[CLOCK] for e in epochs[:-1]] == [e.clock_us - 1 for e in epochs[:-1]]
    assert [e.before[CLOCK] for e in epochs[1:]] == [e.watermarks[CLOCK] for e in epochs[:-1]]
    assert [e.clock_before_us for e in epochs] == [NO_WATERMARK, *(e.clock_us for e in epochs[:-1])]
    assert epochs[-1].watermarks[CLOCK] == END_OF_TIME


def test_no_watermarks_means_one_firing_at_the_end() -> None:
    strategy = hr.WatermarkStrategy.no_watermarks().with_timestamps("at")
    rows = [row(n) for n in (50, 3, 70, 5)]
    env, out, late = job(MemorySource(rows, SCHEMA), strategy, rows=1)
    result = run_local(env)
    assert marks(result) == [NO_WATERMARK] * 4 + [END_OF_TIME]
    assert counts(out) == [(0, 2), (50, 1), (70, 1)]
    assert late.to_pylist() == []


# the records' own timestamps


def test_records_have_timestamps_of_their_own() -> None:
    own = hr.WatermarkStrategy.monotonous().with_record_timestamps()
    rows = [{"key": "k", "at": START}] * 4
    source = MemorySource([rows[0], cut(), *rows[1:]], SCHEMA, timestamps=stamps(1, 2, 11, 23))
    env, out, _ = job(source, own)
    run_local(env)
    assert counts(out) == [(0, 2), (10, 1), (20, 1)]
    parted = MemorySource(
        partitions=[rows[:1], rows[1:]], schema=SCHEMA, timestamps=[stamps(1), stamps(2, 11, 23)]
    )
    env, out, _ = job(parted, own)
    run_local(env, tasks=2)
    assert counts(out) == [(0, 2), (10, 1), (20, 1)]


def stamps(*seconds: int) -> list[datetime]:
    return [START + second * SECOND for second in seconds]


def test_nexmark_knows_when_events_happened_before_they_were_disturbed() -> None:
    stream = Nexmark(events=5_000, disorder=9 * SECOND, late=0.1, event_rate=100)
    own = hr.WatermarkStrategy.monotonous().with_record_timestamps()
    env = hr.Environment("nexmark", epochs=hr.Epochs(rows=500))
    bids, late = env.from_source(stream.bids(["auction"]), watermarks=own, uid="in"), MemorySink()
    result = bids.key_by("auction").window(TUMBLING).aggregate(rows=hr.count(), uid="count")
    result.late.sink_to(late, uid="late")
    assert run_local(env).counts["count"]["in"] == 4_600
    assert late.to_pylist() == []


# idleness


def idle_job(bounded: bool, strategy: Any = None) -> tuple[hr.Environment, MemorySink, MemorySink]:
    """Two sources; the second has rows only if it is given some."""
    chosen = strategy or BY_COLUMN
    env = hr.Environment("idle", epochs=hr.Epochs(rows=2))
    out, late = MemorySink(), MemorySink()
    busy = MemorySource([row(n) for n in range(0, 40, 5)], SCHEMA, bounded=bounded)
    silent = MemorySource([], SCHEMA, bounded=bounded)
    left = env.from_source(busy, watermarks=chosen, uid="busy")
    result = windowed(left.union(env.from_source(silent, watermarks=chosen, uid="silent")))
    result.sink_to(out, uid="out")
    result.late.sink_to(late, uid="late")
    return env, out, late


def test_a_source_that_never_sends_holds_everything_back_without_idleness() -> None:
    env, out, _ = idle_job(bounded=False)
    run_local(env, wait=timedelta(hours=1))
    assert out.to_pylist() == []


def test_a_source_that_never_sends_is_passed_over_when_it_is_idle() -> None:
    env, out, late = idle_job(bounded=False, strategy=BY_COLUMN.with_idleness(5 * SECOND))
    result = run_local(env, wait=timedelta(minutes=1))
    assert counts(out) == [(0, 2), (10, 2), (20, 2)]
    assert result.watermarks["silent"] == NO_WATERMARK
    assert late.to_pylist() == []


def test_a_source_without_rows_that_has_ended_holds_nobody() -> None:
    env, out, _ = idle_job(bounded=True)
    run_local(env)
    assert counts(out) == [(0, 2), (10, 2), (20, 2), (30, 2)]


class Hiding(Enumerator):
    """Shows only the first row of partition 1, until it was asked so many times."""

    def __init__(self, inner: Enumerator, times: int) -> None:
        self._inner, self._left = inner, times

    def spans(self) -> Mapping[str, Span]:
        found = dict(self._inner.spans())
        if self._left > 0:
            self._left -= 1
            found["1"] = replace(found["1"], end=1, finished=False)
        return found


class Waking(MemorySource):
    """Lists of which one falls silent for a while."""

    def enumerator(self, directory: Path) -> Enumerator:
        return Hiding(super().enumerator(directory), 5)


def test_an_idle_partition_that_wakes_with_old_rows_follows_the_lateness_rule() -> None:
    # Partition 1 shows one row, then nothing for five epochs of two seconds, then old rows.
    old = [row(1, "j"), cut(), row(22, "j"), row(2, "j"), row(48, "j")]
    busy = [row(n) for n in (1, 8, 15, 22, 29, 36, 41, 42, 43)]
    source = Waking(partitions=[busy, old], schema=SCHEMA)
    env, out, late = job(source, BY_COLUMN.with_idleness(3 * SECOND))
    run_local(env, epochs=hr.Epochs(max_rows=2), step=2 * SECOND)
    lost = sorted((found["key"], found["at"].second) for found in late.to_pylist())
    assert lost == [("j", 2), ("j", 22)]
    assert (40, 1) in counts(out)


def test_the_year_9999_cannot_move_time_unless_it_is_let_in() -> None:
    far = {"key": "k", "at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)}
    env, out, late = job(MemorySource([row(1), far, cut(), row(12)], SCHEMA), BY_COLUMN)
    run_local(env)
    assert counts(out) == [(0, 1), (10, 1)]
    open_ended = BY_COLUMN.with_max_ahead(None)
    env, _, late = job(MemorySource([row(1), far, cut(), row(12)], SCHEMA), open_ended)
    run_local(env)
    assert [found["at"].second for found in late.to_pylist()] == [12]


# time in the middle of a graph


def assigned_job(
    rows: Sequence[Any], *, shape: str = "select", epoch_rows: int = 2
) -> tuple[hr.Environment, MemorySink, MemorySink]:
    """A source without a strategy; event time begins behind the first step."""
    env = hr.Environment("middle", epochs=hr.Epochs(rows=epoch_rows))
    out, errors = MemorySink(), MemorySink()
    stream: Any = env.from_source(MemorySource(partitions=rows, schema=SCHEMA), uid="in")
    if shape == "batches":
        stream = stream.map_batches(lambda batch: batch, SCHEMA)
    else:
        stream = stream.select("key", "at")
    timed = stream.assign_timestamps_and_watermarks(BY_COLUMN, uid="timed")
    timed.errors.sink_to(errors, uid="errors")
    windowed(timed).sink_to(out, uid="out")
    return env, out, errors


@pytest.mark.parametrize(
    ("shape", "watermarks"),
    [
        ("select", [NO_WATERMARK, us(1) - 1, us(3) - 1, us(7) - 1, END_OF_TIME]),
        ("batches", [NO_WATERMARK, us(11) - 1, us(13) - 1, us(17) - 1, END_OF_TIME]),
    ],
)
def test_time_that_begins_in_the_middle_follows_one_epoch_later(
    shape: str, watermarks: list[int]
) -> None:
    lines = [[row(n) for n in (1, 3, 7, 12)], [row(n) for n in (11, 13, 17, 25)]]
    env, out, _ = assigned_job(lines, shape=shape)
    result = run_local(env, tasks=2)
    assert marks(result, "timed") == watermarks
    assert marks(result)[:-1] == [NO_WATERMARK] * 4
    assert result.watermarks == {"in": END_OF_TIME, "timed": END_OF_TIME}
    assert sum(found["rows"] for found in out.to_pylist()) == (8 if shape == "select" else 6)


def test_rows_without_a_usable_timestamp_go_to_errors_of_the_step() -> None:
    rows = [[row(1), {"key": "k", "at": None}, row(2)]]
    env, out, errors = assigned_job(rows)
    result = run_local(env)
    (letter,) = errors.to_pylist()
    assert (letter["uid"], letter["cause"], letter["offset"]) == ("timed", "null timestamp", 1)
    assert counts(out) == [(0, 2)]
    assert result.counts["timed"] == {"in": 3, "out": 2, "dead": 1}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_does_not_change_time_in_the_middle(point: Any) -> None:
    lines = [[row(n) for n in range(0, 40, 3)], [row(n) for n in range(0, 40, 2)]]
    env, out, _ = assigned_job(lines, epoch_rows=5)
    calm, found = run_local(env, 2), counts(out)
    disturbed = run_local(env, 3, crashes=[(1, point), (3, point)])
    assert marks(disturbed, "timed") == marks(calm, "timed")
    assert counts(out) == found


def test_time_can_begin_again_behind_a_window() -> None:
    env = hr.Environment("twice", epochs=hr.Epochs(rows=4))
    out = MemorySink()
    first = windowed(
        env.from_source(
            MemorySource([row(n) for n in range(60)], SCHEMA), watermarks=BY_COLUMN, uid="in"
        ),
        uid="first",
    )
    again = hr.WatermarkStrategy.monotonous().with_timestamps("window_start")
    timed = first.assign_timestamps_and_watermarks(again, uid="timed")
    wide = hr.windows.Tumbling(20 * SECOND)
    timed.key_by("key").window(wide).aggregate(windows=hr.count(), uid="second").sink_to(
        out, uid="out"
    )
    result = run_local(env, 2)
    found = [(f["window_start"].second, f["windows"]) for f in out.to_pylist()]
    assert sorted(found) == [(0, 2), (20, 2), (40, 2)]
    assert us(30) - 1 in marks(result, "timed")
    assert result.counts["second"].get("late", 0) == 0


def test_ingestion_time_can_begin_in_the_middle_too() -> None:
    env, out = hr.Environment("ingested", epochs=hr.Epochs(rows=4)), MemorySink()
    stream = env.from_source(MemorySource([{"key": "k"}] * 4, {"key": str}), uid="in")
    timed = stream.assign_timestamps_and_watermarks(hr.WatermarkStrategy.ingestion_time(), uid="t")
    windowed(timed).sink_to(out, uid="out")
    run_local(env)
    assert [found["rows"] for found in out.to_pylist()] == [4]


# alignment


@pytest.mark.parametrize("epochs", [hr.Epochs(rows=40), hr.Epochs(max_rows=80)])
def test_aligned_sources_read_everything_and_stay_together(epochs: hr.Epochs) -> None:
    env, out = hr.Environment("aligned", epochs=epochs), MemorySink()
    slow = [row(n / 10, "slow") for n in range(1000)]
    fast = [row(n, "fast") for n in range(100)]
    together = BY_COLUMN.with_alignment("g", 10 * SECOND)
    left = env.from_source(MemorySource(slow, SCHEMA), watermarks=together, uid="slow")
    right = env.from_source(MemorySource(fast, SCHEMA), watermarks=together, uid="fast")
    windowed(left.union(right)).sink_to(out, uid="out")
    result = run_local(env)
    assert sum(found["rows"] for found in out.to_pylist()) == 1100
    ends = [(e.ranges["slow"]["0"][1] / 10, e.ranges["fast"]["0"][1]) for e in result.epochs]
    assert max(fast - slow for slow, fast in ends[1:] if slow < 100) <= 90
    assert max(fast - slow for slow, fast in ends if 50 < slow < 100) <= 11
