"""Headrace counts and sums per key in one kind of window, state checkpointed and published every epoch.

    python headrace_windows.py KIND ROWS KEYS EVENT_RATE CORES files|discard|DIRECTORY [hot] [steady]

The clock runs from the end of epoch 0, when Spark and its workers are up, until the job has ended; the rows of epoch 0
are not counted. Results are written to Parquet files exactly once, or discarded as Flink's are; with a directory
they stay there to be compared. `hot` gives every second row to one key (see skew.py). `steady` never ends its input and measures
epochs of ROWS rows in mid-stream, when every key is live and as many windows go as come.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from contenders.discard import Discard

import headrace as hr
from headrace.connectors import files, generator

EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)
#: 2026-01-01 00:00 UTC.
FIRST_MS = 1_767_225_600_000
SECOND = timedelta(seconds=1)
#: The key that half of all rows have, if one has.
HOT = -1
STEADY_EPOCHS = 10

#: Made when asked for, so that a kind that is missing stops nobody else.
KINDS: dict[str, Callable[[], Any]] = {
    "tumbling": lambda: hr.windows.Tumbling(10 * SECOND),
    "hopping": lambda: hr.windows.Hopping(10 * SECOND, 2 * SECOND),
    "session": lambda: hr.windows.Session(3 * SECOND),
    "cumulating": lambda: hr.windows.Cumulating(10 * SECOND, 2 * SECOND),
    "look-back": lambda: hr.windows.LookBack(10 * SECOND),
    "count": lambda: hr.windows.Count(5),
}

Int64s = npt.NDArray[np.int64]


def main(kind: str, numbers: list[int], sink: str, words: list[str]) -> None:
    """Run the pipeline once and print what was measured as one line of JSON."""
    home = Path(tempfile.mkdtemp(prefix="headrace-benchmark-"))
    out = {"files": home / "out", "discard": None}.get(sink, Path(sink))
    steady = "steady" in words
    events = _maker(kind, keys=numbers[1], event_rate=numbers[2], hot="hot" in words)
    source = generator.Function(EVENTS, events, rows=None if steady else numbers[0])
    try:
        epochs = hr.Epochs(rows=numbers[0] if steady else None)
        job = _pipeline(kind, source, home, out, numbers[3], epochs).start()
        found = _steady(job, numbers[0], event_rate=numbers[2]) if steady else _to_the_end(job)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if job.summary.late or job.summary.dead:
        sys.exit(f"rows are in order, but some were late or dead: {job.summary}")
    print(json.dumps(found))


def _to_the_end(job: hr.JobHandle) -> dict[str, float]:
    job.await_epoch(0)
    began, before = time.monotonic(), job.summary.rows
    job.wait()
    return {"rows": job.summary.rows - before, "seconds": time.monotonic() - began}


def _steady(job: hr.JobHandle, epoch_rows: int, event_rate: int) -> dict[str, float]:
    # Windows are full, and as many go as come, when their size, the delay and an epoch or two have passed.
    first = max(10, 12 * event_rate // epoch_rows + 3)
    job.await_epoch(first)
    began, before = time.monotonic(), job.summary.rows
    job.await_epoch(first + STEADY_EPOCHS)
    found = {"rows": job.summary.rows - before, "seconds": time.monotonic() - began}
    job.stop()
    return found


def _pipeline(
    kind: str,
    source: generator.Function,
    home: Path,
    out: Path | None,
    cores: int,
    epochs: hr.Epochs,
) -> hr.Environment:
    env = hr.Environment(
        "benchmark",
        checkpoint=home / "checkpoint",
        shards=cores,
        master=f"local[{cores}]",
        epochs=epochs,
    )
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("ts")
    events = env.from_source(source, watermarks=strategy, uid="events")
    window = (
        events.key_by("account")
        .window(KINDS[kind]())
        .aggregate(events=hr.count(), total=hr.sum("amount"), uid="per-account")
    )
    window.sink_to(Discard() if out is None else files.FileSink(out), uid="results")
    return env


def _maker(
    kind: str, keys: int, event_rate: int, *, hot: bool
) -> Callable[[int, int], pa.RecordBatch]:
    def account(number: Int64s, rate: int) -> Int64s:
        if kind != "session":
            return (number * 7919 + 13) % keys
        # Half of the keys are at work; which half moves round all of them in ten seconds of event time.
        return ((number * 7919 + 13) % (keys // 2) + number * keys // (10 * rate)) % keys

    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        if hot:
            # What is left is the same stream at half the rate.
            accounts = np.where(number % 2 == 1, HOT, account(number // 2, event_rate // 2))
        else:
            accounts = account(number, event_rate)
        time_us = (FIRST_MS + number * 1000 // event_rate) * 1000
        return pa.record_batch([accounts, number % 100, time_us.view("datetime64[us]")], EVENTS)

    return events


if __name__ == "__main__":
    main(sys.argv[1], [int(a) for a in sys.argv[2:6]], sys.argv[6], sys.argv[7:])
