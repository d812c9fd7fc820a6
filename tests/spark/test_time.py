"""A generator, alignment and time in the middle of a graph on Spark, stopped once on the way."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalEpoch, run_local
from headrace.watermarks import CLOCK
from tests.spark.conftest import logged_epochs

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCHEMA = {"key": str, "at": datetime}


class Lagging(hr.WatermarkGenerator):
    """Behind the greatest timestamp by a second for every epoch so far."""

    def __init__(self) -> None:
        self.greatest: np.datetime64 | None = None
        self.lag = timedelta(0)

    def on_events(self, timestamps: Any) -> None:
        latest = timestamps.max()
        self.greatest = latest if self.greatest is None else max(latest, self.greatest)

    def on_epoch(self, clock: datetime) -> datetime | None:
        self.lag += SECOND
        if self.greatest is None:
            return None
        return self.greatest.astype(datetime).replace(tzinfo=UTC) - self.lag


def line(name: str, rows: int, step: float) -> list[dict[str, Any]]:
    return [{"key": f"{name}{n % 5}", "at": START + n * step * SECOND} for n in range(rows)]


def job(root: Path) -> tuple[hr.Environment, dict[str, MemorySink]]:
    """Two aligned sources, one by a generator, the other with a new time behind a step; one window."""
    env = hr.Environment("time", checkpoint=root / "state", epochs=hr.Epochs(rows=60), shards=2)
    sinks = {"results": MemorySink(), "late": MemorySink(), "errors": MemorySink()}
    slow = MemorySource(partitions=[line("a", 150, 0.5), line("b", 150, 0.5)], schema=SCHEMA)
    fast = MemorySource([*line("c", 80, 3.0), {"key": "c0", "at": None}], schema=SCHEMA)
    together = ("shop", 20 * SECOND)
    generated = hr.WatermarkStrategy.for_generator(Lagging).with_timestamps("at")
    ordered = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    left = env.from_source(slow, watermarks=generated.with_alignment(*together), uid="slow")
    right = env.from_source(fast, watermarks=ordered.with_alignment(*together), uid="fast")
    again = hr.WatermarkStrategy.bounded_out_of_orderness(2 * SECOND).with_timestamps("at")
    timed = right.select("key", "at").assign_timestamps_and_watermarks(again, uid="timed")
    right.errors.sink_to(sinks["errors"], uid="errors")
    result = left.union(timed).key_by("key").window(hr.windows.Tumbling(10 * SECOND))
    counted = result.aggregate(rows=hr.count(), uid="count")
    counted.sink_to(sinks["results"], uid="results")
    counted.late.sink_to(sinks["late"], uid="late")
    return env, sinks


def cuts(epochs: list[LocalEpoch]) -> list[tuple[Any, ...]]:
    """What every epoch read and was judged by, but for the clock."""
    return [
        (e.ranges, {uid: mark for uid, mark in e.watermarks.items() if uid != CLOCK})
        for e in epochs
    ]


def bags(sinks: dict[str, MemorySink]) -> dict[str, list[str]]:
    return {name: sorted(map(str, sink.to_pylist())) for name, sink in sinks.items()}


def test_spark_and_this_process_agree_on_time(tmp_path: Path) -> None:
    env, sinks = job(tmp_path)
    local = run_local(env, 3, tasks=2, crashes=[(2, "staged")])
    wanted = bags(sinks)
    assert len(wanted["results"]) > 20
    assert len(wanted["errors"]) == 1
    assert {"slow", "fast", "timed", "slow+timed"} < local.epochs[0].watermarks.keys()
    handle = job(tmp_path)[0].start()
    assert handle.await_epoch(2, timeout=120)
    handle.stop(timeout=60)
    env, sinks = job(tmp_path)
    assert env.execute().finished
    assert cuts(logged_epochs(tmp_path / "state")) == cuts(list(local.epochs))
    assert bags(sinks) == wanted
