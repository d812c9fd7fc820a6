"""What benches of single joins share: two streams, rows in batches, and an epoch of one shard with its costs."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace._runtime import registry
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.connectors.memory import MemorySource

__all__ = ["Shard", "in_batches", "numbers", "texts", "two_streams"]

BATCH_ROWS = 65_536
_TIME = pa.timestamp("us", "UTC")

#: Makes keys of numbers.
Keys = Callable[[Any], pa.Array]


def numbers(ids: Any) -> pa.Array:
    """Keys that are whole numbers."""
    return pa.array(ids)


def texts(ids: Any) -> pa.Array:
    """Keys that are texts."""
    return pa.array(np.char.add("key-", ids.astype(str)))


def two_streams(keys: Keys) -> list[hr.Stream]:
    """Streams of keys, amounts and times."""
    env = hr.Environment("bench")
    schema = pa.schema({"id": keys(np.arange(1)).type, "amount": pa.int64(), "ts": _TIME})
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("ts")
    return [
        env.from_source(MemorySource([], schema), watermarks=strategy, uid=uid)
        for uid in ("left", "right")
    ]


def in_batches(ids: Any, amounts: Any, times: Any, keys: Keys) -> list[Rows]:
    """Rows of such a stream as a source would give them."""
    rows = []
    for start in range(0, len(ids), BATCH_ROWS):
        part = slice(start, start + BATCH_ROWS)
        at = pa.array(times[part]).view(_TIME)
        columns = [keys(ids[part]), pa.array(amounts[part]), at]
        rows.append(Rows(pa.record_batch(columns, ["id", "amount", "ts"]), times[part]))
    return rows


class Shard:
    """The one shard of a join, which is the last step of a graph."""

    def __init__(self, joined: hr.Stream) -> None:
        self.node: Any = joined._graph.nodes[-1]  # noqa: SLF001 - what the builder made
        self._arrays, self._store = MemoryArrays(), MemoryChunkStore()

    def epoch(self, sides: list[list[Rows]], moment: Moment) -> tuple[list[float], int]:
        """Seconds to feed, tick, settle and commit; and how many results there were."""
        state = ShardState(registry.tables(self.node), self._store, self._arrays, range(128))
        state.open()
        marks, fed = [time.process_time()], []
        for side, rows in enumerate(sides):
            feeder = registry.feeder(self.node, side)
            for part in rows:
                list(feeder.feed(part, moment.watermark))
            fed += [(batch, side) for batch in feeder.flush()]
        marks.append(time.process_time())
        operator = registry.keyed(self.node, state)
        operator.equip(Metrics(self.node.uid), 0)
        made = sum(len(rows) for _, rows in operator.tick(moment))
        marks.append(time.process_time())
        for batch, side in fed:
            operator.merge(batch, side)
        made += sum(len(rows) for _, rows in operator.settle())
        operator.outlook()
        marks.append(time.process_time())
        state.commit()
        marks.append(time.process_time())
        return [end - start for start, end in pairwise(marks)], made
