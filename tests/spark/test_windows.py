"""Every kind of window on Spark says what it says in this process; and a job tells why windows wait."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace import windows
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local
from tests.crash import pipeline
from tests.zoo import NAMES, add_windows

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ROWS = 9_000


def zoo(root: Path) -> tuple[hr.Environment, dict[str, MemorySink]]:
    env = hr.Environment(
        "windows", checkpoint=root / "state", epochs=hr.Epochs(rows=1_500), shards=2
    )
    rows = env.from_source(
        generator.Function(pipeline.SCHEMA, pipeline.make, rows=ROWS),
        watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("at"),
        uid="rows",
    )
    sinks = {name: MemorySink() for name in NAMES}
    add_windows(rows, sinks.__getitem__)
    return env, sinks


def bag(sink: MemorySink) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in sink.to_pylist())


def test_every_kind_of_window_is_the_same_on_spark_and_in_this_process(tmp_path: Path) -> None:
    env, there = zoo(tmp_path)
    assert env.execute().finished
    quiet, here = zoo(tmp_path)
    run_local(quiet, shards=3)
    for name in NAMES:
        if name != "by-clock":
            assert bag(there[name]), name
            assert bag(there[name]) == bag(here[name]), name
    assert sum(row["rows"] for row in there["by-clock"].to_pylist()) == ROWS


def test_a_waiting_job_says_who_holds_it_back_and_which_keys_are_heavy(tmp_path: Path) -> None:
    lively = [{"key": n % 2, "at": START + n * SECOND} for n in range(100)]
    silent = [{"key": 7, "at": START + 12 * SECOND}]
    env = hr.Environment("why", checkpoint=tmp_path / "state", shards=2)
    bound = hr.WatermarkStrategy.bounded_out_of_orderness(4 * SECOND).with_timestamps("at")
    (
        env.from_source(
            MemorySource(partitions=[lively, silent], bounded=False), watermarks=bound, uid="rows"
        )
        .key_by("key")
        .window(windows.Tumbling(10 * SECOND))
        .aggregate(rows=hr.count(), uid="per-key")
        .sink_to(MemorySink(), uid="out")
    )
    job = env.start()
    try:
        assert job.await_epoch(1, timeout=timedelta(minutes=2))
        (step,) = hr.why(job).steps
        assert (step.step, step.source, step.partition) == ("per-key", "rows", "1")
        assert step.last_event == START + 12 * SECOND
        assert step.fires_at == START + 10 * SECOND - timedelta(microseconds=1)
        assert step.needs == START + 14 * SECOND
        assert step.keys == 2
        assert "partition '1' of 'rows'" in str(job.why())
        assert job.step_watermarks == {"per-key": START + 8 * SECOND - timedelta(microseconds=1)}
        assert job.heavy_keys["per-key"] == {'{"key": 0}': 50, '{"key": 1}': 50, '{"key": 7}': 1}
    finally:
        job.stop(timeout=60)
