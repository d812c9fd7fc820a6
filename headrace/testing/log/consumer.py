"""The log's consumer: stands in the partitions that it was assigned and gives what may be read there.

The end of a partition is reported once wherever it is, as the library does with `enable.partition.eof`. A position that
does not exist stops the partition until it is assigned anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.connectors.kafka.clients import library
from headrace.testing.log.broker import Broker, Place
from headrace.testing.log.faults import failure
from headrace.testing.log.partition import Partition

__all__ = ["Consumer"]

_CREATE_TIME = 1


@dataclass
class _Standing:
    place: Place
    position: int
    #: Where the end was reported last.
    reported: int = -1
    stopped: bool = False


class Consumer:
    """A `confluent_kafka.Consumer` of a log, as far as the source and the sink call it."""

    def __init__(self, broker: Broker, config: Mapping[str, Any]) -> None:
        self._broker = broker
        self._committed_only = config.get("isolation.level", "read_committed") == "read_committed"
        self._reports_ends = str(config.get("enable.partition.eof")).lower() == "true"
        self._reset = str(config.get("auto.offset.reset", "latest"))
        self._complain: Callable[[Any], None] = config.get("error_cb", lambda _: None)
        self._standing: list[_Standing] = []
        self._closed = False

    def assign(self, partitions: Sequence[Any]) -> None:
        """Stand at these offsets."""
        self._check_open()
        self._standing = [_Standing((one.topic, one.partition), one.offset) for one in partitions]

    def unassign(self) -> None:
        """Stand nowhere."""
        self._check_open()
        self._standing = []

    def close(self) -> None:
        """Nothing can be asked any more."""
        self._closed = True

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        """The oldest offset, and where a reader of this isolation has to stop."""
        self._check_open()

        def asked() -> tuple[int, int]:
            found = self._broker.partition((partition.topic, partition.partition))
            return found.first, found.limit(committed_only=self._committed_only)

        try:
            return self._broker.ask("offsets", asked)
        except library().KafkaException as error:
            self._hear(error)
            raise

    def poll(self, timeout: float) -> Any | None:
        """The next record, end or error; None: there is none now."""
        return next(iter(self.consume(1, timeout)), None)

    def consume(self, most: int, _timeout: float) -> list[Any]:
        """Records, ends and errors, at most so many."""
        self._check_open()
        if not self._standing:
            return []
        try:
            return self._broker.ask("fetch", lambda: self._fetched(most))
        except library().KafkaException as error:
            if self._broker.away:
                self._hear(error)
                return []
            topic, partition = self._standing[0].place
            return [library().Message(topic, partition, error=error.args[0])]

    def _fetched(self, most: int) -> list[Any]:
        found: list[Any] = []
        for standing in self._standing:
            more = list(islice(self._messages(standing), most - len(found)))
            found += more
            if not more and standing.place[0] in self._broker.topics:
                self._broker.waited(standing.place)
        return found

    def _messages(self, standing: _Standing) -> Iterator[Any]:
        if standing.stopped or standing.place[0] not in self._broker.topics:
            return
        partition = self._broker.partition(standing.place)
        if not partition.first <= standing.position <= partition.end:
            if self._reset == "error":
                standing.stopped = True
                yield self._event(standing, "_AUTO_OFFSET_RESET", "Broker: Offset out of range")
                return
            standing.position = partition.first if self._reset == "earliest" else partition.end
        yield from self._records(standing, partition)
        limit = partition.limit(committed_only=self._committed_only)
        standing.position = max(standing.position, limit)
        if self._reports_ends and standing.reported != standing.position:
            standing.reported = standing.position
            yield self._event(standing, "_PARTITION_EOF")

    def _records(self, standing: _Standing, partition: Partition) -> Iterator[Any]:
        visible = partition.visible(standing.position, committed_only=self._committed_only)
        for offset, content in visible:
            standing.position = offset + 1
            yield library().Message(
                *standing.place,
                offset=offset,
                key=content.key,
                value=content.value,
                headers=None if content.headers is None else list(content.headers),
                timestamp=(_CREATE_TIME, content.at_ms),
            )

    def _event(self, standing: _Standing, code: str, words: str | None = None) -> Any:
        error = failure(code, words).args[0]
        return library().Message(*standing.place, offset=standing.position, error=error)

    def _hear(self, error: Exception) -> None:
        if self._broker.away:
            error = failure("_TRANSPORT", "Connection refused")
        self._complain(error.args[0])

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")
