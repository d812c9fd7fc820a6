"""From one log to another, into a table and into files. Run as a script: `log_job.py ROOT`; servers and topics come by environment.

Two partitions in, a keyed process function, three partitions out, and the same rows into PostgreSQL and into files. The input is
(key, sequence), so that a checker which reads only the outputs can tell what is lost, doubled or out of order.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.connectors import databases, files, kafka

ROWS = 30_000
ROWS_PER_EPOCH = 500
KEYS = 50
#: A consumer asks for one batch of records, and for the next when that one is read.
NOTHING_AHEAD = {"queued.max.messages.kbytes": "1", "fetch.message.max.bytes": "1"}


@dataclass
class Event:
    """One of the input: the keys' events are numbered one by one."""

    key: int
    sequence: int


@dataclass
class Seen:
    """The same, with how many of its key came before: state that survives is what makes it right."""

    key: int
    sequence: int
    before: int


class Count(hr.KeyedProcessFunction):
    """Numbers the events of a key as they come."""

    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[Seen]:
        """One event."""
        before = self.seen.value() or 0
        self.seen.update(before + 1)
        yield Seen(value.key, value.sequence, before)


def build(root: Path, environment: dict[str, str]) -> hr.Environment:
    """The job at `root`."""
    bootstrap = environment["LOG_KAFKA"]
    env = hr.Environment(
        "log",
        checkpoint=root / "state",
        epochs=hr.Epochs(
            rows=int(environment.get("LOG_EPOCH_ROWS", ROWS_PER_EPOCH)),
            max_unpublished=int(environment.get("LOG_UNPUBLISHED", "16")),
        ),
        restart=hr.Restart.never() if environment.get("LOG_RESTART") != "on" else None,
        shards=2,
    )
    source = kafka.KafkaSource(
        bootstrap,
        topics=environment["LOG_IN"],
        schema=Event,
        stop=None if environment.get("LOG_ENDLESS") else "latest",
        group=environment["LOG_IN"] + "-group",
        read_timeout=timedelta(seconds=float(environment.get("LOG_READ_TIMEOUT", "120"))),
        options=NOTHING_AHEAD if environment.get("LOG_NOTHING_AHEAD") else {},
    )
    seen = env.from_source(source, uid="events").key_by("key").process(Count(), uid="count")
    sink = kafka.KafkaSink(bootstrap, topic=environment["LOG_OUT"], key=("key",))
    seen.sink_to(sink, uid="log")
    if table := environment.get("LOG_TABLE"):
        into = databases.PostgresSink(environment["LOG_POSTGRES"], table=table)
        seen.sink_to(into, uid="table")
    if folder := environment.get("LOG_FILES"):
        seen.sink_to(files.FileSink(folder, format="jsonl"), uid="files")
    return env


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]), dict(os.environ)).execute()
    except hr.errors.HeadraceError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(1)
