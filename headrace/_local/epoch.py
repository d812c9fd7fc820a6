"""One epoch in this process: the tasks of stage 0, then every shard of every later stage.

Parcels pass through their bytes, as they do between Spark's tasks, so that what works here does not rely
on sharing memory.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace._epochs.offset import Offset
from headrace._epochs.splits import Slice, split
from headrace._graph.plan import Plan
from headrace._runtime.host import host_shard
from headrace._runtime.reading import read_ranges
from headrace._runtime.report import TaskReport
from headrace._runtime.segment import Segment
from headrace._runtime.staging import Staging
from headrace._runtime.state import ShardState
from headrace._runtime.tick import Tick
from headrace._runtime.wire import Parcel
from headrace.endpoints import SinkContext, Source

__all__ = ["EpochRun"]

Parcels = Iterator[tuple[int, Parcel]]


@dataclass
class EpochRun:
    """Runs the tasks of one epoch, one after the other."""

    plan: Plan
    offset: Offset
    contexts: Mapping[str, SinkContext]
    directories: Mapping[str, Path]
    #: (keyed node, shard) -> its state, opened
    open_state: Callable[[int, int], ShardState]
    #: How many tasks read.
    tasks: int = 1
    #: The sources whose partitions are read by one task each.
    whole: Collection[str] = ()
    #: Called with a task's (stage, number) when it is done.
    done: Callable[[int, int], None] = lambda _stage, _task: None
    #: (stage, shard) -> what its producers sent
    mail: dict[tuple[int, int], list[Parcel]] = field(default_factory=dict)

    def reports(self) -> list[TaskReport]:
        """Run it all; what each task reports."""
        sources = {uid: node.source for uid, node in self.plan.sources.items()}
        slices = split(self.offset, sources, 1)[0]
        parts = deal(slices, sources, self.tasks, whole=self.whole)
        reports = [self._read(number, part, len(parts)) for number, part in enumerate(parts)]
        for stage in range(1, self.plan.stages):
            reports += [self._host(stage, shard) for shard in range(self.plan.shards)]
        return reports

    def _read(self, number: int, part: Sequence[Slice], tasks: int) -> TaskReport:
        report = TaskReport(0, number, tasks, secrets.token_hex(8))

        def work(segment: Segment, tick: Tick) -> Parcels:
            return read_ranges(
                self.plan,
                part,
                segment,
                tick=tick,
                report=report,
                directories=self.directories,
                generators=self.offset.generators,
            )

        return self._task(report, work)

    def _host(self, stage: int, shard: int) -> TaskReport:
        report = TaskReport(stage, shard, self.plan.shards, secrets.token_hex(8))
        # Spark promises no order, so none may be relied on but that of the parcels.
        arrived = self.mail.get((stage, shard), [])
        secrets.SystemRandom().shuffle(arrived)
        parcels = sorted(arrived, key=lambda parcel: parcel.order)
        report.consumed = {f"{p.order[0]}/{p.order[1]}": p.attempt for p in parcels}

        def work(segment: Segment, tick: Tick) -> Parcels:
            return host_shard(
                self.plan,
                parcels,
                segment,
                tick=tick,
                report=report,
                open_state=lambda node: self.open_state(node, shard),
            )

        return self._task(report, work)

    def _task(self, report: TaskReport, work: Callable[[Segment, Tick], Parcels]) -> TaskReport:
        offset = self.offset
        tick = Tick.of(offset)
        name = f"{report.stage}-{report.task:04d}-{report.attempt}"
        staging = Staging(self.contexts, offset.epoch, name)
        try:
            for shard, parcel in work(Segment(self.plan, tick, staging, report), tick):
                arrived = Parcel.from_bytes(parcel.to_bytes())
                self.mail.setdefault((arrived.target, shard), []).append(arrived)
            staging.close(report)
        except BaseException:
            staging.abort()
            raise
        self.done(report.stage, report.task)
        return TaskReport.from_json(json.loads(json.dumps(report.to_json())))


def deal(
    slices: Sequence[Slice],
    sources: Mapping[str, Source],
    tasks: int,
    *,
    whole: Collection[str] = (),
) -> list[tuple[Slice, ...]]:
    """Every range in `tasks` parts, one for each task, whatever its size; at least one task."""
    parts: list[list[Slice]] = [[] for _ in range(tasks)]
    for piece in slices:
        divisible = sources[piece.source].splittable and piece.source not in whole
        count = tasks if divisible else 1
        length = piece.end - piece.start
        for number in range(count):
            start = piece.start + length * number // count
            end = piece.start + length * (number + 1) // count
            if end > start:
                parts[number].append(piece._replace(start=start, end=end))
    return [tuple(part) for part in parts if part] or [()]
