"""One attempt at a job: take the lease, recover, run the query until it ends, give everything back."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import cloudpickle
from pyspark.sql.streaming.query import StreamingQuery

from headrace._commit.checkpoint import Checkpoint, prepare, usable
from headrace._commit.control import clear_stopped, is_stopped, write_request
from headrace._commit.faults import Faults
from headrace._commit.files import make_directory
from headrace._commit.notices import Notices
from headrace._commit.paths import Layout
from headrace._commit.publisher import Committer
from headrace._commit.recovery import Recovered, opened_publishers, recover
from headrace._epochs.planner import unread
from headrace._graph.plan import Plan
from headrace._plan.settings import RunSettings
from headrace._plan.signature import describe_change, digest, signature
from headrace._runtime.process.reads.tables import recorded_places
from headrace._spark.epochs import EpochRecorder, RecordedEpoch
from headrace._spark.errors import translate
from headrace._spark.lease import JvmLease, refuse_if_held
from headrace._spark.query import logged_offset, start_query
from headrace._spark.replicas import drop_replicas, replica_roots
from headrace._spark.session import EmbeddedSpark, open_spark
from headrace._spark.shard_ids import shard_ids
from headrace._spark.spreading import spread_on
from headrace._spark.worker import Job, JobSpec
from headrace.errors import BuildError, EngineError, InputError

__all__ = ["Attempt", "Signals", "StreamingQuery"]

_POLL_S = 0.02
#: How long a stop waits for a sink that is away; what is staged then is published by the next start.
_STOP_PATIENCE_S = 10.0


@dataclass
class Signals:
    """What the handle and the attempt tell each other."""

    stop: threading.Event
    drain: threading.Event
    abort: threading.Event
    recovered: Callable[[Recovered], None]
    started: Callable[[StreamingQuery], None]
    recorded: Callable[[RecordedEpoch], None]
    say: Callable[[str], None]


class Attempt:
    """Everything that one attempt holds. `run` returns when the job is finished or stopped."""

    def __init__(self, plan: Plan, settings: RunSettings, signals: Signals) -> None:
        self._wanted = plan
        self._settings = settings
        self._signals = signals
        self._last: RecordedEpoch | None = None

    def run(self) -> None:
        """Raises an error of ours, whatever happened inside."""
        layout = prepare(self._settings.checkpoint)
        usable(layout, **self._identity())
        refuse_if_held(layout.lease)
        packed = _pack(self._wanted)
        try:
            self._on_spark(layout, packed)
        except Exception as error:  # noqa: BLE001 - translated, whatever it is
            if self._signals.abort.is_set():
                raise EngineError("The job was aborted") from None
            raise translate(error, layout.log) from None

    def _on_spark(self, layout: Layout, packed: bytes) -> None:
        spark = open_spark(
            self._wanted.job,
            master=self._settings.master,
            session=self._settings.session,
            log=layout.log,
            verbose=self._settings.verbose,
        )
        lease = JvmLease(spark.gateway.jvm)
        lease.acquire(layout.lease)
        try:
            self._leased(spark, lease, packed)
        finally:
            lease.release()

    def _leased(self, spark: EmbeddedSpark, lease: JvmLease, packed: bytes) -> None:
        checkpoint = self._open()
        plan = replace(self._wanted, shards=checkpoint.shards)
        job = Job(_spec(packed, self._settings, checkpoint, spark), plan)
        openers = {
            uid: partial(node.sink.publisher, replace(job.sinks[uid], spread=spread_on(spark)))
            for uid, node in plan.sinks.items()
        }
        with opened_publishers(openers) as publishers:
            recovered = recover(checkpoint, publishers, faults=job.faults, held=lease.held)
            self._signals.recovered(recovered)
            committer = Committer(checkpoint, publishers, faults=job.faults, lease=lease)
        done = False
        try:
            if recovered.finished:
                _refuse_new_input(job, recovered.durable)
            else:
                self._query(spark, job, checkpoint, committer, recovered)
            done = True
        finally:
            committer.close(flush=done)
        if recovered.finished or (self._last is not None and self._last.manifest.finished):
            drop_replicas(job)

    def _open(self) -> Checkpoint:
        return Checkpoint.open(
            self._settings.checkpoint,
            default_shards=self._wanted.shards,
            versions=_versions(),
            states=recorded_places(self._wanted),
            **self._identity(),
        )

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must be of to be ours."""
        signed = signature(tuple(self._wanted.nodes.values()))
        return {
            "job": self._wanted.job,
            "signature": signed,
            "digest": digest(signed),
            "shards": self._settings.shards,
            "describe": describe_change,
        }

    def _query(
        self,
        spark: EmbeddedSpark,
        job: Job,
        checkpoint: Checkpoint,
        committer: Committer,
        recovered: Recovered,
    ) -> None:
        layout = checkpoint.layout
        if recovered.durable < 0:
            # Spark refuses to run epoch 0 over what an attempt that died in it left behind.
            logged = layout.offset(0).exists()
            shutil.rmtree(layout.spark / "state" if logged else layout.spark, ignore_errors=True)
        for directory in job.sources.values():
            make_directory(directory)
        clear_stopped(layout)
        write_request(layout, "run")
        recorder = EpochRecorder(
            job,
            checkpoint,
            committer,
            previous=recovered.manifest,
            versions=_versions(),
            notify=self._note,
        )
        notices = Notices(layout.notices)
        try:
            query = start_query(spark, job, recorder)
            self._signals.started(query)
            try:
                self._watch(query, job, committer, notices)
            finally:
                with contextlib.suppress(Exception):
                    query.stop()
                self._tell(notices)
        except Exception as error:
            # What Spark says is what our code raised inside it, wrapped more than once.
            cause = recorder.error or committer.error
            if cause is None:
                raise
            raise cause from error

    def _watch(
        self, query: StreamingQuery, job: Job, committer: Committer, notices: Notices
    ) -> None:
        """Until the final epoch is shown, a stop is complete, or something fails."""
        asked, told, stopped = "run", None, 0.0
        while True:
            self._tell(notices)
            if self._signals.abort.is_set():
                raise EngineError("The job was aborted")
            if committer.error is not None:
                raise committer.error
            if query.awaitTermination(_POLL_S):  # type: ignore[arg-type]
                raise EngineError("Spark ended the query by itself")
            if committer.problem is not None and str(committer.problem) != told:
                told = str(committer.problem)
                self._signals.say(f"a sink is away, its epochs wait: {told}")
            asked = self._ask(job, asked)
            if asked == "stop" and is_stopped(job.layout):
                over = True
            else:
                over = self._last is not None and self._last.manifest.finished
            # Read behind the answer: what is recorded now is the last epoch there will be.
            epoch = -1 if self._last is None else self._last.manifest.epoch
            if over and committer.wait_published(epoch, _POLL_S):
                return
            stopped = stopped or (time.monotonic() if over and asked == "stop" else 0.0)
            if stopped and committer.problem and time.monotonic() > stopped + _STOP_PATIENCE_S:
                self._signals.say(
                    f"stopped while a sink is away: {committer.backlog()} epochs are staged and durable;"
                    " the next start publishes them"
                )
                return

    def _tell(self, notices: Notices) -> None:
        for notice in notices.new():
            self._signals.say(notice)

    def _ask(self, job: Job, asked: str) -> str:
        if asked == "run" and self._signals.drain.is_set():
            write_request(job.layout, "drain")
            return "drain"
        if asked != "stop" and self._signals.stop.is_set():
            write_request(job.layout, "stop")
            return "stop"
        return asked

    def _note(self, recorded: RecordedEpoch) -> None:
        self._last = recorded
        self._signals.recorded(recorded)


