"""Starts and ends the embedded Spark session, quietly, and replaces one whose JVM has died."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headrace._spark import home
from headrace._spark.java import check_java
from headrace._spark.settings import check_session, launch_settings
from headrace.errors import SetupError

__all__ = ["EmbeddedSpark", "close_spark", "embedded_master", "is_alive", "open_spark"]


@dataclass(frozen=True)
class EmbeddedSpark:
    """A session, whether files are handled without child processes, and where Spark's log is."""

    session: SparkSession
    forkless: bool
    log: Path | None

    @property
    def gateway(self) -> Any:
        """The Py4J gateway of the session's JVM."""
        return SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it


#: Two jobs that start at once must not start two JVMs.
_opening = threading.Lock()
#: The session that we started; jobs of one process share it, and it ends with the process.
_embedded: EmbeddedSpark | None = None


def embedded_master(cores: int | None = None) -> str:
    """Plain `local[n]` never retries a task; the second number is how often a task may fail."""
    return f"local[{cores or len(os.sched_getaffinity(0))},4]"


def open_spark(
    name: str, *, master: str | None, session: SparkSession | None, log: Path, verbose: bool
) -> EmbeddedSpark:
    """A session of the user's Spark if there is a living one that fits, else of our own."""
    global _embedded
    with _opening:
        alive = is_alive()
        if session is not None and not alive:
            raise SetupError(
                "The Spark session given to the environment has ended; make a new one."
            )
        if session is None and alive and _embedded is not None:
            return _running(_embedded, master)
        # Spark's "active" session is one of this thread; the user's was made in another.
        brought = session or (SparkSession._instantiatedSession if alive else None)  # noqa: SLF001
        if brought is not None:
            return _brought(brought)
        _embedded = _start(name, _local(master), log, verbose=verbose)
        return _embedded


def _brought(session: SparkSession) -> EmbeddedSpark:
    check_session(session)
    implementation = session.sparkContext.getConf().get("spark.hadoop.fs.file.impl")
    return EmbeddedSpark(session, implementation == home.FILE_SYSTEM, log=None)


def _running(spark: EmbeddedSpark, master: str | None) -> EmbeddedSpark:
    running = spark.session.sparkContext.master
    if master is not None and _local(master) != running:
        raise SetupError(
            f"master={master!r}: this process runs Spark with {running} already, and a process has one "
            "Spark. Leave master out, or run this job in a process of its own."
        )
    return spark


def is_alive() -> bool:
    """Whether the JVM behind PySpark answers."""
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return False
    try:
        gateway.jvm.System.currentTimeMillis()
    except Exception:  # noqa: BLE001 - whatever Py4J raises, the JVM is gone
        return False
    return True


def _local(master: str | None) -> str:
    if master is None:
        return embedded_master()
    if not master.startswith("local"):
        raise SetupError(
            f"master={master!r}: a job runs on a local master for now, because its checkpoint lies on a "
            "local path. Leave master out, or use 'local[2,4]'."
        )
    if master == "local":
        return "local[1,4]"
    if "," not in master:
        return master.replace("*", str(os.cpu_count())).removesuffix("]") + ",4]"
    return master


def _start(name: str, master: str, log: Path, *, verbose: bool) -> EmbeddedSpark:
    check_java()
    if _embedded is not None or not is_alive():
        _end_jvm()
    _hush_py4j()
    os.environ.update(_environment())
    conf = SparkConf(loadDefaults=False)
    for key, value in launch_settings(name, master, _memory_mb()).items():
        conf.set(key, value)
    with _output(log, verbose) as out:
        gateway = launch_gateway(conf, popen_kwargs=out)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
    forkless = home.compile_classes(gateway)
    if not forkless:
        warnings.warn(
            "Headrace could not compile its file system for Spark; jobs run all the same, but every "
            "epoch starts about a hundred child processes and takes twice as long.",
            RuntimeWarning,
            stacklevel=2,
        )
    builder = SparkSession.builder.config(conf=conf)
    if forkless:
        builder = builder.config("spark.hadoop.fs.file.impl", home.FILE_SYSTEM)
    session = builder.getOrCreate()
    # It prints the traceback of a connection that broke; a JVM that dies breaks it.
    session.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign] # noqa: SLF001
    return EmbeddedSpark(session, forkless, log)


def _hush_py4j() -> None:
    """When a JVM dies Py4J prints a traceback through the root logger; the job's error says it better."""
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _environment() -> dict[str, str]:
    """What the JVM and, through it, every Python process of the job inherits."""
    return {
        "SPARK_HOME": str(home.spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        # A start is half a dozen Python processes: without compiled files each would take seconds.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(home.bytecode()),
    }


@contextlib.contextmanager
def _output(log: Path, verbose: bool) -> Any:
    """Where the JVM and its children write: into the log, unless the user wants to see it."""
    if verbose:
        yield {}
        return
    with log.open("ab") as file:
        kept: dict[str, IO[bytes]] = {"stdout": file, "stderr": file}
        yield kept


def _memory_mb() -> int:
    """The JVM schedules and keeps RocksDB's caches; rows live in the workers."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(1024, min(4096, total // 4))


def close_spark(patience_s: float = 10.0) -> None:
    """End the session that we started, and its JVM."""
    if _embedded is not None:
        with contextlib.suppress(Exception):
            _embedded.session.stop()
    _end_jvm(patience_s)


def _end_jvm(patience_s: float = 10.0) -> None:
    """Forget a dead or stopped JVM so that the next session starts its own."""
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):
        gateway.shutdown()
    if process is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
            process.wait(timeout=patience_s)
        if process.poll() is None:
            process.kill()
            process.wait()
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
