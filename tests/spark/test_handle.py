"""Starting, watching, stopping and resuming a job."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors import generator
from headrace.connectors.memory import MemorySink, MemorySource

START = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def numbers(start: int, end: int) -> pa.RecordBatch:
    at = [START + timedelta(seconds=n) for n in range(start, end)]
    return pa.RecordBatch.from_pydict({"n": list(range(start, end)), "at": at}, schema=SCHEMA)


def job(root: Path, *, rows: int | None, **settings: Any) -> tuple[hr.Environment, MemorySink]:
    """Counts per ten seconds; without `rows` the input never ends."""
    env = hr.Environment(
        "handle", checkpoint=root / "state", epochs=hr.Epochs(rows=25), **{"shards": 2, **settings}
    )
    sink = MemorySink()
    (
        env.from_source(
            generator.Function(SCHEMA, numbers, rows=rows),
            watermarks=hr.WatermarkStrategy.monotonous().with_timestamps("at"),
            uid="numbers",
        )
        .select("at", parity=hr.col("n") % 2)
        .key_by("parity")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .aggregate(rows=hr.count(), uid="counts")
        .sink_to(sink, uid="out")
    )
    return env, sink


def counted(sink: MemorySink) -> int:
    return sum(row["rows"] for row in sink.to_pylist())


def test_job_stops_between_epochs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    env, first = job(tmp_path, rows=None)
    handle = env.start()
    assert handle.await_epoch(3, timeout=timedelta(minutes=2))
    assert handle.watermarks["numbers"] > 0
    stopped = handle.stop(timeout=60)
    assert not stopped.finished
    assert handle.exception is None
    env, second = job(tmp_path, rows=None)
    handle = env.start()
    assert handle.await_epoch(stopped.epoch + 2, timeout=timedelta(minutes=2))
    drained = handle.stop(drain=True, timeout=60)
    assert drained.finished
    rows = drained.counts["numbers"]["out"]
    assert rows == 25 * drained.epoch
    # A new memory sink is given the last 16 epochs of earlier runs: here that is all of them.
    assert stopped.epoch < 16
    assert counted(second) == rows
    assert counted(first) < rows


def test_bounded_job_finishes_and_a_second_run_says_so(tmp_path: Path) -> None:
    env, sink = job(tmp_path, rows=60)
    summary = env.execute()
    assert (summary.finished, summary.rows, counted(sink)) == (True, 60, 60)
    again, _ = job(tmp_path, rows=60)
    repeated = again.execute()
    assert (repeated.was_finished, repeated.rows) == (True, 0)
    assert "finished in an earlier run" in str(repeated)


def test_second_start_on_one_checkpoint_is_refused(tmp_path: Path) -> None:
    env, _ = job(tmp_path, rows=None)
    handle = env.start()
    assert handle.await_epoch(0, timeout=timedelta(minutes=2))
    other, _ = job(tmp_path, rows=None)
    with pytest.raises(hr.errors.CheckpointInUse, match="in use by another run"):
        other.execute()
    assert handle.await_epoch(handle.epoch + 2, timeout=60)
    handle.stop(timeout=60)


def test_other_number_of_shards_is_refused(tmp_path: Path) -> None:
    env, _ = job(tmp_path, rows=25)
    env.execute()
    other, _ = job(tmp_path, rows=25, shards=3)
    with pytest.raises(hr.errors.CheckpointMismatch, match="leave shards out or say shards=2"):
        other.execute()


def test_user_error_names_step_offset_and_line_and_ends_after_its_attempts(tmp_path: Path) -> None:
    def third_fails(row: Any) -> dict[str, int]:
        if row.n == 3:
            raise ValueError("three is not allowed")
        return {"n": row.n}

    env = hr.Environment("failing", checkpoint=tmp_path / "state", restart=hr.Restart.never())
    stream = env.from_source(MemorySource([{"n": n} for n in range(5)]), uid="numbers")
    stream.map(third_fails, schema={"n": int}, uid="strict").sink_to(MemorySink(), uid="out")
    with pytest.raises(hr.errors.UserCodeError) as caught:
        env.execute()
    text = str(caught.value)
    assert "strict" in text
    assert "offset 3" in text
    assert "three is not allowed" in text
    assert "test_handle.py" in text
    assert "py4j" not in text.lower()
    assert "org.apache" not in text


def test_error_that_goes_away_is_survived_by_a_restart(tmp_path: Path) -> None:
    from headrace.testing import fail

    env = hr.Environment(
        "recovering", checkpoint=tmp_path / "state", restart=hr.Restart.fixed(timedelta(0), 2)
    )
    sink = MemorySink()
    rows: list[Any] = [{"n": 0}, {"n": 1}, fail("the disk was away", times=5), {"n": 2}]
    env.from_source(MemorySource(rows, schema={"n": int}), uid="numbers").sink_to(sink, uid="out")
    assert env.execute().finished
    assert [row["n"] for row in sink.to_pylist()] == [0, 1, 2]
