"""Stage 0 of one task: read ranges of source partitions and send their rows down the graph.

A user's watermark generator is told of the timestamps of a range when it is read to its end, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._graph.nodes import ERRORS, Port, ReadSource
from headrace._graph.plan import Plan
from headrace._runtime.dead_letters import refused_records
from headrace._runtime.report import TaskReport
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.segment import Segment
from headrace._runtime.tick import Tick
from headrace._runtime.timestamps import assign
from headrace._runtime.wire import Parcel
from headrace._watermarks.generators import Generated, hear
from headrace.endpoints import SourceBatch

__all__ = ["Range", "read_ranges"]

#: (source uid, partition, first position, one past the last position)
Range = tuple[str, str, int, int]
Int64s = npt.NDArray[np.int64]


def read_ranges(
    plan: Plan,
    ranges: Sequence[Range],
    segment: Segment,
    *,
    tick: Tick,
    report: TaskReport,
    directories: Mapping[str, Path],
    generators: Mapping[str, Mapping[str, Generated]] | None = None,
) -> Iterator[tuple[int, Parcel]]:
    """Read the ranges in order; yields what goes to the shards.

    `generators` are those of the epoch's offset, by source and partition.
    """
    for uid, partition, start, end in ranges:
        node = plan.sources[uid]
        heard = [
            _take(node, partition, read, segment, tick, report)
            for read in node.source.read(partition, start, end, directories[uid])
        ]
        if node.strategy is not None and node.strategy.kind == "generator":
            known = (generators or {}).get(uid, {}).get(partition)
            _hear(node, partition, known, heard, report)
    yield from segment.parcels()


def _take(
    node: ReadSource,
    partition: str,
    read: SourceBatch,
    segment: Segment,
    tick: Tick,
    report: TaskReport,
) -> Int64s | None:
    """Send a batch down the graph; the timestamps of its rows."""
    report.count(node.uid, "in", read.batch.num_rows + len(read.dead) + read.skipped)
    report.count(node.uid, "skipped", read.skipped)
    report.read(node.uid, read.batch.num_rows, read.batch.nbytes)
    origin = Origin(node.uid, read.partition, read.offsets, partition)
    dead = list(read.dead)
    rows = Rows(read.batch, None, origin)
    if node.strategy is not None:
        rows, refused = assign(rows, node, tick.clock_us, read.timestamps)
        dead += refused
        if len(rows):
            stamps = rows.timestamps
            assert stamps is not None
            report.observe(node.uid, partition, int(stamps.min()), int(stamps.max()))
    if dead:
        segment.push(Port(node.id, ERRORS), refused_records(node.uid, dead, tick.clock_us))
    segment.push(Port(node.id), rows)
    return rows.timestamps


def _hear(
    node: ReadSource,
    partition: str,
    known: Generated | None,
    heard: Sequence[Int64s | None],
    report: TaskReport,
) -> None:
    assert node.strategy is not None
    timestamps = [part for part in heard if part is not None and len(part)]
    if timestamps:
        state = None if known is None else known.state
        told = np.concatenate(timestamps)
        after = hear(node.uid, partition, node.strategy, state, told)
        report.generators.setdefault(node.uid, {})[partition] = after
