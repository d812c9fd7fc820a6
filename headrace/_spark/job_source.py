"""One Python data source for the whole job.

Its offset holds the range of every source partition, the watermarks and the clock. `latestOffset` is the
epoch planner, in a process of its own beside the driver; `read` runs stage 0 in the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headrace._commit.control import mark_stopped, read_request
from headrace._commit.manifest import read_manifest
from headrace._commit.published import read_progress
from headrace._epochs.facts import Facts
from headrace._epochs.offset import INITIAL, Offset
from headrace._epochs.planner import PlannerSettings, plan
from headrace._epochs.splits import Slice, split
from headrace._plan.timing import planner_settings
from headrace._runtime.reading import Range, read_ranges
from headrace._runtime.report import TaskReport
from headrace._runtime.segment import Segment
from headrace._runtime.staging import Staging
from headrace._runtime.tick import Tick
from headrace._runtime.wire import Parcel
from headrace._spark.errors import carried
from headrace._spark.worker import DDL, JobSpec, as_batches, attempt_id, rebuild
from headrace._watermarks.generators import Generated
from headrace.endpoints import Enumerator
from headrace.errors import CheckpointDamaged

__all__ = ["job_source"]

#: How long to wait before answering that nothing is new; Spark asks again every 10 ms.
_IDLE_S = 0.02


@dataclass
class ReadTask(InputPartition):
    """What one task reads, and what it is told about time."""

    index: int
    tasks: int
    ranges: Sequence[Range]
    tick: Tick
    #: What users' watermark generators remember, of the partitions in `ranges`.
    generators: Mapping[str, Mapping[str, Generated]]

    @property
    def value(self) -> str:
        """Shown by Spark."""
        return f"task {self.index} of {self.tasks}"


def job_source(spec: JobSpec, name: str) -> type[DataSource]:
    """A data source class for this attempt. Made here so that it is pickled by value, spec included."""

    class JobSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return DDL

        def streamReader(self, schema: Any) -> JobReader:  # noqa: N802 - Spark's names
            return JobReader(spec)

    return JobSource


class JobReader(DataSourceStreamReader):
    """Spark's view of a job: offsets in the planner's process, rows in the workers."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        # working state, in the planner's process only
        self._enumerators: dict[str, Enumerator] | None = None
        self._facts: tuple[int, Facts] | None = None
        #: The durable epoch that the enumerators know of.
        self._told = -1
        #: Epoch -> bytes that it staged, of those that some sink has not shown.
        self._staged: dict[int, int] = {}
        self._planned: PlannerSettings | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Spark does not log it, so it is a constant: before the birth epoch."""
        return INITIAL.to_json()

    @carried()
    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        """The next epoch, or `start` unchanged if there is nothing to do."""
        job = rebuild(self._spec)
        offset = Offset.from_json(start, where=f"the offset of epoch {start.get('epoch')}")
        self._tell(offset)
        request = read_request(job.layout)
        # Spark runs epoch 0 whatever is answered, so the birth epoch is planned in any case.
        if request == "stop" and offset.epoch >= 0:
            mark_stopped(job.layout)
            time.sleep(_IDLE_S)
            return start
        facts = self._facts_of(offset.epoch)
        shown = read_progress(job.layout).lowest_shown
        self._staged = {epoch: size for epoch, size in self._staged.items() if epoch > shown}
        planned = plan(
            offset,
            facts,
            {uid: enumerator.spans() for uid, enumerator in self._open().items()},
            clock_us=time.time_ns() // 1000,
            settings=self._settings(),
            request=request,
            unpublished=offset.epoch - shown,
            unpublished_bytes=sum(self._staged.values()),
        )
        if planned is None:
            time.sleep(_IDLE_S)
            return start
        job.faults.reach("K1", planned.epoch)
        return planned.to_json()

    @carried()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[ReadTask]:
        """The read tasks of an epoch, from its offset alone. The first one also carries the ticks."""
        job = rebuild(self._spec)
        offset = Offset.from_json(end, where=str(job.layout.offset(end.get("epoch", -1))))
        job.faults.reach("K3", offset.epoch)
        # An epoch that is run again is read before anything is planned; a source that is not what it was says so here.
        self._open()
        settings = self._settings()
        parts = split(offset, settings.sources, job.plan.shards, whole=settings.generated)
        tick = Tick.of(offset)
        return [
            ReadTask(i, len(parts), part, tick, _generators(offset, part))
            for i, part in enumerate(parts)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Stage 0: rows in, parcels out."""
        assert isinstance(partition, ReadTask)
        with carried():
            yield from as_batches(_read(self._spec, partition), self._spec.shard_ids)

    def stop(self) -> None:
        """The query ends."""
        for enumerator in (self._enumerators or {}).values():
            enumerator.close()

    def _tell(self, start: Offset) -> None:
        """The epoch that the next one starts from is durable; Spark's `commit` says so only when there is a next one."""
        if self._enumerators is None or start.epoch == self._told:
            return
        for uid, enumerator in self._enumerators.items():
            enumerator.durable({name: to for name, (_, to) in start.ranges.get(uid, {}).items()})
        self._told = start.epoch

    def _open(self) -> dict[str, Enumerator]:
        if self._enumerators is None:
            job = rebuild(self._spec)
            self._enumerators = {
                uid: node.source.enumerator(job.sources[uid])
                for uid, node in job.plan.sources.items()
            }
        return self._enumerators

    def _settings(self) -> PlannerSettings:
        if self._planned is None:
            self._planned = planner_settings(rebuild(self._spec).plan, self._spec.epochs)
        return self._planned

    def _facts_of(self, epoch: int) -> Facts:
        if self._facts is None or self._facts[0] != epoch:
            self._facts = (epoch, self._load(epoch))
        return self._facts[1]

    def _load(self, epoch: int) -> Facts:
        if epoch < 0:
            return Facts()
        layout = rebuild(self._spec).layout
        manifest = read_manifest(layout, epoch, fence=self._spec.fence)
        if manifest is None:
            raise CheckpointDamaged(f"{layout.manifests} has no manifest of epoch {epoch}")
        self._staged[epoch] = sum(receipt.size for receipt in manifest.receipts)
        return Facts.from_json(manifest.facts)


