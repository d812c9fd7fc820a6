"""The Spark settings that correctness or speed need, and the check of a session that a user brings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace._spark import home
from headrace.errors import SetupError

__all__ = ["JAVA_OPTIONS", "STATIC", "check_session", "launch_settings", "query_settings"]

_STATE = "spark.sql.streaming.stateStore"

#: Read once when a session starts; a user's own session must have these.
STATIC = {
    "spark.python.worker.reuse": "true",
    "spark.speculation": "false",
}

_EMBEDDED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
    # Parcels are compressed already.
    "spark.shuffle.compress": "false",
    "spark.redaction.regex": "(?i)secret|password|passphrase|token|access[.]?key|credential|jaas|api[._]?key",
    "spark.sql.redaction.options.regex": "(?i)secret|password|passphrase|token|credential|jaas|api[._]?key|url",
}

# One tier of compilation: the JVM mostly runs scheduling code once or twice, and Arrow work is not its.
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC")

#: More options for the JVM, as one text.
JAVA_OPTIONS = "HEADRACE_JAVA_OPTIONS"


def launch_settings(name: str, master: str, memory_mb: int) -> dict[str, str]:
    """What an embedded session is started with."""
    return {
        "spark.master": master,
        "spark.app.name": name,
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraClassPath": str(home.class_path()),
        "spark.driver.extraJavaOptions": " ".join(_java_options()),
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
        **STATIC,
        **_EMBEDDED,
    }


def _java_options() -> Iterator[str]:
    yield from _JAVA
    yield f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    if home.archive().exists():
        yield f"-XX:SharedArchiveFile={home.archive()}"
    yield os.environ.get(JAVA_OPTIONS, "")


def query_settings(shards: int, *, forkless: bool) -> dict[str, str]:
    """What is set on the session before each query; all of it can be changed while a session runs."""
    settings = {
        "spark.sql.shuffle.partitions": str(shards),
        "spark.sql.adaptive.enabled": "false",
        f"{_STATE}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.trackTotalNumberOfRows": "false",
        f"{_STATE}.checkpointFormatVersion": "2",
        f"{_STATE}.minDeltasForSnapshot": "20",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.stopActiveRunOnRestart": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    }
    if forkless:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        )
    return settings


def check_session(session: Any) -> None:
    """Refuse a user's session that cannot carry a job, with the list of what to change."""
    conf = session.sparkContext.getConf()
    wrong = [
        f"{key} is {conf.get(key)}, set it to {value}"
        for key, value in STATIC.items()
        if conf.get(key, value).lower() != value
    ]
    master = session.sparkContext.master
    if not master.startswith("local"):
        wrong.append(
            f"the master is {master}; checkpoints lie on a local path, which needs a local master"
        )
    elif "," not in master:
        better = f"{master.removesuffix(']')},4]" if "[" in master else "local[1,4]"
        wrong.append(f"the master is {master}, which never retries a task; use {better}")
    if wrong:
        raise SetupError(
            "This Spark session does not fit a Headrace job: " + "; ".join(wrong) + "."
        )
