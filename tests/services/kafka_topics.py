"""Topics for tests of the source: made, filled, and read through an enumerator and `read`, without a job."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from headrace.connectors.kafka import KafkaSource
from headrace.endpoints import Enumerator, SourceBatch, Span

SCHEMA = pa.schema([("n", pa.int64())])


class Topics:
    """The broker as a test changes it."""

    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        self.config = {"bootstrap.servers": bootstrap, **(options or {})}
        self.admin = AdminClient(self.config)

    def make(self, topic: str, partitions: int = 1, **settings: str) -> None:
        new = NewTopic(topic, partitions, 1, config=settings)
        self.admin.create_topics([new])[topic].result(20)

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
        # A broker learns of them a moment after its controller, and until then takes no record for them.
        while len(self.admin.list_topics(topic, timeout=10).topics[topic].partitions) < partitions:
            time.sleep(0.02)

    def remove(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(20)
        while topic in self.admin.list_topics(timeout=10).topics:
            time.sleep(0.05)

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset, as retention does."""
        asked = self.admin.delete_records([TopicPartition(topic, partition, before)])
        for future in asked.values():
            future.result(20)

    def send(self, topic: str, values: Iterable[Any], partition: int = 0, **parts: Any) -> None:
        lost: list[Any] = []
        told = {"on_delivery": lambda error, _: lost.append(error) if error is not None else None}
        producer = Producer({**self.config, "linger.ms": 5, **told})
        for value in values:
            producer.produce(topic, encoded(value), partition=partition, **parts)
        assert producer.flush(20) == 0
        assert lost == []

    def transact(
        self, topic: str, values: Iterable[Any], partition: int = 0, *, commit: bool = True
    ) -> None:
        """One transaction: its records and one mark behind them."""
        producer = self.transaction(topic)
        for value in values:
            producer.produce(topic, encoded(value), partition=partition)
        assert producer.flush(20) == 0
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        self.await_mark(topic, partition)

    def await_mark(self, topic: str, partition: int) -> None:
        """The broker answers first and writes the mark a moment later."""
        ends = []
        for isolation in ("read_uncommitted", "read_committed"):
            config = {**self.config, "group.id": "marks", "isolation.level": isolation}
            consumer = Consumer(config)
            until = time.monotonic() + 10
            while time.monotonic() < until:
                end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[
                    1
                ]
                if not ends or end >= ends[0]:
                    break
                time.sleep(0.01)
            ends.append(end)
            consumer.close()

    def transaction(self, name: str) -> Producer:
        producer = Producer({**self.config, "transactional.id": f"{name}-{time.monotonic_ns()}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        return producer

    def committed(self, group: str, topic: str, partitions: int) -> list[int]:
        consumer = Consumer({**self.config, "group.id": group})
        try:
            asked = [TopicPartition(topic, number) for number in range(partitions)]
            return [found.offset for found in consumer.committed(asked, timeout=20)]
        finally:
            consumer.close()

    def all_of(self, topic: str, partitions: int) -> dict[str, list[tuple[int, bytes]]]:
        """What a plain consumer reads: (offset, value) by partition, to the end."""
        consumer = Consumer(
            {
                **self.config,
                "group.id": "plain",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found: dict[str, list[tuple[int, bytes]]] = {f"{topic}-{n}": [] for n in range(partitions)}
        ends = 0
        while ends < partitions:
            for record in consumer.consume(1000, 1.0):
                if record.error() is not None:
                    assert record.error().name() == "_PARTITION_EOF"
                    ends += 1
                else:
                    found[f"{topic}-{record.partition()}"].append((record.offset(), record.value()))
        consumer.close()
        return found


def encoded(value: Any) -> Any:
    """Numbers as rows of `SCHEMA`; bytes and None as they are."""
    return value if value is None or isinstance(value, bytes) else json.dumps({"n": value}).encode()


def source(kafka: Any, topic: str | None, **options: Any) -> KafkaSource:
    return KafkaSource(kafka.bootstrap, topic, schema=options.pop("schema", SCHEMA), **options)


@contextmanager
def watching(watched: KafkaSource, directory: Path) -> Iterator[Enumerator]:
    enumerator = watched.enumerator(directory)
    try:
        yield enumerator
    finally:
        enumerator.close()


def first_spans(watched: KafkaSource, directory: Path) -> Mapping[str, Span]:
    """What a start sees."""
    with watching(watched, directory) as enumerator:
        return enumerator.spans()


def batches(watched: KafkaSource, partition: str, start: int, end: int) -> list[SourceBatch]:
    return list(watched.read(partition, start, end, Path("unused")))


def numbers(found: Sequence[SourceBatch]) -> list[int]:
    return [n for batch in found for n in batch.batch.column("n").to_pylist()]


def rows(watched: KafkaSource, directory: Path) -> dict[str, list[int]]:
    """The numbers of all partitions, from where they begin to where they end now."""
    return {
        name: numbers(batches(watched, name, span.start, span.end))
        for name, span in sorted(first_spans(watched, directory).items())
    }


def until(holds: Callable[[], bool], patience_s: float = 20.0) -> None:
    """Wait for something that another thread brings about."""
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
