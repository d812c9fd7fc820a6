"""Drives a Kafka sink as the committer does, and reads topics as somebody who knows nothing of Headrace."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Message

from headrace.connectors.kafka import KafkaSink
from headrace.endpoints import Publisher, Receipt, SinkContext, Spread

__all__ = ["SCHEMA", "Run", "committed", "rows", "values"]

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])


@dataclass
class Run:
    """A job with one sink: stages epochs, starts publishers, and knows what it staged."""

    sink: KafkaSink
    spool: Path
    schema: pa.Schema = SCHEMA
    spread: Spread | None = None
    incarnation: str = field(default_factory=lambda: uuid.uuid4().hex)
    fence: int = 0
    staged: dict[int, Sequence[Receipt]] = field(default_factory=dict)
    publishers: list[Publisher] = field(default_factory=list)

    def context(self) -> SinkContext:
        return SinkContext(
            "job", self.incarnation, "out", self.schema, self.spool, self.fence, self.spread
        )

    def start(self) -> Publisher:
        """The publisher of another start, asked what a recovery asks."""
        self.fence += 1
        publisher = self.sink.publisher(self.context())
        self.publishers.append(publisher)
        publisher.published()
        publisher.highest_seen()
        return publisher

    def stage(self, epoch: int, *tasks: pa.RecordBatch) -> Sequence[Receipt]:
        """Stage each batch as a task of its own."""
        receipts: list[Receipt] = []
        for number, batch in enumerate(tasks):
            stager = self.sink.stager(self.context(), epoch, f"task-{number}-{uuid.uuid4().hex}")
            stager.write(batch)
            receipts += stager.close()
        self.staged[epoch] = receipts
        return receipts

    def publish(self, publisher: Publisher, epoch: int) -> None:
        publisher.publish(epoch, self.staged[epoch])

    def close(self) -> None:
        for publisher in self.publishers:
            publisher.close()


def rows(start: int, count: int, keys: Sequence[int] = range(7)) -> pa.RecordBatch:
    """Rows with these keys in turn and rising numbers."""
    numbers = range(start, start + count)
    named = [f"key-{keys[number % len(keys)]}" for number in numbers]
    return pa.record_batch([pa.array(named), pa.array(numbers, pa.int64())], schema=SCHEMA)


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
