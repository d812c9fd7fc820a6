"""`Log`: how a test fills a log in memory, reads it and lets things go wrong."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa

from headrace.connectors.kafka.clients import LOGS, library
from headrace.connectors.kafka.options import IN_MEMORY
from headrace.connectors.kafka.reading.positions import millis
from headrace.connectors.kafka.writing.partitioner import hashes, partitions
from headrace.errors import BuildError
from headrace.testing.log.admin import AdminClient
from headrace.testing.log.broker import Broker, Topic
from headrace.testing.log.consumer import Consumer
from headrace.testing.log.faults import Moment, Request, failure
from headrace.testing.log.partition import Content, Header, Partition, Transaction
from headrace.testing.log.producer import Producer

__all__ = ["Isolation", "Log", "LogRecord", "OpenTransaction"]

Isolation = Literal["read_committed", "read_uncommitted"]
_CLIENTS = {"Producer": Producer, "Consumer": Consumer, "admin.AdminClient": AdminClient}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record as a consumer gets it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction of another application."""

    _broker: Broker
    _transaction: Transaction

    def commit(self) -> None:
        """Show its records."""
        with self._broker.lock:
            self._transaction.end("committed")

    def abort(self) -> None:
        """End it without its records."""
        with self._broker.lock:
            self._transaction.end("aborted")

    def abort_after(self, waits: int) -> None:
        """Abort it when readers of its partition have waited so often for what follows it."""
        with self._broker.lock:
            self._broker.end_later(self._transaction, "aborted", waits)


