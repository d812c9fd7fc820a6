"""Many timers: a million on one instant, and what ten million that are pending cost an epoch that fires few.

    python benchmarks/timers.py

One shard in this process, without Spark. Pending timers are set by a function on columns, far ahead and spread
over an hour. Then epochs that look alike are run with none pending but their own and with all of them: each processes
the same rows row by row, sets a timer for each and fires those of the epoch before. `at once` is the epoch in which all timers of one instant fire,
row by row.
"""

import argparse
import resource
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import headrace as hr
from headrace._graph.nodes import KeyedProcess, Port
from headrace._runtime import registry
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.watermarks import NO_WATERMARK

KEYED = pa.schema({"account": pa.int64(), "ahead": pa.int64()})
FIRED = pa.schema({"account": pa.int64()})
START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
ROWS = 50_000


class Alarm(hr.KeyedProcessFunction):
    """A timer for each row."""

    def process_element(self, value: Any, ctx: Any) -> None:
        """Set it."""
        ctx.timers.register_event_time(ctx.timestamp + timedelta(microseconds=value.ahead))

    def on_timer(self, timestamp: Any, ctx: Any) -> Any:
        """Tell."""
        yield {"account": ctx.key}


class AlarmColumns(hr.KeyedBatchFunction):
    """The same on columns."""

    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> None:
        """Set them."""
        times = ctx.timestamps + batch.column("ahead").to_numpy()
        ctx.timers.register_event_time(ctx.slots, times)


@dataclass
class Shard:
    """One step's state, and where time stands."""

    store: MemoryChunkStore = field(default_factory=MemoryChunkStore)
    arrays: MemoryArrays = field(default_factory=MemoryArrays)
    watermark: int = NO_WATERMARK

    def epoch(self, function: Any, accounts: Any, ahead: Any, watermark: int) -> tuple[float, int]:
        """Seconds, and how many timers fired."""
        node = step(function)
        state = ShardState(registry.tables(node), self.store, self.arrays, range(128))
        batch = pa.RecordBatch.from_arrays([pa.array(accounts), pa.array(ahead)], schema=KEYED)
        feeder = registry.feeder(node, 0)
        stamps = np.full(len(accounts), max(watermark, START_US) + 1)
        list(feeder.feed(Rows(batch, stamps), watermark))
        began = time.perf_counter()
        state.open()
        operator = registry.keyed(node, state)
        fired = sum(len(r) for _, r in operator.tick(Moment(self.watermark, watermark, 0, 1)))
        for fed in feeder.flush():
            operator.merge(fed)
        fired += sum(len(r) for _, r in operator.settle())
        operator.outlook()
        state.commit()
        self.watermark = watermark
        return time.perf_counter() - began, fired


def step(function: Any) -> KeyedProcess:
    """The node; both functions keep their timers in the same tables."""
    kind: Literal["batch", "keyed"] = "batch" if isinstance(function, AlarmColumns) else "keyed"
    return KeyedProcess(
        id=1, uid="alarms", inputs=(Port(0),), schema=FIRED, function=function, kind=kind,
        input_schemas=(KEYED,), keys=(("account",),),
    )  # fmt: skip


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pending", type=int, default=10_000_000)
    parser.add_argument("--at-once", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    console = Console(width=110)
    console.print(pending_table(arguments.pending, arguments.epochs))
    console.print(at_once_table(arguments.at_once))


def pending_table(pending: int, epochs: int) -> Table:
    """What an epoch costs beside timers that do not fire."""
    table = Table("timers pending", "ms an epoch (median)", "timers fired an epoch", "MB resident")
    for many in (0, pending // 10, pending):
        shard = Shard()
        shard.epoch(Alarm(), np.arange(1), np.full(1, SECOND_US), START_US)
        for start in range(0, many, 1_000_000):
            accounts = np.arange(start, min(start + 1_000_000, many)) + 10 * ROWS
            ahead = np.random.default_rng(start).integers(3_600, 7_200, len(accounts)) * SECOND_US
            shard.epoch(AlarmColumns(), accounts, ahead, shard.watermark)
        took = [near_epoch(shard) for _ in range(epochs)][2:]
        fired = int(np.median([count for _, count in took]))
        median = float(np.median([seconds for seconds, _ in took])) * 1e3
        table.add_row(f"{many:,}", f"{median:,.0f}", f"{fired:,}", f"{resident_mb():,.0f}")
    return table


def near_epoch(shard: Shard) -> tuple[float, int]:
    """A second of event time with rows whose timers fire in the next."""
    watermark = shard.watermark + SECOND_US
    return shard.epoch(Alarm(), np.arange(ROWS), np.full(ROWS, SECOND_US // 2), watermark)


def at_once_table(many: int) -> Table:
    """All timers of one instant."""
    table = Table("timers on one instant", "epoch that fires them", "timers/s", "MB resident")
    shard = Shard()
    shard.epoch(AlarmColumns(), np.arange(many), np.full(many, 10 * SECOND_US), START_US)
    seconds, fired = shard.epoch(Alarm(), np.arange(0), np.arange(0), START_US + 20 * SECOND_US)
    table.add_row(
        f"{fired:,}", f"{seconds:,.1f} s", f"{fired / seconds:,.0f}", f"{resident_mb():,.0f}"
    )
    return table


def resident_mb() -> float:
    """What this process holds at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
