"""Headrace counts and sums per key in a tumbling window, state checkpointed and published every epoch.

The clock runs from the end of epoch 0, when Spark and its workers are up, until the job has ended; the rows
of epoch 0 are not counted. Results are written to Parquet files exactly once, or discarded as the other
contenders do.
"""

import json
import shutil
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from contenders.discard import Discard

import headrace as hr
from headrace.connectors import files, generator

EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)


def main(rows: int, keys: int, event_rate: int, cores: int, sink: str) -> None:
    """Run the pipeline once and print what was measured as one line of JSON."""

    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        time_us = (number * 1_000_000 // event_rate).view("datetime64[us]")
        return pa.record_batch([(number * 7919 + 13) % keys, number % 100, time_us], EVENTS)

    home = Path(tempfile.mkdtemp(prefix="headrace-benchmark-"))
    env = hr.Environment(
        "benchmark", checkpoint=home / "checkpoint", shards=cores, master=f"local[{cores}]"
    )
    window = (
        env.from_source(
            generator.Function(EVENTS, events, rows=rows),
            watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(
                timedelta(seconds=5)
            ).with_timestamps("ts"),
            uid="events",
        )
        .key_by("account")
        .window(hr.windows.Tumbling(timedelta(seconds=10)))
        .aggregate(events=hr.count(), total=hr.sum("amount"), uid="per-account")
    )
    window.sink_to(files.FileSink(home / "out") if sink == "files" else Discard(), uid="results")
    job = env.start()
    job.await_epoch(0)
    began, before = time.monotonic(), job.summary.rows
    job.wait()
    print(json.dumps({"rows": rows - before, "seconds": time.monotonic() - began}))
    shutil.rmtree(home)


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:5]]
    main(numbers[0], numbers[1], numbers[2], numbers[3], sys.argv[5])
