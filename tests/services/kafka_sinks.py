"""Reads topics as a client that knows nothing of Headrace."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Message

__all__ = ["committed", "values"]


def committed(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Message]:
    """All records of a topic, partition by partition in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"test-{uuid.uuid4().hex}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.subscribe([topic])
        return _to_the_end(consumer, set(partitions))
    finally:
        consumer.close()


def values(messages: Sequence[Message]) -> list[Any]:
    return [None if one.value() is None else json.loads(one.value()) for one in messages]


def _to_the_end(consumer: Consumer, open_partitions: set[int]) -> list[Message]:
    found = []
    while open_partitions:
        for message in consumer.consume(5_000, 0.1):
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                open_partitions.discard(message.partition())
    return sorted(found, key=lambda one: (one.partition(), one.offset()))
