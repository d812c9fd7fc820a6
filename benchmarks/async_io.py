"""What `map_async` costs: rows a second with an `async def` that waits 5 ms, 1,000 calls at a time, with time-outs.

    python benchmarks/async_io.py                the operator alone on one core, then a job on Spark
    python benchmarks/async_io.py --only operator

The operator gets batches of 64k rows and each figure is the best of three; the same calls without a time-out show what
that costs. On Spark the generator's rows go through `map_async` into a sink that discards them, checkpointed every epoch; the
clock runs from the end of epoch 0, when workers are up, and every task has 1,000 calls of its own.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from contenders.discard import Discard
from memory_use import descendants

import headrace as hr
from headrace._runtime import registry
from headrace._runtime.rows import Rows
from headrace.connectors import generator

EVENTS = pa.schema({"account": pa.int64(), "amount": pa.int64()})
BATCH_ROWS = 65_536
PASSES = 3
WAIT_S = 0.005
CAPACITY = 1_000
TIMEOUT = timedelta(seconds=1)


@dataclass
class Enriched:
    """An event and what was found."""

    account: int
    amount: int
    found: int


async def enrich(event: Any) -> Enriched:
    """A service that answers after 5 ms."""
    await asyncio.sleep(WAIT_S)
    return Enriched(event.account, event.amount, event.account * 2)


def events(start: int, end: int) -> pa.RecordBatch:
    """Rows `[start, end)`."""
    number = np.arange(start, end, dtype=np.int64)
    return pa.record_batch([(number * 7919 + 13) % 100_000, number % 100], EVENTS)


def main() -> None:
    """Both figures, or one of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=600_000, help="rows of the job on Spark")
    parser.add_argument("--epoch-rows", type=int, default=100_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=["operator", "spark"])
    options = parser.parse_args()
    if options.only != "spark":
        for name, timeout in (("with time-outs", TIMEOUT), ("without", None)):
            passes = [_operator(timeout) for _ in range(PASSES)]
            best, cost_us = max(speed for speed, _ in passes), min(cost for _, cost in passes)
            print(
                f"operator alone, one core, {name}: {best:,.0f} rows/s, {cost_us:.1f} us of the core a row",
                flush=True,
            )
    if options.only != "operator":
        speed, cost_us = _on_spark(options)
        print(
            f"on Spark, {options.cores} cores, with time-outs: {speed:,.0f} rows/s,"
            f" {cost_us:.1f} us of a core a row with Spark's share",
            flush=True,
        )


def _operator(timeout: timedelta | None) -> tuple[float, float]:
    """Rows a second, and the microseconds of a core that a row costs, which other programs do not change as much."""
    stream = hr.Environment("operator").from_source(
        generator.Function(EVENTS, events, rows=None), uid="events"
    )
    built = stream.map_async(enrich, capacity=CAPACITY, timeout=timeout)
    operator = registry.stateless(built._graph.nodes[-1])  # noqa: SLF001
    rows = Rows(events(0, BATCH_ROWS), None)
    began, worked = time.perf_counter(), time.process_time()
    made = sum(len(found) for _, found in operator.process(rows))
    assert made == BATCH_ROWS
    cost_us = (time.process_time() - worked) / BATCH_ROWS * 1e6
    return BATCH_ROWS / (time.perf_counter() - began), cost_us


def _on_spark(options: argparse.Namespace) -> tuple[float, float]:
    """As above; the cost is that of the JVM and of all workers."""
    home = Path(tempfile.mkdtemp(prefix="headrace-async-"))
    try:
        env = hr.Environment(
            "async-io",
            checkpoint=home / "checkpoint",
            shards=options.cores,
            master=f"local[{options.cores}]",
            epochs=hr.Epochs(rows=options.epoch_rows),
        )
        source = generator.Function(EVENTS, events, rows=options.rows)
        enriched = env.from_source(source, uid="events").map_async(
            enrich, capacity=CAPACITY, timeout=TIMEOUT, uid="enrich"
        )
        enriched.sink_to(Discard(), uid="results")
        job = env.start()
        job.await_epoch(0)
        began, worked, before = time.monotonic(), _worked_s(), job.summary.rows
        # Behind the last epoch the workers end, and with them their account.
        job.await_epoch(options.rows // options.epoch_rows - 1)
        rows = job.summary.rows - before
        found = rows / (time.monotonic() - began), (_worked_s() - worked) / rows * 1e6
        job.wait()
        return found
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _worked_s() -> float:
    """Seconds of cores that this process and all below it have had."""
    ticks = 0
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            # Behind the name in parentheses: user and system time are the 12th and 13th field.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
