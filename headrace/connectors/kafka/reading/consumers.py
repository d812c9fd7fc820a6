"""Consumers that a worker process keeps between epochs, each standing somewhere in one partition.

A new consumer needs 5 to 800 milliseconds to its first record, one that stands in the right place none, one that is sent
elsewhere in its topic about 15 milliseconds, one that is sent to another topic a second. So a process keeps a few of
them, gives each partition the one that stands in it, and when there are enough sends the one that rested longest; it
never leaves its topic. Tasks of one partition wander between workers: a consumer that is a little behind reads on and
drops what is before the range, which costs less than sending it.

Pausing is no way to keep one from fetching ahead: the library takes up to a second to resume. Its queue is small
instead, and a thread takes those off their partitions that were not used for a second.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headrace.connectors.kafka.clients import Complaints, library, opened
from headrace.connectors.kafka.reading.positions import TopicPartition

__all__ = ["READER", "Seat", "seat"]

#: What makes a consumer ours: it stands where we put it, tells where a partition ends and never moves on its own.
READER: dict[str, Any] = {
    "enable.partition.eof": "true",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
}
#: What may be overridden. The library's own second between two fetches of a full queue would halve the speed.
READER_DEFAULTS: dict[str, Any] = {
    # A consumer at the end of a partition cannot be sent elsewhere before the broker has answered.
    "fetch.wait.max.ms": "50",
    "fetch.queue.backoff.ms": "2",
    "queued.max.messages.kbytes": "4096",
    "queued.min.messages": "1000000",
}

_MOST = 16
#: So many records are read and dropped rather than sending a consumer on.
_NEAR = 5_000
_RESTS_AFTER_S = 1.0


@dataclass(eq=False)
class Seat:
    """A consumer and where it stands: what is left of `[floor, position)` is in `surplus`."""

    consumer: Any
    complaints: Complaints
    config: str
    partition: TopicPartition | None = None
    floor: int = -1
    position: int = -1
    surplus: list[Any] = field(default_factory=list)
    taken: bool = False
    used_s: float = 0.0

    def stand(self, start: int) -> None:
        """Have the records from `start` on come next."""
        if 0 <= self.floor <= start <= self.position + _NEAR:
            self.floor, self.position = start, max(start, self.position)
        else:
            self.send(start)

    def send(self, start: int) -> None:
        """Go elsewhere, whatever was fetched."""
        self.surplus, self.floor, self.position = [], start, start
        self.resume()

    def resume(self) -> None:
        """Have a consumer that was stopped fetch on from where it stands; what it gave before is kept."""
        assert self.partition is not None
        self.consumer.assign([library().TopicPartition(*self.partition, self.position)])

    def rest(self) -> None:
        """Fetch nothing more; where it stood is forgotten."""
        if self.floor >= 0:
            self.consumer.unassign()
        self.surplus, self.floor, self.position = [], -1, -1

    def kept(self) -> Sequence[Any]:
        """What was fetched past the range before."""
        kept, self.surplus = self.surplus, []
        return kept

    def records(self, most: int, wait_s: float) -> Sequence[Any]:
        """What is there, at most so many, errors among them; waits only for the first one."""
        found: list[Any] = self.consumer.consume(most, 0)
        if found:
            return found
        first = self.consumer.poll(wait_s)
        if first is None:
            return ()
        return [first, *self.consumer.consume(most - 1, 0)] if most > 1 else [first]


_LOCK = threading.Lock()
_SEATS: list[Seat] = []
_OWNER = os.getpid()
_WATCH: threading.Thread | None = None


@contextmanager
def seat(config: Mapping[str, Any], partition: TopicPartition, start: int) -> Iterator[Seat]:
    """A consumer that stands at `start`, for this caller alone; an error ends it."""
    held = _take(_digest(config), config, partition)
    try:
        held.stand(start)
        yield held
    except GeneratorExit:
        held.rest()
        raise
    except BaseException:
        _end(held)
        raise
    finally:
        held.used_s, held.taken = time.monotonic(), False


def _take(digest: str, config: Mapping[str, Any], partition: TopicPartition) -> Seat:
    with _LOCK:
        _forget_inherited()
        free = [one for one in _SEATS if not one.taken]
        ours = [one for one in free if one.config == digest]
        found = next((one for one in ours if one.partition == partition), None)
        if found is None and len(_SEATS) >= _MOST:
            found = _reseated(free, ours, partition[0])
        found = found or _opened(digest, config)
        found.partition, found.taken = partition, True
        return found


def _opened(digest: str, config: Mapping[str, Any]) -> Seat:
    complaints = Complaints()
    consumer = opened("Consumer", {**READER_DEFAULTS, **config, **READER, "error_cb": complaints})
    found = Seat(consumer, complaints, digest)
    _SEATS.append(found)
    _watch_the_idle()
    return found


def _end(held: Seat) -> None:
    with _LOCK:
        _SEATS.remove(held)
    held.consumer.close()


def _reseated(free: Sequence[Seat], ours: Sequence[Seat], topic: str) -> Seat | None:
    """One that may be sent elsewhere; if none knows the topic, one of the others makes room."""
    here = [one for one in ours if one.partition is not None and one.partition[0] == topic]
    oldest = min(here or free, key=lambda one: one.used_s, default=None)
    if here and oldest is not None:
        oldest.rest()
        return oldest
    if oldest is not None:
        _SEATS.remove(oldest)
        oldest.consumer.close()
    return None


def _watch_the_idle() -> None:
    global _WATCH
    if _WATCH is None or not _WATCH.is_alive():
        _WATCH = threading.Thread(target=_rest_the_idle, name="headrace-kafka-rest", daemon=True)
        _WATCH.start()


def _rest_the_idle() -> None:
    """Consumers that nobody uses fetch nothing."""
    while True:
        time.sleep(_RESTS_AFTER_S)
        before = time.monotonic() - _RESTS_AFTER_S
        with _LOCK:
            for one in _SEATS:
                if not one.taken and one.used_s < before:
                    one.rest()


def _forget_inherited() -> None:
    """Consumers do not survive a fork; the parent's threads are not here."""
    global _SEATS, _OWNER
    if os.getpid() != _OWNER:
        _INHERITED.extend(_SEATS)
        _SEATS, _OWNER = [], os.getpid()


#: Kept from being closed: that would wait for threads that do not exist.
_INHERITED: list[Seat] = []


def _digest(config: Mapping[str, Any]) -> str:
    text = json.dumps(dict(config), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
