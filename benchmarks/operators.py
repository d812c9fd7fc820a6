"""Operators alone, in this process, on one core: rows a second without Spark.

    python benchmarks/operators.py

Stateless steps get batches of 64k rows. A window is measured in its two halves: `feed` folds rows before the
shuffle, `merge` takes the folded rows into state behind it (a second pass, so that keys are known), and
`fire` reads a window out. Each figure is the best of three passes, the first of which also warms up.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace._graph.nodes import WindowAggregate
from headrace._runtime import registry
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.connectors import generator
from headrace.stream import Stream
from headrace.watermarks import NO_WATERMARK
from headrace.windowed import WindowedStream

BATCH_ROWS = 65_536
PASSES = 3
EVENTS = pa.schema(
    {"account": pa.int64(), "amount": pa.int64(), "ts": pa.timestamp("us", tz="UTC")}
)


@dataclass
class Doubled:
    """What the Python functions below make."""

    account: int
    amount: int


def double(event: Any) -> Doubled:
    """A map function that does next to nothing."""
    return Doubled(event.account, event.amount * 2)


def twice(event: Any) -> Iterator[Doubled]:
    """A flat_map function that does next to nothing."""
    yield Doubled(event.account, event.amount)
    yield Doubled(event.account, -event.amount)


STATELESS: dict[str, Callable[[Stream], Stream]] = {
    "filter, expression": lambda s: s.filter(hr.col("amount") > 50),
    "select, expression": lambda s: s.select("account", twice=hr.col("amount") * 2),
    "map_batches": lambda s: s.map_batches(lambda b: b.select(["account"])),
    "filter, Python function": lambda s: s.filter(lambda e: e.amount > 50),
    "map, Python function": lambda s: s.map(double),
    "flat_map, Python function, two rows out": lambda s: s.flat_map(twice),
}

WINDOWS: dict[str, Callable[[WindowedStream], Any]] = {
    "count, sum": lambda w: w.aggregate(n=hr.count(), total=hr.sum("amount"), uid="w"),
    "min, max, avg": lambda w: w.aggregate(
        low=hr.min("amount"), high=hr.max("amount"), mean=hr.avg("amount"), uid="w"
    ),
    "last, max_by": lambda w: w.aggregate(
        last=hr.last("amount"), best=hr.max_by("amount", by="ts"), uid="w"
    ),
    "count_distinct": lambda w: w.aggregate(different=hr.count_distinct("amount"), uid="w"),
}


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    options = parser.parse_args()
    console = Console()
    table = Table("stateless step", "rows/s per core", title="one core, no Spark")
    for name, build in STATELESS.items():
        table.add_row(name, f"{max(_stateless(build, options.rows) for _ in range(PASSES)):,.0f}")
    console.print(table)
    table = Table("window", "keys", "feed rows/s", "merge rows/s", "fire keys/s")
    for name, aggregate in WINDOWS.items():
        for keys in options.keys:
            passes = [_window(aggregate, options.rows, keys) for _ in range(PASSES)]
            best = (max(column) for column in zip(*passes, strict=True))
            table.add_row(name, f"{keys:,}", *(f"{speed:,.0f}" for speed in best))
    console.print(table)


def _source(keys: int) -> Stream:
    def events(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        columns = [(number * 7919 + 13) % keys, number % 100, number.view("datetime64[us]")]
        return pa.record_batch(columns, EVENTS)

    return hr.Environment("operators").from_source(
        generator.Function(EVENTS, events, rows=None),
        watermarks=hr.WatermarkStrategy.monotonous().with_timestamps("ts"),
        uid="events",
    )


def _batches(stream: Stream, rows: int) -> list[Rows]:
    make = stream._graph.nodes[0].source.function  # type: ignore[attr-defined] # noqa: SLF001
    return [
        Rows(make(n, n + BATCH_ROWS), np.arange(n, n + BATCH_ROWS, dtype=np.int64))
        for n in range(0, rows, BATCH_ROWS)
    ]


def _stateless(build: Callable[[Stream], Stream], rows: int) -> float:
    stream = _source(1_000)
    batches = _batches(stream, rows)
    built = build(stream)
    operator = registry.stateless(built._graph.nodes[-1])  # noqa: SLF001
    began = time.perf_counter()
    for batch in batches:
        for _ in operator.process(batch):
            pass
    return len(batches) * BATCH_ROWS / (time.perf_counter() - began)


def _window(
    aggregate: Callable[[WindowedStream], Any], rows: int, keys: int
) -> tuple[float, float, float]:
    stream = _source(keys)
    batches = _batches(stream, rows)
    window = hr.windows.Tumbling(timedelta(days=1))
    built = aggregate(stream.key_by("account").window(window))
    node: WindowAggregate = built._graph.nodes[-1]  # noqa: SLF001
    feeder = registry.feeder(node)
    began = time.perf_counter()
    for batch in batches:
        for _ in feeder.feed(batch, NO_WATERMARK):
            pass
    folded = list(feeder.flush())
    fed_s = time.perf_counter() - began
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator = registry.keyed(node, state)
    list(operator.tick(Moment(NO_WATERMARK, NO_WATERMARK, NO_WATERMARK, NO_WATERMARK)))
    for part in folded:
        operator.merge(part)
    began = time.perf_counter()
    for part in folded:
        operator.merge(part)
    merged_s = time.perf_counter() - began
    began = time.perf_counter()
    passed = Moment(NO_WATERMARK, 2 * window.size_us, NO_WATERMARK, NO_WATERMARK)
    fired = sum(len(found) for _, found in operator.tick(passed))
    fired_s = time.perf_counter() - began
    merged = sum(part.num_rows for part in folded)
    return len(batches) * BATCH_ROWS / fed_s, merged / merged_s, fired / fired_s


if __name__ == "__main__":
    main()
