"""How long an epoch of 1,000 rows takes, with the breakdown that Spark reports.

    python benchmarks/small_epochs.py

Count and sum per key in a 10 s window, 100,000 keys, state checkpointed in every epoch. There are always more rows to
read, so epochs follow each other at once. The first epochs, in which the JVM warms up, are left out.
"""

import argparse
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace.connectors import files, generator

KEYS = 100_000
EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)


def events(start: int, end: int) -> pa.RecordBatch:
    """A thousand rows for each tenth of a second of event time."""
    number = np.arange(start, end, dtype=np.int64)
    columns = [(number * 7919 + 13) % KEYS, number % 100, (number * 100).view("datetime64[us]")]
    return pa.record_batch(columns, EVENTS)


def main() -> None:
    """Run, collect what Spark says about each epoch, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000, help="rows in an epoch")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--skip", type=int, default=50, help="epochs that are left out")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="headrace-small-epochs-"))
    try:
        job = _pipeline(home, options).start()
        durations = _watch(job, options.epochs)
        job.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    kept = [d for epoch, d in sorted(durations.items()) if epoch >= options.skip]
    Console().print(_table(kept, options))


def _pipeline(home: Path, options: argparse.Namespace) -> hr.Environment:
    env = hr.Environment(
        "small-epochs",
        checkpoint=home / "checkpoint",
        shards=options.cores,
        master=f"local[{options.cores}]",
        epochs=hr.Epochs(rows=options.rows),
    )
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=1))
    source = generator.Function(EVENTS, events, rows=None)
    env.from_source(source, watermarks=strategy.with_timestamps("ts"), uid="events").key_by(
        "account"
    ).window(hr.windows.Tumbling(timedelta(seconds=10))).aggregate(
        events=hr.count(), total=hr.sum("amount"), uid="per-account"
    ).sink_to(files.FileSink(home / "out"), uid="results")
    return env


def _watch(job: hr.JobHandle, epochs: int) -> dict[int, dict[str, int]]:
    """What Spark says took how long, in milliseconds, by epoch."""
    durations: dict[int, dict[str, int]] = {}
    job.await_epoch(0)
    while job.epoch < epochs:
        # Spark keeps the last 20 reports, so looking every 10 epochs misses none.
        job.await_epoch(job.epoch + 10)
        for progress in job.spark_progress:
            durations[_number(progress)] = dict(progress["durationMs"])
    return durations


def _number(progress: Any) -> int:
    return int(progress["batchId"])


def _table(kept: list[dict[str, int]], options: argparse.Namespace) -> Table:
    title = f"{len(kept)} epochs of {options.rows:,} rows, {options.cores} cores, milliseconds"
    table = Table("", "p50", "p90", "p99", title=title)
    parts = sorted({part for durations in kept for part in durations})
    parts.sort(key=lambda part: part != "triggerExecution")
    for part in parts:
        values = [durations.get(part, 0) for durations in kept]
        name = "the whole epoch" if part == "triggerExecution" else f"  {part}"
        table.add_row(name, *(f"{np.percentile(values, q):,.0f}" for q in (50, 90, 99)))
    return table


if __name__ == "__main__":
    main()
