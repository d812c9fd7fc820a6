"""Stages the records of a Kafka sink in the spool, encoded, so that publishing is no more than sending."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headrace._commit.spool import SpoolStager
from headrace.connectors.kafka.writing.encoding import RecordEncoder
from headrace.endpoints import Receipt, SinkContext, Stager

__all__ = ["KafkaStager"]


class KafkaStager(Stager):
    """One task's rows of one epoch."""

    def __init__(self, encoder: RecordEncoder, context: SinkContext, epoch: int, task: str) -> None:
        self._encoder = encoder
        self._spool = SpoolStager(replace(context, schema=encoder.schema), epoch, task)
        # Tasks do not all begin at the same partition with rows that have no key.
        self._number = zlib.crc32(task.encode())
        self._topics: set[str] = set()

    def write(self, batch: pa.RecordBatch) -> None:
        """Encode rows and stage them."""
        if batch.num_rows == 0:
            return
        records = self._encoder(batch, self._number)
        self.left_out += batch.num_rows - records.num_rows
        self._number += batch.num_rows
        if "topic" in records.schema.names:
            self._topics.update(records.column("topic").unique().to_pylist())
        self._spool.write(records)

    def close(self) -> Sequence[Receipt]:
        """A receipt that also says which topics rows name, where they do."""
        receipts = self._spool.close()
        if not self._topics:
            return receipts
        return [replace(one, details={"topics": sorted(self._topics)}) for one in receipts]

    def abort(self) -> None:
        """Remove what was staged."""
        self._spool.abort()
