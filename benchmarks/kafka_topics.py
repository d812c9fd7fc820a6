"""Topics of the Kafka benchmarks, and an observer that belongs to none of the contenders: what it does not see, nobody has said."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

__all__ = ["Observer", "Seen", "delete_topics", "ends", "make_topic"]

PATIENCE_S = 20


def make_topic(broker: str, name: str, partitions: int) -> None:
    """An empty topic, whatever there was before."""
    delete_topics(broker, [name])
    admin = _admin(broker)
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_S)


def delete_topics(broker: str, names: Sequence[str]) -> None:
    """Gone when this returns; one that does not exist is gone already."""
    admin = _admin(broker)
    there = [name for name in names if name in admin.list_topics(timeout=PATIENCE_S).topics]
    if there:
        for gone in admin.delete_topics(there, operation_timeout=PATIENCE_S).values():
            gone.result(PATIENCE_S)
    while set(there) & set(admin.list_topics(timeout=PATIENCE_S).topics):
        time.sleep(0.05)


def ends(broker: str, topic: str) -> dict[int, int]:
    """How many messages each partition has had; empty if there is no such topic."""
    consumer = _consumer(broker)
    try:
        found = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic]
        if found.error is not None:
            return {}
        places = [TopicPartition(topic, partition) for partition in found.partitions]
        return {
            p.partition: consumer.get_watermark_offsets(p, PATIENCE_S, cached=False)[1]
            for p in places
        }
    finally:
        consumer.close()


@dataclass(frozen=True)
class Seen:
    """Messages that became visible together, and when (`time.time`)."""

    at: float
    values: list[bytes]


class Observer:
    """Sees what a `read_committed` consumer sees of a topic, as soon as it can."""

    def __init__(self, broker: str, topic: str, partitions: int) -> None:
        self._consumer = _consumer(broker)
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

    def look(self, wait_s: float = 0.05) -> Seen:
        """What has come since the last look; empty after `wait_s` without anything."""
        first = self._consumer.poll(wait_s)
        at = time.time()
        if first is None:
            return Seen(at, [])
        return Seen(at, [_value(m) for m in [first, *self._consumer.consume(100_000, 0)]])

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


@cache
def _admin(broker: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker, "log_level": 3})


def _consumer(broker: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "benchmark-observer",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "fetch.queue.backoff.ms": 5,
        }
    )


def _value(message: Message) -> bytes:
    if (error := message.error()) is not None:
        raise KafkaException(error)
    return bytes(message.value() or b"")
