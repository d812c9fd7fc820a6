"""Headrace's keyed functions: a value and a timer for each row, row by row or on columns; or a map.

    python headrace_process.py rows|vectorised|map ROWS KEYS EVENT_RATE CORES files|discard|DIRECTORY [steady]

The clock runs from the end of epoch 0, when Spark and its workers are up, until the job has ended; the rows of epoch 0
are not counted. The end of the input makes all timers fire that are left. Results are written to Parquet files exactly once, or
discarded as the others' are; with a directory they stay there to be compared. `steady` never ends its input and measures
epochs of ROWS rows in mid-stream, when every key is live and as many timers fire as are set.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from contenders.discard import Discard

import headrace as hr
from headrace.connectors import files, generator

EVENTS = pa.schema(
    {
        "account": pa.int64(),
        "amount": pa.int64(),
        "shop": pa.int64(),
        "ts": pa.timestamp("us", tz="UTC"),
    }
)
TOLD = pa.schema({"account": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "total": pa.int64()})
#: 2026-01-01 00:00 UTC.
FIRST_MS = 1_767_225_600_000
SECOND = timedelta(seconds=1)
AHEAD = 3 * SECOND
AHEAD_US = 3_000_000
SHOPS = 10
STEADY_EPOCHS = 10


@dataclass
class Told:
    """What a key came to, and when that was told."""

    account: int
    at: datetime
    total: int


class Totals(hr.KeyedProcessFunction):
    """Adds up a key's amounts until a timer tells them."""

    total: hr.state.Value[int]

    def process_element(self, value: Any, ctx: Any) -> None:
        """One value and one timer."""
        self.total.update((self.total.value() or 0) + value.amount)
        ctx.timers.register_event_time(ctx.timestamp + AHEAD)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Told]:
        """Tell and forget."""
        yield Told(ctx.key, timestamp, self.total.value() or 0)
        self.total.clear()


class ColumnTotals(hr.KeyedBatchFunction):
    """The same on columns."""

    total: hr.state.Value[int]

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> None:
        """A value for each key, a timer for each row."""
        totals = self.total.get(ctx.keys, default=0)
        np.add.at(totals, ctx.slots, batch.column("amount").to_numpy())
        self.total.put(ctx.keys, totals)
        ctx.timers.register_event_time(ctx.slots, ctx.timestamps + AHEAD_US)

    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        """What a key came to is told by the first of its timers, and the others tell nothing."""
        totals = self.total.get(ctx.keys, default=0)
        self.total.clear(ctx.keys)
        told = np.zeros(len(ctx.slots), np.int64)
        _, firsts = np.unique(ctx.slots, return_index=True)
        told[firsts] = totals[ctx.slots[firsts]]
        return pa.record_batch([*timers.columns, told], TOLD)


class Shops(hr.KeyedProcessFunction):
    """One entry of a key's map is read and written for each row; every hundredth is told."""

    visits: hr.state.Map[int, int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Told]:
        """One get and one put."""
        visits = (self.visits.get(value.shop) or 0) + 1
        self.visits.put(value.shop, visits)
        if value.amount == 0:
            yield Told(value.account, value.ts, visits)


def main(kind: str, numbers: list[int], sink: str, words: list[str]) -> None:
    """Run the pipeline once and print what was measured as one line of JSON."""
    home = Path(tempfile.mkdtemp(prefix="headrace-benchmark-"))
    out = {"files": home / "out", "discard": None}.get(sink, Path(sink))
    steady = "steady" in words
    source = generator.Function(
        EVENTS, _maker(numbers[1], numbers[2]), rows=None if steady else numbers[0]
    )
    try:
        # As PyFlink: a checkpoint every 2 s.
        epochs = hr.Epochs(rows=numbers[0] if steady else None, target=2 * SECOND)
        job = _pipeline(kind, source, home, out, numbers[3], epochs).start()
        found = _steady(job, kind, *numbers[:3]) if steady else _to_the_end(job)
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


def _steady(
    job: hr.JobHandle, kind: str, epoch_rows: int, keys: int, event_rate: int
) -> dict[str, float]:
    # Every entry of every key is there, and as many timers fire as are set, when all have come and the first timers passed.
    rounds = SHOPS if kind == "map" else 1
    first = max(10, (rounds * keys + 5 * event_rate) // epoch_rows + 3)
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
    function = {"rows": Totals, "vectorised": ColumnTotals, "map": Shops}[kind]()
    told = events.key_by("account").process(function, schema=TOLD, uid="totals")
    told.sink_to(Discard() if out is None else files.FileSink(out), uid="told")
    return env


def _maker(keys: int, event_rate: int) -> Callable[[int, int], pa.RecordBatch]:
    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        time_us = (FIRST_MS + number * 1000 // event_rate) * 1000
        columns = [
            (number * 7919 + 13) % keys,
            number % 100,
            number // keys % SHOPS,
            time_us.view("datetime64[us]"),
        ]
        return pa.record_batch(columns, EVENTS)

    return events


if __name__ == "__main__":
    main(sys.argv[1], [int(a) for a in sys.argv[2:6]], sys.argv[6], sys.argv[7:])
