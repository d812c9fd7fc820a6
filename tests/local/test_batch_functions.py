"""Functions on columns in a whole job: a window behind them, crashes, other numbers of shards."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.errors import UserCodeError
from headrace.testing import LocalResult, run_local

ROW = {"user": str, "n": int, "at": datetime}
SEEN = pa.schema([("user", pa.string()), ("seen", pa.int64())])
START = datetime(2025, 1, 1, tzinfo=UTC)
#: Users come in turns, each for five rows.
ROWS = [
    {"user": f"user-{n // 5 % 3}", "n": n, "at": START + timedelta(seconds=n)} for n in range(60)
]


class Quiet(hr.KeyedBatchFunction):
    """How many rows a user had when he was quiet for three seconds."""

    seen: hr.state.Value[int]
    last: hr.state.Value[datetime]
    rows = hr.OutputTag("rows", {"user": str, "n": int})

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
        seen = self.seen.get(ctx.keys, default=0)
        np.add.at(seen, ctx.slots, 1)
        self.seen.put(ctx.keys, seen)
        last = self.last.get(ctx.keys, default=datetime(1970, 1, 1, tzinfo=UTC))
        np.maximum.at(last, ctx.slots, ctx.timestamps.astype("datetime64[us]"))
        self.last.put(ctx.keys, last)
        ctx.timers.register_event_time(ctx.slots, ctx.timestamps + 3_000_000)
        ctx.metrics.counter("rows").inc(batch.num_rows)
        yield self.rows, batch.select(["user", "n"])

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> None:
        last = self.last.get(ctx.slots, default=START).astype(np.int64)
        quiet = np.flatnonzero(last + 3_000_000 == ctx.timestamps)
        seen = self.seen.get(ctx.slots[quiet], default=0)
        told = [timers.column("user").take(pa.array(quiet)), pa.array(seen)]
        ctx.emit(pa.RecordBatch.from_arrays(told, schema=SEEN), timestamps=ctx.timestamps[quiet])
        self.seen.clear(ctx.slots[quiet])
        self.last.clear(ctx.slots[quiet])


def job(function: Any = None, **options: Any) -> tuple[LocalResult, MemorySink, MemorySink]:
    env = hr.Environment("quiet", epochs=hr.Epochs(rows=7))
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=2))
    source = MemorySource(ROWS, ROW)
    stream = env.from_source(source, watermarks=strategy.with_timestamps("at"), uid="in")
    quiet = stream.key_by("user").process(function or Quiet(), schema=SEEN, uid="quiet")
    windows, sides = MemorySink(), MemorySink()
    counts = quiet.key_by("user").window(hr.windows.Tumbling(timedelta(minutes=1)))
    counts.aggregate(total=hr.sum("seen"), uid="totals").sink_to(windows, uid="windows")
    quiet.side_output(Quiet.rows).sink_to(sides, uid="sides")
    return run_local(env, **options), windows, sides


def told(windows: MemorySink) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in windows.to_pylist():
        total[row["user"]] += row["total"]
    return total


def test_a_window_behind_gets_every_result() -> None:
    result, windows, sides = job(shards=2)
    assert told(windows) == {f"user-{n}": 20 for n in range(3)}
    assert sorted(row["n"] for row in sides.to_pylist()) == list(range(60))
    assert result.metrics["quiet"]["rows"] == 60


@pytest.mark.parametrize("point", POINTS)
def test_crashes_and_other_shards_change_nothing(point: Any) -> None:
    _, calm, _ = job(shards=1)
    crashes = [(epoch, point) for epoch in (1, 3, 4)]
    result, windows, sides = job(shards=2, crashes=crashes, rescale={2: 3, 5: 1})
    assert result.restarts == len(crashes) + 2
    assert sorted(map(repr, windows.to_pylist())) == sorted(map(repr, calm.to_pylist()))
    assert len(sides.to_pylist()) == 60


def test_a_failure_names_the_step() -> None:
    class Failing(Quiet):
        def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
            raise ValueError("no such thing")

    with pytest.raises(UserCodeError, match=r"step 'quiet' raised ValueError: no such thing"):
        job(Failing())


def test_a_call_that_takes_too_long_is_ended() -> None:
    class Slow(Quiet):
        def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> Any:
            while True:
                pass

    env = hr.Environment("slow")
    stream = env.from_source(MemorySource(ROWS, ROW), uid="in")
    limited = stream.key_by("user").process(
        Slow(), schema=SEEN, uid="slow", limit=timedelta(milliseconds=50)
    )
    limited.sink_to(MemorySink(), uid="out")
    with pytest.raises(UserCodeError, match="took longer than its limit"):
        run_local(env)
