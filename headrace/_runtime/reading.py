"""Stage 0 of one task: read ranges of source partitions and send their rows down the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import ERRORS, ERRORS_SCHEMA, Port, ReadSource
from headrace._graph.plan import Plan
from headrace._runtime.report import TaskReport
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.segment import Segment
from headrace._runtime.tick import Tick
from headrace._runtime.timestamps import assign
from headrace._runtime.wire import Parcel
from headrace.endpoints import DeadLetter, SourceBatch

__all__ = ["Range", "read_ranges"]

#: (source uid, partition, first position, one past the last position)
Range = tuple[str, str, int, int]


def read_ranges(
    plan: Plan,
    ranges: Sequence[Range],
    segment: Segment,
    *,
    tick: Tick,
    report: TaskReport,
    directories: Mapping[str, Path],
) -> Iterator[tuple[int, Parcel]]:
    """Read the ranges in order; yields what goes to the shards."""
    for uid, partition, start, end in ranges:
        node = plan.sources[uid]
        for read in node.source.read(partition, start, end, directories[uid]):
            _take(node, partition, read, segment, tick, report)
    yield from segment.parcels()


def _take(
    node: ReadSource,
    partition: str,
    read: SourceBatch,
    segment: Segment,
    tick: Tick,
    report: TaskReport,
) -> None:
    report.count(node.uid, "in", read.batch.num_rows + len(read.dead))
    report.read(node.uid, read.batch.num_rows, read.batch.nbytes)
    origin = Origin(node.uid, read.partition, read.offsets)
    dead = list(read.dead)
    rows = Rows(read.batch, None, origin)
    if node.strategy is not None:
        rows, refused = assign(rows, node, tick.clock_us)
        dead += refused
        if len(rows):
            assert rows.timestamps is not None
            report.observe(node.uid, partition, int(rows.timestamps.max()))
    if dead:
        segment.push(Port(node.id, ERRORS), dead_rows(node.uid, dead, tick.clock_us))
    segment.push(Port(node.id), rows)


def dead_rows(uid: str, dead: Sequence[DeadLetter], clock_us: int) -> Rows:
    """Dead letters as rows of the `errors` output; their time is the epoch's clock."""
    batch = pa.RecordBatch.from_pydict(
        {
            "uid": [uid] * len(dead),
            "cause": [letter.cause for letter in dead],
            "partition": [letter.partition for letter in dead],
            "offset": [letter.offset for letter in dead],
            "payload": [letter.payload for letter in dead],
        },
        schema=ERRORS_SCHEMA,
    )
    return Rows(batch, np.full(len(dead), clock_us, np.int64))
