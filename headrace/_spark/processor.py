"""The host: one `transformWithState` grouping key a shard, every keyed step of a stage in one call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace._runtime import registry
from headrace._runtime.host import host_shard
from headrace._runtime.report import TaskReport
from headrace._runtime.segment import Segment
from headrace._runtime.staging import Staging
from headrace._runtime.state import ShardState
from headrace._runtime.tick import Tick
from headrace._runtime.wire import Parcel
from headrace._spark.errors import carried
from headrace._spark.replicas import Replica
from headrace._spark.worker import Job, JobSpec, attempt_id, rebuild

__all__ = ["HostProcessor"]


class SparkChunkStore:
    """The chunk log of one step and one shard, in Spark's state store."""

    def __init__(self, manifests: Any, chunks: Any, operator: str) -> None:
        self._manifests = manifests
        self._chunks = chunks
        self._operator = operator

    def manifest(self) -> bytes | None:
        """The manifest, or None before the first commit."""
        found = self._manifests.getValue((self._operator,))
        return None if found is None else bytes(found[0])

    def put_manifest(self, body: bytes) -> None:
        """Replace the manifest."""
        self._manifests.updateValue((self._operator,), (body,))

    def chunk(self, number: int) -> bytes:
        """One chunk's bytes."""
        found = self._chunks.getValue((self._operator, number))
        if found is None:
            raise KeyError(number)
        return bytes(found[0])

    def put_chunk(self, number: int, body: bytes) -> None:
        """Add a chunk."""
        self._chunks.updateValue((self._operator, number), (body,))

    def remove_chunk(self, number: int) -> None:
        """Forget a chunk that no manifest names any more."""
        self._chunks.removeKey((self._operator, number))


class HostProcessor(StatefulProcessor):
    """Spark's view of a stage."""

    def __init__(self, spec: JobSpec, stage: int) -> None:
        self._spec = spec
        self._stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Two state variables, fixed for ever: what grows is what is in them."""
        self._manifests = handle.getMapState("manifest", "operator string", "body binary")
        self._chunks = handle.getMapState("chunks", "operator string, id long", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """One shard's epoch."""
        with carried():
            yield from self._epoch(key, rows)

    def close(self) -> None:
        """Replicas stay mapped in the worker for the next epoch."""

    def _epoch(self, key: Any, rows: Iterator[Row]) -> Iterator[Row]:
        began = time.perf_counter_ns()
        job = rebuild(self._spec)
        shard = self._spec.shard_ids.index(key[0])
        parcels = sorted((Parcel.from_bytes(row[1]) for row in rows), key=lambda p: p.order)
        tick = next(Tick.from_json(p.fields or {}) for p in parcels if p.kind == "tick")
        report = TaskReport(self._stage, shard, job.plan.shards, attempt_id())
        report.consumed = {f"{p.order[0]}/{p.order[1]}": p.attempt for p in parcels}
        yield from self._forward(job, shard, parcels, tick)
        for target, parcel in self._run(job, shard, parcels, tick, report):
            yield self._row(target, parcel)
        report.elapsed_us = (time.perf_counter_ns() - began) // 1000
        order = (self._stage, shard, 0)
        yield self._row(shard, Parcel("report", order, report.attempt, fields=report.to_json()))

    def _forward(self, job: Job, shard: int, parcels: list[Parcel], tick: Tick) -> Iterator[Row]:
        last = self._stage == job.plan.stages - 1
        for parcel in parcels:
            if parcel.kind == "report" or parcel.target > self._stage:
                yield self._row(shard, parcel)
            elif parcel.kind == "tick" and not last:
                onward = Parcel("tick", (0, 0, 0), parcel.attempt, fields=tick.to_json())
                yield self._row(shard, onward)

    def _run(
        self, job: Job, shard: int, parcels: list[Parcel], tick: Tick, report: TaskReport
    ) -> Iterator[tuple[int, Parcel]]:
        name = f"{self._stage}-{shard:04d}-{report.attempt}"
        staging = Staging(job.sinks, tick.epoch, name)
        segment = Segment(job.plan, tick, staging, report)
        mine = [p for p in parcels if p.kind == "rows" and p.target == self._stage]
        opened: list[Replica] = []

        def open_state(node: int) -> ShardState:
            uid = job.plan.nodes[node].uid
            store = SparkChunkStore(self._manifests, self._chunks, uid)
            specs = registry.tables(job.plan.nodes[node])
            replica = Replica(job, uid, shard, specs, store)
            opened.append(replica)
            return replica.state

        try:
            yield from host_shard(
                job.plan, mine, segment, tick=tick, report=report, open_state=open_state
            )
            staging.close(report)
        except BaseException:
            staging.abort()
            raise
        finally:
            for replica in opened:
                replica.release()
        if shard == 0:
            job.faults.reach("K4", tick.epoch)

    def _row(self, shard: int, parcel: Parcel) -> Row:
        return Row(shard=self._spec.shard_ids[shard], blob=parcel.to_bytes())
