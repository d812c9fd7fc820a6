"""Markers: the proof of what a lane has published, in a compacted topic beside the rows.

A marker is written in the transaction that carries an epoch's rows, so the two are visible together or not at all.
Reading one comes behind `init_transactions`, which ends what this lane had in flight: from then on every marker of
the lane is decided. A reader sees decided records only up to the oldest open transaction of anybody; what lies
behind it is looked through for our key, and only if it is there others are waited for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from headrace.connectors.kafka.clients import client_config, library, opened
from headrace.connectors.kafka.writing.failures import code_of, sink_failure
from headrace.connectors.kafka.writing.topics import NewTopic
from headrace.errors import CheckpointDamaged, SinkError

__all__ = ["MARKER_TOPIC", "Marker", "MarkerPlace", "read_marker"]

#: Small segments, cleaned early: a start reads what is there from the beginning.
MARKER_TOPIC = NewTopic(
    partitions=4,
    settings={
        "cleanup.policy": "compact",
        "segment.bytes": str(4 << 20),
        "segment.ms": str(3_600_000),
        "min.cleanable.dirty.ratio": "0.1",
    },
)

_ANSWER_S = 10.0
#: A call waits so long for a full batch, the end of the partition or not.
_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class Marker:
    """Who published what last in a lane; epoch -1: nothing yet."""

    incarnation: str
    sink: str
    lane: int
    lanes: int
    fence: int
    epoch: int

    @property
    def key(self) -> bytes:
        """One per lane; the topic keeps the last marker of each."""
        return f"{self.incarnation}/{self.sink}/{self.lane}".encode()

    def to_bytes(self) -> bytes:
        """As it stands in the topic."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class MarkerPlace:
    """Where the markers of a lane are: always the same partition, even if the topic grows."""

    topic: str
    partition: int
    key: bytes


def read_marker(
    bootstrap: str, options: Mapping[str, str], place: MarkerPlace, patience_s: float
) -> Marker | None:
    """The last committed marker of a lane whose transactions are all ended; None: there is none."""
    with _Reader(bootstrap, options, place) as reader:
        try:
            return reader.decided(time.monotonic() + patience_s)
        except library().KafkaException as error:
            what = f"the markers in topic {place.topic!r} at {bootstrap} cannot be read"
            raise sink_failure(error, what) from error


class _Reader:
    """Reads one partition of the marker topic: what is decided, and what stands behind it."""

    def __init__(self, bootstrap: str, options: Mapping[str, str], place: MarkerPlace) -> None:
        self._place = place
        config = {
            **client_config(bootstrap, options),
            "group.id": "headrace-markers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            # The end of a partition is told by an empty answer; a start waits for it.
            "fetch.wait.max.ms": 10,
        }
        self._decided: Any = opened("Consumer", {**config, "isolation.level": "read_committed"})
        self._all: Any = opened("Consumer", {**config, "isolation.level": "read_uncommitted"})
        self._position = 0
        self._last: bytes | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._decided.close()
        self._all.close()

    def decided(self, deadline: float) -> Marker | None:
        """Read until no marker of ours can follow."""
        first, end = self._all.get_watermark_offsets(self._at(0), timeout=_ANSWER_S)
        # With the number; asked for "the beginning" a new consumer first waits for half a second.
        self._decided.assign([self._at(first)])
        self._read_on(deadline, end)
        needed = self._last_of_ours(end, deadline)
        while self._position < needed:
            self._read_on(deadline, needed)
        return None if self._last is None else self._parsed(self._last)

    def _read_on(self, deadline: float, end: int) -> None:
        """Read to where decided records stop at the moment."""
        while self._position < end:
            read = self._decided.consume(1_000, _WAIT_S)
            for message in read:
                self._take(message)
            # Not at once: whoever held records up may have ended since, and they follow in the same answer.
            if any(_is_end(message) for message in read):
                return
            if time.monotonic() > deadline:
                raise self._overdue()

    def _take(self, message: Any) -> None:
        if _is_end(message):
            self._position = max(self._position, message.offset())
            return
        self._position = message.offset() + 1
        if message.key() == self._place.key:
            self._last = message.value()

    def _last_of_ours(self, end: int, deadline: float) -> int:
        """The position behind our last record among the undecided ones; 0: there is none."""
        needed, position = 0, self._position
        if position < end:
            self._all.assign([self._at(position)])
        while position < end:
            for message in self._all.consume(1_000, _WAIT_S):
                if _is_end(message):
                    position = max(position, message.offset())
                    continue
                position = message.offset() + 1
                if message.key() == self._place.key and message.offset() < end:
                    needed = position
            if time.monotonic() > deadline:
                raise self._overdue()
        return needed

    def _at(self, offset: int) -> Any:
        return library().TopicPartition(self._place.topic, self._place.partition, offset)

    def _overdue(self) -> SinkError:
        return SinkError(
            f"partition {self._place.partition} of topic {self._place.topic!r} could not be read to its end:"
            " it did not answer, or a transaction is open before our last marker; it ends by itself or times out."
            " If it stays, it may hang in the broker: kafka-transactions.sh find-hanging tells"
        )

    def _parsed(self, value: bytes) -> Marker:
        try:
            return Marker(**json.loads(value))
        except (ValueError, TypeError) as error:
            raise CheckpointDamaged(
                f"the marker {self._place.key.decode()!r} in topic {self._place.topic!r} is not one: {error}"
            ) from error


def _is_end(message: Any) -> bool:
    error = message.error()
    if error is None:
        return False
    if code_of(error) == "_PARTITION_EOF":
        return True
    raise library().KafkaException(error)
