"""A producer of one lane: takes rows in as fast as the library does and notices every one that was not delivered.

The library calls back for rows that failed, not for those that went well. Waiting is bounded by progress: a broker
that takes rows slowly is waited for, one that takes none is not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.connectors.kafka.clients import Complaints, library, opened
from headrace.connectors.kafka.writing.failures import code_of, is_missing, sink_failure, too_large
from headrace.connectors.kafka.writing.records import Chunk
from headrace.errors import SinkError

__all__ = ["Sender"]

_TOO_LARGE = "MSG_SIZE_TOO_LARGE"
_DEFAULTS: dict[str, Any] = {
    "linger.ms": "5",
    "batch.size": "1000000",
    "batch.num.messages": "50000",
    "compression.type": "lz4",
    "queue.buffering.max.messages": "500000",
    "queue.buffering.max.kbytes": "131072",
}
#: The library's number for "no further call will do".
_FATAL = -150
#: What the library takes unless it is told otherwise.
_LARGEST = "1000000"


class Sender:
    """One producer. `config` is the client's, options of the user included; they win over our defaults."""

    def __init__(self, config: Mapping[str, Any], patience_s: float) -> None:
        self._brokers = config["bootstrap.servers"]
        self._largest = int(config.get("message.max.bytes", _LARGEST))
        self._patience_s = patience_s
        self._complaints = Complaints()
        self._failed: tuple[Any, str, bytes | None, int] | None = None
        ours = {
            "error_cb": self._complaints,
            "on_delivery": self._delivered,
            "delivery.report.only.error": True,
        }
        self.producer: Any = opened("Producer", {**_DEFAULTS, **config, **ours})

    def send(self, chunks: Iterable[Chunk]) -> None:
        """Hand rows to the library; it delivers them behind our back, in this order."""
        # What it complained of while nobody had rows for it says nothing about these.
        self._serve(0)
        self._complaints.forget()
        for chunk in chunks:
            if chunk.is_plain:
                self._send_plain(chunk)
            else:
                self._send_full(chunk)
            self._serve(0)
            self.check()

    def send_one(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """A record of our own."""
        self._send_plain(Chunk(topic, None, [value], [key], [partition]))

    def flush(self) -> None:
        """Wait until all rows are delivered; `SinkError` if none are for a while."""
        waiting, since = len(self.producer), time.monotonic()
        while self._call(self.producer.flush, 0.5):
            self.check()
            if len(self.producer) < waiting:
                waiting, since = len(self.producer), time.monotonic()
            elif time.monotonic() - since > self._patience_s:
                raise self.failure("no answer in time", f"{waiting:,} rows cannot be delivered")
        self.check()

    def check(self) -> None:
        """Raise if a row was not delivered."""
        if self._failed is None:
            return
        error, topic, key, size = self._failed
        if code_of(error) == _TOO_LARGE:
            raise too_large(topic, key, size, self._largest)
        raise library().KafkaException(error)

    def failure(self, error: object, what: str) -> SinkError:
        """What to raise for an error, with what the library says of its own accord."""
        with contextlib.suppress(library().KafkaException):
            self._serve(0)
        if is_missing(error) and self._failed is not None:
            what = f"{what} (topic {self._failed[1]!r})"
        return sink_failure(error, f"{what} at {self._brokers}", self._complaints)

    def drop(self) -> None:
        """Give the producer up, with all that it has not delivered."""
        with contextlib.suppress(library().KafkaException, RuntimeError):
            self.producer.purge()
        self.producer = None

    def _send_plain(self, chunk: Chunk) -> None:
        produce, one = self.producer.produce, chunk.topic
        topics = chunk.topics or [one] * len(chunk.values)
        for topic, value, key, partition in zip(
            topics, chunk.values, chunk.keys, chunk.partitions, strict=True
        ):
            try:
                produce(topic, value, key, partition)
            except BufferError:
                self._send_later(topic, value, key, partition, {})
            except library().KafkaException as error:
                raise self._refused(error, topic, value, key) from error

    def _send_full(self, chunk: Chunk) -> None:
        produce = self.producer.produce
        for topic, value, key, partition, rest in chunk.full():
            try:
                produce(topic, value, key, partition, **rest)
            except BufferError:
                self._send_later(topic, value, key, partition, rest)
            except library().KafkaException as error:
                raise self._refused(error, topic, value, key) from error

    def _send_later(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        rest: Mapping[str, Any],
    ) -> None:
        """The library's queue is full: wait for room."""
        waiting, since = len(self.producer), time.monotonic()
        while True:
            self._serve(0.05)
            self.check()
            if len(self.producer) < waiting:
                waiting, since = len(self.producer), time.monotonic()
            try:
                self.producer.produce(topic, value, key, partition, **rest)
            except BufferError:
                if time.monotonic() - since > self._patience_s:
                    raise self.failure("no answer in time", "rows cannot be delivered") from None
            else:
                return

    def _serve(self, seconds: float) -> None:
        """Let the library call us back."""
        self._call(self.producer.poll, seconds)

    def _call(self, function: Callable[[float], int], seconds: float) -> int:
        try:
            return function(seconds)
        except SystemError as error:
            # The library raises a fatal error and calls back for rows with that exception still pending.
            raise _behind(error) from error

    def _refused(
        self, error: Exception, topic: str, value: bytes | None, key: bytes | None
    ) -> Exception:
        size = len(value or b"") + len(key or b"")
        if code_of(error) == _TOO_LARGE:
            return too_large(topic, key, size, self._largest)
        if is_missing(error):
            self._failed = (error.args[0], topic, key, size)
        return error

    def _delivered(self, error: Any, message: Any) -> None:
        """Called for rows that failed."""
        if error is None or self._failed is not None:
            return
        size = len(message.value() or b"") + len(message.key() or b"")
        self._failed = (error, message.topic(), message.key(), size)


def _behind(error: BaseException) -> BaseException:
    """The library's own error behind one of the interpreter's."""
    kind: type[BaseException] = library().KafkaException
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, kind):
            return cause
        cause = cause.__cause__ or cause.__context__
    return kind(library().KafkaError(_FATAL))