class Log:
    """A partitioned, transactional log in memory, for tests of pipelines that use Kafka.

        log = Log()
        log.topic("in", partitions=2)
        log.append("in", [{"k": "a", "n": 1}, {"k": "b", "n": 2}], key="k")
        ...  # a pipeline with KafkaSource(log.address, "in", ...) and KafkaSink(log.address, "out", ...)
        run_local(env, crashes=[(0, "published")])
        assert log.read("out") == [{"k": "a", "n": 1}, {"k": "b", "n": 2}]

    It works in this process alone, so with `run_local`. Topics, offsets, marks, transactional ids with their epochs and
    isolation are Kafka's. There is no retention, compaction or replication, and no call waits. `lag` is how often a reader
    has to ask after a transaction was committed until it sees that; a broker answers before it writes the marks.
    """

    def __init__(self, *, lag: int = 0) -> None:
        library()
        self.address = f"{IN_MEMORY}log-{next(_NUMBERS)}"
        self._broker = Broker(lag)
        LOGS[self.address] = self

    def __repr__(self) -> str:
        return f"Log({self.address})"

    def open(self, kind: str, config: Mapping[str, Any]) -> Any:
        """A client, by the name of its class in the client library; what the connector calls."""
        return _CLIENTS[kind](self._broker, config)

    def topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic; settings such as `cleanup_policy="compact"`."""
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self._broker.ask("create", lambda: self._broker.create(name, partitions, named))

    def append(
        self,
        topic: str,
        rows: Iterable[Mapping[str, Any] | bytes | None],
        *,
        key: str | None = None,
        partition: int | None = None,
        at: datetime | None = None,
    ) -> None:
        """Add records: rows as JSON, bytes as they are.

        `key` is a column, whose values go to partitions as Kafka's clients send them; without it rows go round, or to
        `partition`. `at` is their timestamp.
        """
        at_ms = time.time_ns() // 1_000_000 if at is None else millis(at)
        contents = [Content(_value(row), _key(row, key), None, at_ms) for row in rows]
        with self._broker.lock:
            count = len(self._topic(topic).partitions)
            for number, content in enumerate(contents):
                target = number % count if partition is None else partition
                if partition is None and content.key is not None:
                    hashed = hashes(pa.array([content.key], pa.binary()))
                    target = int(partitions(hashed, count)[0])
                self._partition(topic, target).append(content)

    def read(self, topic: str, isolation: Isolation = "read_committed") -> list[Any]:
        """The rows of a topic, one partition after the other, from JSON."""
        values = [record.value for record in self.records(topic, isolation)]
        return [None if value is None else json.loads(value) for value in values]

    def records(self, topic: str, isolation: Isolation = "read_committed") -> list[LogRecord]:
        """The records of a topic that a reader of this isolation gets now, one partition after the other."""
        committed_only = isolation == "read_committed"
        with self._broker.lock:
            return [
                _record(number, offset, content)
                for number, partition in enumerate(self._topic(topic).partitions)
                for offset, content in partition.visible(0, committed_only=committed_only)
            ]

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """What a consumer group has committed, by topic and partition."""
        with self._broker.lock:
            return dict(self._broker.groups.get(group, {}))

    def remove(self, topic: str) -> None:
        """Remove a topic; one that is made later is another one, even with the same name."""
        with self._broker.lock:
            self._topic(topic)
            del self._broker.topics[topic]

    def remove_before(self, topic: str, partition: int, offset: int) -> None:
        """Remove the oldest records of a partition, as retention does."""
        with self._broker.lock:
            found = self._partition(topic, partition)
            found.first = min(max(found.first, offset), found.end)

    def open_transaction(
        self,
        topic: str,
        partition: int = 0,
        rows: Iterable[Mapping[str, Any] | bytes | None] = (b"{}",),
    ) -> OpenTransaction:
        """Begin a transaction of another application, with these records in it."""
        transaction = Transaction()
        contents = [Content(_value(row)) for row in rows]
        with self._broker.lock:
            found = self._partition(topic, partition)
            for content in contents:
                found.append(content, transaction)
        return OpenTransaction(self._broker, transaction)

    def expire(self) -> None:
        """Abort what producers have open now, as brokers do after `transaction_timeout`."""
        with self._broker.lock:
            self._broker.expire()

    def fail(
        self,
        request: Request,
        code: str = "_TIMED_OUT",
        *,
        moment: Moment = "before",
        nth: int = 1,
        times: int = 1,
    ) -> None:
        """Answer requests with an error: the nth from now on, and the `times` - 1 after it.

        `request` is "init", "append" (each record), "commit" or "abort" of producers, "fetch" of consumers, "topics",
        "offsets", "groups" or "create". With `moment="after"` it took effect, and only the answer is lost.
        """

        def answer() -> None:
            raise failure(code)

        failure(code)
        self.at(request, answer, moment=moment, nth=nth, times=times)

    def kill(self, request: Request, *, moment: Moment = "before", nth: int = 1) -> None:
        """Kill the process at this request, with all producers that are open: what they had open stays open."""
        self.at(request, self._broker.kill, moment=moment, nth=nth)

    def at(
        self,
        request: Request,
        action: Callable[[], None],
        *,
        moment: Moment = "before",
        nth: int = 1,
        times: int = 1,
    ) -> None:
        """Call something at a request, such as what another process does just then."""
        self._broker.faults.add(request, moment, action, nth, times)

    @contextmanager
    def away(self) -> Iterator[None]:
        """No broker answers meanwhile. The first start of a job waits 30 seconds for them, in real time, then fails."""
        self._broker.away = True
        try:
            yield
        finally:
            self._broker.away = False

    @property
    def unreached(self) -> int:
        """How often what was asked for with `fail`, `kill` and `at` has not happened."""
        return self._broker.faults.unreached

    def _topic(self, name: str) -> Topic:
        found = self._broker.topics.get(name)
        if found is None:
            known = sorted(self._broker.topics)
            raise BuildError(f"there is no topic {name!r} in {self}; there are {known}")
        return found

    def _partition(self, topic: str, number: int) -> Partition:
        known = self._topic(topic).partitions
        if not 0 <= number < len(known):
            raise BuildError(
                f"there is no partition {number!r} of topic {topic!r} in {self}; it has 0 to {len(known) - 1}"
            )
        return known[number]


def _value(row: Mapping[str, Any] | bytes | None) -> bytes | None:
    if row is None or isinstance(row, bytes):
        return row
    return json.dumps(dict(row), default=_text, separators=(",", ":")).encode()


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise BuildError(f"a row of a log is JSON, and {value!r} is none: give the record as bytes")


def _key(row: Mapping[str, Any] | bytes | None, column: str | None) -> bytes | None:
    if column is None:
        return None
    if not isinstance(row, Mapping):
        raise BuildError(f"key={column!r} is a column, and the record {row!r} has none")
    if column not in row:
        raise BuildError(f"key={column!r} is no column of the row {row!r}; it has {list(row)}")
    found = row[column]
    return None if found is None else str(found).encode()


def _record(partition: int, offset: int, content: Content) -> LogRecord:
    return LogRecord(
        partition,
        offset,
        content.key,
        content.value,
        tuple(content.headers or ()),
        _EPOCH + timedelta(milliseconds=content.at_ms),
    )