def _refuse_new_input(job: Job, epoch: int) -> None:
    """A finished job has fired its last windows; rows that came since can have no place in them."""
    spans = {}
    for uid, node in job.plan.sources.items():
        make_directory(job.sources[uid])
        with contextlib.closing(node.source.enumerator(job.sources[uid])) as enumerator:
            spans[uid] = enumerator.spans()
    new = unread(logged_offset(job, epoch), spans)
    if new:
        told = ", ".join(f"'{uid}' has {count:,} new positions" for uid, count in new.items())
        raise InputError(
            f"The job {job.plan.job!r} is finished (its input had ended or it was drained), but source "
            f"{told}. Start it with a new checkpoint to process everything again."
        )


def _pack(plan: Plan) -> bytes:
    """The plan as bytes, or a sentence about what in it cannot travel to the workers."""
    try:
        packed: bytes = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise BuildError(
            f"The job {plan.job!r} cannot be sent to the workers, because something that its functions, "
            f"sources or sinks hold cannot be pickled: {error}. Open connections, files and locks inside "
            "the function instead."
        ) from error
    return packed


def _spec(
    packed: bytes, settings: RunSettings, checkpoint: Checkpoint, spark: EmbeddedSpark
) -> JobSpec:
    return JobSpec(
        plan=packed,
        digest=os.urandom(8).hex(),
        root=str(checkpoint.layout.root),
        incarnation=checkpoint.incarnation,
        fence=checkpoint.fence,
        epochs=settings.epochs,
        shard_ids=shard_ids(checkpoint.shards),
        replicas=replica_roots(checkpoint.incarnation),
        faults=_fault_wish(spark),
    )


def _fault_wish(spark: EmbeddedSpark) -> Mapping[str, str]:
    """The environment of crash tests, with the victims; empty outside them."""
    wish = os.environ.get(Faults.VARIABLE)
    if not wish:
        return {}
    return {
        Faults.VARIABLE: wish,
        "HEADRACE_DRIVER_PID": str(os.getpid()),
        "HEADRACE_GROUP_PID": str(os.getpgrp()),
        "HEADRACE_JVM_PID": str(spark.gateway.jvm.ProcessHandle.current().pid()),
    }


def _versions() -> dict[str, str]:
    return {
        "headrace": sys.modules["headrace"].__version__,
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "pyarrow": pa.__version__,
    }
