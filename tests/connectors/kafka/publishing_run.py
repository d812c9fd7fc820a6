"""Drives a Kafka sink as the committer does, on a log in memory or on brokers."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from headrace.connectors.kafka import KafkaSink
from headrace.endpoints import Publisher, Receipt, SinkContext, Spread

__all__ = ["SCHEMA", "Run", "rows"]

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
        """Stage each batch as a separate task."""
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
