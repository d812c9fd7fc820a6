"""What live keys cost: time a row and memory, when every epoch touches the same number of keys.

    python benchmarks/state_growth.py

First every key gets a row, all in one window that stays open. Then come the measured epochs: 200,000 rows that touch 100,000
keys, spread evenly over all that there are, twice each. If an epoch cost what all keys cost, time a row would grow with
them. The last line has one worker instead of two: memory that workers share is not paid twice.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from memory_use import memory_use
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace.connectors import files, generator

EPOCH_ROWS = 200_000
TOUCHED = 100_000
#: A prime, so that the touched keys do not repeat before all had their turn.
STRIDE = 15_485_863
EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)


def main() -> None:
    """Each measurement in a process of its own, then the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--epochs", type=int, default=30, help="measured epochs")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.keys[0], options.epochs, options.cores)
        return
    table = Table(
        "live keys", "cores", "us a row", "against the first", "processes", "PSS MB", "RSS MB"
    )
    first = None
    runs = [(keys, options.cores) for keys in options.keys] + [(options.keys[-1], 1)]
    for keys, cores in runs:
        found = _child(keys, options.epochs, cores)
        spent_us = found["seconds"] * 1e6 / found["rows"]
        first = first or spent_us
        ratio = f"{spent_us / first:.2f}x" if cores == options.cores else ""
        sizes = (f"{found[name] / 2**20:,.0f}" for name in ("pss", "rss"))
        table.add_row(
            f"{keys:,}", str(cores), f"{spent_us:.2f}", ratio, str(found["processes"]), *sizes
        )
    Console().print(table)


def _child(keys: int, epochs: int, cores: int) -> dict[str, float]:
    numbers = ["--keys", str(keys), "--epochs", str(epochs), "--cores", str(cores)]
    command = [sys.executable, __file__, "--measure", *numbers]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _measure(keys: int, epochs: int, cores: int) -> None:
    home = Path(tempfile.mkdtemp(prefix="headrace-state-growth-"))
    fill_epochs = -(-keys // EPOCH_ROWS)
    try:
        job = _pipeline(home, keys, fill_epochs, cores).start()
        # Epoch 0 may be empty, and a few epochs more let compaction settle.
        first = fill_epochs + 5
        job.await_epoch(first)
        began, rows = time.monotonic(), job.summary.rows
        job.await_epoch(first + epochs)
        seconds, rows = time.monotonic() - began, job.summary.rows - rows
        use = memory_use(os.getpid())
        job.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    found = {"seconds": seconds, "rows": rows, "processes": use.processes}
    print(json.dumps(found | {"pss": use.pss, "rss": use.rss}))


def _pipeline(home: Path, keys: int, fill_epochs: int, cores: int) -> hr.Environment:
    filled = fill_epochs * EPOCH_ROWS

    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        block, place = np.divmod(number - filled, EPOCH_ROWS)
        touched = (block * TOUCHED + place % TOUCHED) * STRIDE % keys
        account = np.where(number < filled, number % keys, touched)
        return pa.record_batch([account, number % 100, number.view("datetime64[us]")], EVENTS)

    env = hr.Environment(
        "state-growth",
        checkpoint=home / "checkpoint",
        shards=cores,
        master=f"local[{cores}]",
        epochs=hr.Epochs(rows=EPOCH_ROWS),
    )
    env.from_source(
        generator.Function(EVENTS, events, rows=None),
        watermarks=hr.WatermarkStrategy.monotonous().with_timestamps("ts"),
        uid="events",
    ).key_by("account").window(hr.windows.Tumbling(timedelta(days=30))).aggregate(
        events=hr.count(), total=hr.sum("amount"), uid="per-account"
    ).sink_to(files.FileSink(home / "out"), uid="results")
    return env


if __name__ == "__main__":
    main()
