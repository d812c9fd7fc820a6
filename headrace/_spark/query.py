"""One attempt at a job as a Spark streaming query: job source -> host stages -> one collect an epoch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headrace._epochs.offset import Offset
from headrace._runtime.report import TaskReport
from headrace._runtime.wire import Parcel
from headrace._spark.job_source import job_source
from headrace._spark.processor import HostProcessor
from headrace._spark.session import EmbeddedSpark
from headrace._spark.settings import query_settings
from headrace._spark.worker import DDL, Job
from headrace.errors import CheckpointDamaged

__all__ = ["EpochSink", "logged_offset", "start_query"]

#: Called with the epoch's number and a function that runs it and returns the tasks' reports.
EpochSink = Callable[[int, Callable[[], list[TaskReport]]], None]


def start_query(spark: EmbeddedSpark, job: Job, sink: EpochSink) -> StreamingQuery:
    """Start the query; `sink` is called in this process, once for every epoch that Spark runs."""
    # Its own settings and data sources: nothing of the user's session changes, and jobs do not meet.
    session = spark.session.newSession()
    for key, value in query_settings(job.plan.shards, forkless=spark.forkless).items():
        session.conf.set(key, value)
    name = f"headrace_{os.urandom(8).hex()}"
    session.dataSource.register(job_source(job.spec, name))
    frame = session.readStream.format(name).load()
    for stage in range(1, job.plan.stages):
        frame = frame.groupBy("shard").transformWithState(
            HostProcessor(job.spec, stage), DDL, "append", "None"
        )

    def run_epoch(batch: DataFrame, epoch: int) -> None:
        sink(epoch, lambda: _reports(batch))

    return (
        frame.writeStream.foreachBatch(run_epoch)
        .outputMode("append")
        .option("checkpointLocation", str(job.layout.spark))
        .trigger(processingTime="0 seconds")
        .start()
    )


def logged_offset(job: Job, epoch: int) -> Offset:
    """The offset as Spark logged it: the third line of its file."""
    path = job.layout.offset(epoch)
    try:
        fields: dict[str, Any] = json.loads(path.read_text().splitlines()[2])
    except (OSError, ValueError, IndexError) as error:
        raise CheckpointDamaged(f"{path} is not readable: {error}") from error
    return Offset.from_json(fields, where=str(path))


def _reports(batch: DataFrame) -> list[TaskReport]:
    """The one Spark job of the epoch."""
    parcels = (Parcel.from_bytes(bytes(row[0])) for row in batch.select("blob").collect())
    return [TaskReport.from_json(parcel.fields or {}) for parcel in parcels]
