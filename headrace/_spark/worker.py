"""What a worker process keeps between epochs: the rebuilt job, by the hash of its bytes.

Only globals of importable modules survive from task to task, so the cache is here and not in anything
that travels pickled.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from headrace._commit.faults import Faults
from headrace._commit.notices import forward_warnings
from headrace._commit.paths import Layout
from headrace._graph.plan import Plan
from headrace._runtime.lifecycle import close_all
from headrace._runtime.wire import PARCEL_BYTES, Parcel
from headrace._spark.between_tasks import see_to_what_is_between
from headrace.config import Epochs
from headrace.endpoints import SinkContext

__all__ = [
    "BLOB_SCHEMA",
    "DDL",
    "Job",
    "JobSpec",
    "as_batches",
    "attempt_id",
    "rebuild",
    "sink_contexts",
]

BLOB_SCHEMA = pa.schema([("shard", pa.int32()), ("blob", pa.binary())])
DDL = "shard int, blob binary"


@dataclass(frozen=True)
class JobSpec:
    """One attempt at a job, as it travels to the planner and the workers: plain values and bytes."""

    #: The plan, pickled by value; user functions are in it.
    plan: bytes
    digest: str
    root: str
    incarnation: str
    fence: int
    epochs: Epochs
    shard_ids: tuple[int, ...]
    #: Where replicas of state lie, best place first.
    replicas: tuple[str, ...]
    #: The environment of crash tests; empty outside them.
    faults: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """A spec, unpacked."""

    spec: JobSpec
    plan: Plan
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(Path(self.spec.root)))

    @cached_property
    def sinks(self) -> Mapping[str, SinkContext]:
        """By uid, whose rows a sink stages."""
        return sink_contexts(self.plan, self.layout, self.spec.incarnation, self.spec.fence)

    @cached_property
    def sources(self) -> Mapping[str, Path]:
        """By uid, the directory of a source's own."""
        return {uid: self.layout.source(uid) for uid in self.plan.sources}

    @cached_property
    def faults(self) -> Faults:
        """The kill points of crash tests; a no-op outside them."""
        return Faults.from_environment(self.spec.faults)


def sink_contexts(
    plan: Plan, layout: Layout, incarnation: str, fence: int
) -> dict[str, SinkContext]:
    """The context of every sink of a job."""
    return {
        uid: SinkContext(
            job=plan.job,
            incarnation=incarnation,
            uid=uid,
            schema=node.schema,
            spool=layout.spool(uid),
            fence=fence,
        )
        for uid, node in plan.sinks.items()
    }


_jobs: dict[str, Job] = {}


def rebuild(spec: JobSpec) -> Job:
    """The job of a spec; unpickled once a process."""
    key = f"{spec.digest}/{spec.fence}"
    job = _jobs.get(key)
    see_to_what_is_between()
    if job is None:
        _jobs.clear()
        close_all()
        plan: Plan = pickle.loads(spec.plan)  # noqa: S301 - from our own driver
        # How many shards there are is the checkpoint's to say.
        job = _jobs[key] = Job(spec, replace(plan, shards=len(spec.shard_ids)))
        forward_warnings(job.layout.notices)
    return job


def as_batches(
    parcels: Iterator[tuple[int, Parcel]], shard_ids: tuple[int, ...]
) -> Iterator[pa.RecordBatch]:
    """Parcels as rows of (shard, blob), a few megabytes to a batch."""
    shards: list[int] = []
    blobs: list[bytes] = []
    size = 0
    for shard, parcel in parcels:
        blob = parcel.to_bytes()
        shards.append(shard_ids[shard])
        blobs.append(blob)
        size += len(blob)
        if size > PARCEL_BYTES:
            yield _batch(shards, blobs)
            shards, blobs, size = [], [], 0
    if blobs:
        yield _batch(shards, blobs)


def _batch(shards: list[int], blobs: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(shards, pa.int32()), pa.array(blobs, pa.binary())], schema=BLOB_SCHEMA
    )


def attempt_id() -> str:
    """A name that no other attempt has, safe in file names."""
    return os.urandom(8).hex()
