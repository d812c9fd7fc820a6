"""Makes an archive of the Java classes that a job's start loads, so that later starts take half the time.

    python -m headrace._spark.archive

It runs a small job and lets the JVM write down what it loaded (class data sharing). Java checks the archive
against its own version and class path and goes on without it if they differ, so it can never do harm.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace._spark import home
from headrace._spark.session import close_spark, open_spark
from headrace._spark.settings import JAVA_OPTIONS

__all__ = ["main"]


def main() -> None:
    """Make the archive if there is none."""
    if home.archive().exists():
        return
    with tempfile.TemporaryDirectory(prefix="headrace-archive-") as directory:
        # Classes are archived from jars only, so ours must be in theirs before the JVM starts.
        _open(Path(directory))
        close_spark()
        draft = home.archive().with_suffix(f".{os.getpid()}")
        os.environ[JAVA_OPTIONS] = f"-XX:ArchiveClassesAtExit={draft}"
        with contextlib.redirect_stderr(sys.stdout):
            _small_job(Path(directory))
        close_spark(patience_s=300)
    if draft.exists():
        draft.rename(home.archive())


def _open(directory: Path) -> None:
    open_spark("archive", master=None, session=None, log=directory / "log", verbose=False)


def _small_job(directory: Path) -> None:
    """Touches what every job touches: the job source, a host, state, a sink."""
    import headrace as hr
    from headrace.connectors import files, memory

    env = hr.Environment("archive", checkpoint=directory / "state", epochs=hr.Epochs(rows=5))
    start = datetime(2025, 1, 1, tzinfo=UTC)
    rows = [{"key": n % 2, "at": start + timedelta(seconds=n)} for n in range(20)]
    (
        env.from_source(
            memory.MemorySource(rows, schema={"key": int, "at": datetime}),
            watermarks=hr.WatermarkStrategy.monotonous().with_timestamps("at"),
            uid="rows",
        )
        .key_by("key")
        .window(hr.windows.Tumbling(timedelta(seconds=5)))
        .aggregate(rows=hr.count(), uid="counts")
        .sink_to(files.FileSink(directory / "out"), uid="out")
    )
    env.execute()


if __name__ == "__main__":
    main()
