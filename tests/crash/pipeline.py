"""The job that crash tests kill. Run as a script: `pipeline.py ROOT`.

Every row carries (key, sequence), so a checker that reads only the sinks can tell what was lost, doubled or
disordered. One sink takes all rows as they come, one takes windows, one takes late rows.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.connectors import files, generator

KEYS = 50
ROWS = int(os.environ.get("CRASH_ROWS", "24000"))
ROWS_PER_EPOCH = 2_000
START = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [("key", pa.int64()), ("sequence", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))]
)


def make(start: int, end: int) -> pa.RecordBatch:
    """Rows `[start, end)`: 100 a second of event time, every 97th two minutes late."""
    number = np.arange(start, end, dtype=np.int64)
    at = int(START.timestamp()) * 1_000_000 + number * 10_000
    at = np.where(number % 97 == 96, at - 120_000_000, at)
    columns = [number % KEYS, number // KEYS, at]
    arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def build(root: Path, restart: hr.Restart) -> hr.Environment:
    """The job at `root`; its outputs are raw/, windows/ and late/."""
    env = hr.Environment(
        "crash",
        checkpoint=root / "state",
        epochs=hr.Epochs(rows=ROWS_PER_EPOCH),
        restart=restart,
        shards=2,
    )
    rows = env.from_source(
        generator.Function(SCHEMA, make, rows=ROWS),
        watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(
            timedelta(seconds=1)
        ).with_timestamps("at"),
        uid="rows",
    )
    rows.sink_to(files.FileSink(root / "raw", format="parquet"), uid="raw")
    windows = (
        rows.key_by("key")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .allowed_lateness(timedelta(seconds=20))
        .aggregate(rows=hr.count(), total=hr.sum("sequence"), uid="windows")
    )
    windows.sink_to(files.FileSink(root / "windows", format="parquet"), uid="windows-out")
    windows.late.sink_to(files.FileSink(root / "late", format="jsonl"), uid="late-out")
    return env


if __name__ == "__main__":
    attempts = int(os.environ.get("CRASH_RESTARTS", "0"))
    policy = hr.Restart.fixed(timedelta(seconds=0), attempts) if attempts else hr.Restart.never()
    try:
        build(Path(sys.argv[1]), policy).execute()
    except hr.errors.HeadraceError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(1)