def _generators(offset: Offset, part: Sequence[Slice]) -> Mapping[str, Mapping[str, Generated]]:
    mine: dict[str, dict[str, Generated]] = {}
    for piece in part:
        said = offset.generators.get(piece.source, {}).get(piece.partition)
        if said is not None:
            mine.setdefault(piece.source, {})[piece.partition] = said
    return mine


def _read(spec: JobSpec, task: ReadTask) -> Iterator[tuple[int, Parcel]]:
    began = time.perf_counter_ns()
    job = rebuild(spec)
    report = TaskReport(stage=0, task=task.index, tasks=task.tasks, attempt=attempt_id())
    name = f"0-{task.index:04d}-{report.attempt}"
    staging = Staging(job.sinks, task.tick.epoch, name)
    segment = Segment(job.plan, task.tick, staging, report)
    try:
        if task.index == 0 and job.plan.stages > 1:
            fields = task.tick.to_json()
            for shard in range(job.plan.shards):
                yield shard, Parcel("tick", (0, 0, 0), report.attempt, fields=fields)
        yield from read_ranges(
            job.plan,
            task.ranges,
            segment,
            tick=task.tick,
            report=report,
            directories=job.sources,
            generators=task.generators,
        )
        staging.close(report)
    except BaseException:
        staging.abort()
        raise
    report.elapsed_us = (time.perf_counter_ns() - began) // 1000
    shard = task.index % job.plan.shards
    yield shard, Parcel("report", (0, task.index, 0), report.attempt, fields=report.to_json())
