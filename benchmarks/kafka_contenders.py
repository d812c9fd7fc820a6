"""What the Kafka benchmarks share: their contenders, a broker, and the options that all of them have."""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from jars import FLINK_KAFKA, SPARK_KAFKA, fetched
from processes import AtWork, at_work, flink_python

from headrace._services import Kafka

__all__ = ["FLINK", "HEADRACE", "SPARK", "broker", "picked", "running", "say", "shared_options"]

HEADRACE, FLINK, SPARK = "Headrace", "Flink", "Spark, at least once"
SCRIPTS = {
    HEADRACE: "contenders/headrace_kafka.py",
    FLINK: "contenders/flink_kafka.py",
    SPARK: "contenders/spark_kafka.py",
}


def shared_options(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows what all benchmarks can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    running_one = os.environ.get("HEADRACE_TEST_KAFKA")
    parser.add_argument(
        "--broker", default=running_one, help="HOST:PORT; without it one is started"
    )
    parser.add_argument("--only", nargs="+", default=[], help="parts of the contenders' names")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=180, help="seconds that a contender may take")
    parser.add_argument("--flink-python", help="the interpreter of an environment that has Flink")
    return parser


def picked(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """The contenders that `--only` names; all of them without it."""
    names, words = list(names), [word.lower() for word in options.only]
    return [n for n in names if any(w in n.lower() for w in words)] or names


@contextlib.contextmanager
def broker(options: argparse.Namespace) -> Iterator[None]:
    """Sees to it that `options.broker` is one: the one that was named, or one for the time being."""
    if options.broker is not None:
        yield
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        server = Kafka(Path(root, "kafka"))
        server.start()
        try:
            options.broker = server.address
            yield
        finally:
            server.stop()


@contextlib.contextmanager
def running(
    name: str, job: str, topic: str, results: str, options: argparse.Namespace
) -> Iterator[AtWork]:
    """This contender at work, from one topic to the other."""
    python, jars = sys.executable, ""
    if name == FLINK:
        python = options.flink_python or flink_python()
    if name != HEADRACE:
        jars = ",".join(map(str, fetched(FLINK_KAFKA if name == FLINK else SPARK_KAFKA)))
    arguments = [job, options.broker, topic, results, options.cores, jars]
    with at_work(SCRIPTS[name], arguments, python=python) as contender:
        yield contender


def say(text: str) -> None:
    """To people, not into the table."""
    print(text, file=sys.stderr, flush=True)
