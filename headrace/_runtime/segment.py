"""Runs the part of a job that lies in one stage of one task.

Rows are pushed into a port and flow depth first: through stateless steps at once, into sinks, and into
the feeders of keyed steps, whose contents leave as parcels for later stages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace._graph.join_nodes import LookupJoin
from headrace._graph.nodes import (
    AssignTimestamps,
    FilterBy,
    FilterRows,
    Node,
    Port,
    WindowStep,
    WriteSink,
    count_of,
)
from headrace._graph.plan import Plan
from headrace._runtime import registry
from headrace._runtime.operator import Feeder, StatelessOperator, Surroundings
from headrace._runtime.reassign import reassign
from headrace._runtime.report import TaskReport
from headrace._runtime.rows import Rows
from headrace._runtime.staging import Staging
from headrace._runtime.tick import Tick
from headrace._runtime.wire import AFTER, BEFORE, Parcel, encode_rows, pieces, split_by_shard

__all__ = ["Segment"]


class Segment:
    """One task's walk through the graph."""

    def __init__(self, plan: Plan, tick: Tick, staging: Staging, report: TaskReport) -> None:
        self._plan = plan
        self._tick = tick
        self._staging = staging
        self._report = report
        self._steps: dict[tuple[int, int, int], StatelessOperator] = {}
        self._feeders: dict[tuple[int, int, int], Feeder] = {}
        self._sequence = 0

    def push(self, port: Port, rows: Rows, phase: int = AFTER) -> None:
        """Send rows to everyone who takes this port."""
        if not len(rows):
            return
        self._report.count(self._plan.nodes[port.node].uid, count_of(port.output), len(rows))
        for consumer, side in self._plan.consumers.get(port, ()):
            self._enter(consumer, side, rows, phase)

    def parcels(self) -> Iterator[tuple[int, Parcel]]:
        """What the feeders hold, as (shard, parcel) for the stages of their steps."""
        report = self._report
        for (node, side, phase), feeder in self._feeders.items():
            target = self._plan.stage_of[node]
            last, payload = None, b""
            for shard, piece in self._pieces(feeder):
                order = (report.stage, report.task, self._next())
                if piece is not last:
                    # What goes to all shards is the same piece again and again.
                    last, payload = piece, encode_rows(piece)
                yield (
                    shard,
                    Parcel("rows", order, report.attempt, node, target, phase, side, None, payload),
                )
            report.weigh(self._plan.nodes[node].uid, feeder.heavy())

    def _pieces(self, feeder: Feeder) -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in feeder.flush():
            if feeder.everywhere:
                for piece in pieces(batch):
                    yield from ((shard, piece) for shard in range(self._plan.shards))
            else:
                yield from split_by_shard(batch, self._plan.shards, in_order=feeder.in_order)

    def _enter(self, consumer: int, side: int, rows: Rows, phase: int) -> None:
        node = self._plan.nodes[consumer]
        self._report.count(node.uid, "in", len(rows))
        if isinstance(node, WriteSink):
            self._staging.write(node, rows.batch)
            return
        if node.keyed:
            outputs = self._feeder(consumer, side, phase).feed(
                self._timed(node, rows), self._watermark(consumer, phase)
            )
        elif isinstance(node, AssignTimestamps):
            outputs = reassign(rows, node, self._tick.clock_us, self._report)
        else:
            outputs = self._step(consumer, side, phase).process(rows)
        kept = 0
        for output, out in outputs:
            kept += len(out)
            self.push(Port(consumer, output), out, phase)
        if isinstance(node, FilterBy | FilterRows):
            self._report.count(node.uid, "filtered", len(rows) - kept)
        elif isinstance(node, LookupJoin):
            left_out = self._step(consumer, side, phase).left_out()
            self._report.count(node.uid, "filtered", left_out)
        elif node.keyed:
            self._report.count(node.uid, "held", len(rows) - kept)

    def _timed(self, node: Node, rows: Rows) -> Rows:
        """In processing time the timestamp of a row is the epoch's clock."""
        if isinstance(node, WindowStep) and node.window.time == "processing":
            return Rows(rows.batch, np.full(len(rows), self._tick.clock_us), rows.origin)
        return rows

    def _watermark(self, node: int, phase: int) -> int:
        return self._tick.at(self._plan.feeds[node], before=phase == BEFORE)

    def _step(self, node: int, side: int, phase: int) -> StatelessOperator:
        if (node, side, phase) not in self._steps:
            made = registry.stateless(self._plan.nodes[node], side)
            if node in self._plan.feeds:
                made.enter(self._surroundings(node, phase))
            self._steps[node, side, phase] = made
        return self._steps[node, side, phase]

    def _surroundings(self, node: int, phase: int) -> Surroundings:
        report = self._report
        return Surroundings(
            self._watermark(node, phase),
            self._tick.clock_us,
            report.task,
            report.metrics_of(self._plan.nodes[node].uid),
        )

    def _feeder(self, node: int, side: int, phase: int) -> Feeder:
        if (node, side, phase) not in self._feeders:
            self._feeders[node, side, phase] = registry.feeder(self._plan.nodes[node], side)
        return self._feeders[node, side, phase]

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence
