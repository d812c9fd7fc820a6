"""Sends dead letters back to where they came from: all that were chosen in one transaction, each of them once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace._cli.letters import Letter, TopicAddress, address_of
from headrace._cli.replayed import Replayed, locked
from headrace.errors import BuildError, SinkError

__all__ = ["Choice", "Wish", "brokers_of", "chosen", "replay"]

_PATIENCE_S = 60.0
#: What brokers allow unless they are told otherwise.
_TRANSACTION_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Wish:
    """Which letters the user asked for."""

    only_cause: str | None = None
    limit: int | None = None
    #: Also those that were sent before.
    again: bool = False
    #: Also rows that failed in a step, as JSON.
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Which letters are sent, and why the others are not."""

    send: tuple[Letter, ...]
    sent_before: int
    without_record: int


def chosen(letters: Sequence[Letter], sent: Mapping[str, str], wish: Wish) -> Choice:
    """The letters to send, the oldest first; several about one record are one."""
    part = wish.only_cause
    asked = [letter for letter in letters if part is None or part in (letter.cause or "")]
    new = [letter for letter in asked if wish.again or letter.identity not in sent]
    ready = [letter for letter in new if wish.as_json or letter.is_record]
    once: dict[str, Letter] = {}
    for letter in ready:
        once.setdefault(letter.identity, letter)
    return Choice(tuple(once.values())[: wish.limit], len(asked) - len(new), len(new) - len(ready))


def replay(
    letters: Sequence[Letter],
    state: Path,
    bootstrap: str,
    options: Mapping[str, str],
    topic: str | None,
    wish: Wish,
) -> Choice:
    """Choose, send and remember."""
    with locked(state):
        replayed = Replayed.read(state)
        choice = chosen(letters, replayed.sent, wish)
        if replayed.pending is None and not choice.send:
            return choice
        with _translated(bootstrap):
            sender = _Sender(bootstrap, options, replayed, topic)
            sender.resolve()
            choice = chosen(letters, replayed.sent, wish)
            if choice.send:
                sender.send(choice.send)
    return choice


def brokers_of(place: str, bootstrap: str | None) -> str:
    """The brokers that letters are sent to: those that were named, or those of the place."""
    address = address_of(place)
    if bootstrap is None and isinstance(address, TopicAddress):
        return address.bootstrap
    if bootstrap is None:
        raise BuildError("name the brokers that letters are sent to: --bootstrap host:9092")
    return bootstrap


class _Sender:
    def __init__(
        self, bootstrap: str, options: Mapping[str, str], replayed: Replayed, topic: str | None
    ) -> None:
        from headrace.connectors.kafka.clients import client_config, opened

        config = client_config(bootstrap, options)
        self._bootstrap = bootstrap
        self._replayed = replayed
        self._topic = topic
        self._group = opened("Consumer", config | {"group.id": replayed.name, **_READING})
        self._producer = opened(
            "Producer", config | {"transactional.id": replayed.name, **_WRITING}
        )
        self._refused: list[str] = []

    def resolve(self) -> None:
        """End what an earlier replay left open, then ask whether its transaction was committed."""
        self._producer.init_transactions(_PATIENCE_S)
        pending = self._replayed.pending
        if pending is None:
            return
        from confluent_kafka import TopicPartition

        place = TopicPartition(pending.topic, 0)
        mark = self._group.committed([place], timeout=_PATIENCE_S)[0].offset
        self._replayed.settle(committed=mark == pending.number)

    def send(self, letters: Sequence[Letter]) -> None:
        """All of them, or none."""
        from confluent_kafka import KafkaException, TopicPartition

        targets = self._targets(letters)
        attempt = self._replayed.begin(targets[0][0], [letter.identity for letter in letters])
        self._producer.begin_transaction()
        try:
            for letter, (topic, partition) in zip(letters, targets, strict=True):
                self._produce(letter, topic, partition)
            mark = TopicPartition(attempt.topic, 0, attempt.number)
            group = self._group.consumer_group_metadata()
            self._producer.send_offsets_to_transaction([mark], group, _PATIENCE_S)
            self._producer.commit_transaction(_PATIENCE_S)
        except (KafkaException, BufferError):
            self._give_up()
            raise
        self._replayed.settle(committed=True)

    def _give_up(self) -> None:
        """Whether it was committed is asked at the next replay, unless the abort succeeds."""
        from confluent_kafka import KafkaException

        with contextlib.suppress(KafkaException):
            self._producer.abort_transaction(_PATIENCE_S)
            self._replayed.settle(committed=False)
        if self._refused:
            raise SinkError(f"Nothing was sent: {'; '.join(self._refused[:5])}") from None

    def _produce(self, letter: Letter, topic: str, partition: int) -> None:
        def told(error: Any, _record: Any) -> None:
            if error is not None and error.name() not in {"_PURGE_QUEUE", "_PURGE_INFLIGHT"}:
                self._refused.append(f"letter {letter.number}: {error.str()}")

        came_from = f"{letter.partition}@{letter.offset}".encode()
        for _ in range(600):
            try:
                self._producer.produce(
                    topic,
                    letter.value,
                    letter.raw_key,
                    partition,
                    on_delivery=told,
                    headers=[("headrace.replayed", came_from)],
                )
                break
            except BufferError:  # the queue is full: what stands in it goes first
                self._producer.poll(0.1)
        else:
            raise BufferError(f"{topic} takes no records")
        self._producer.poll(0)

    def _targets(self, letters: Sequence[Letter]) -> list[tuple[str, int]]:
        """The topic and partition of each: its own, or any by its key in a topic that was named."""
        lost = [letter for letter in letters if self._topic is None and letter.origin is None]
        if lost:
            raise BuildError(
                f"letter {lost[0].number} did not come from Kafka ({lost[0].partition}); name the topic"
                " that it is sent to: --topic"
            )
        wanted = [(self._topic, -1) if self._topic else letter.origin for letter in letters]
        targets = [place for place in wanted if place is not None]
        known = self._producer.list_topics(timeout=_PATIENCE_S).topics
        for topic, partition in targets:
            if topic not in known or partition >= len(known[topic].partitions):
                raise BuildError(
                    f"{self._bootstrap} has no topic {topic!r}"
                    + (f" with a partition {partition}" if topic in known else "")
                    + "; name the topic that they are sent to: --topic"
                )
        return targets


_READING = {"enable.auto.commit": False, "isolation.level": "read_committed"}
_WRITING = {
    "transaction.timeout.ms": _TRANSACTION_MS,
    "partitioner": "murmur2_random",  # as Kafka's own clients choose
    "message.max.bytes": 1_000_000_000,  # what is too large is the broker's to say
    "compression.type": "lz4",
}


@contextlib.contextmanager
def _translated(bootstrap: str) -> Iterator[None]:
    from headrace.connectors.kafka.clients import library, sentence

    try:
        yield
    except (library().KafkaException, BufferError) as error:
        raise SinkError(
            f"The letters could not be sent to {bootstrap}: {sentence(error)}. Mend it and replay again:"
            " what was sent is known."
        ) from error
