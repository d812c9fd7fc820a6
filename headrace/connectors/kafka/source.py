"""Topics of Kafka as rows. A position is an offset; a partition is called `orders-3`.

The offsets of an epoch are fixed before it is read and end at the last stable offset, so what is read again is what was
read before. Offsets are kept in the checkpoint; those committed to a consumer group are for people and lag tools.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from headrace.config import to_us
from headrace.connectors.kafka.clients import client_config, library
from headrace.connectors.kafka.options import check_bootstrap, check_options
from headrace.connectors.kafka.reading.decoding import OnDecodeError, Reading
from headrace.connectors.kafka.reading.enumerator import KafkaEnumerator
from headrace.connectors.kafka.reading.metadata import KeyFormat, check_metadata, field_type
from headrace.connectors.kafka.reading.positions import (
    Start,
    Stop,
    check_start,
    check_stop,
    partition_of,
    spelled,
)
from headrace.connectors.kafka.reading.ranges import OnLoss, Range, records_of
from headrace.connectors.kafka.reading.survey import Watched
from headrace.connectors.kafka.reading.topic_choice import TopicChoice
from headrace.endpoints import Enumerator, Json, Source, SourceBatch
from headrace.errors import BuildError
from headrace.formats.messages import MessageFormat, message_format
from headrace.schema import as_schema
from headrace.secrets import hidden

__all__ = ["Isolation", "KafkaSource"]

Isolation = Literal["read_committed", "read_uncommitted"]

_ENGINE = "the engine sees to it: offsets are in the checkpoint, and group= has them committed too"
#: Options of the library that have another place here.
_OWNED = {
    "group.id": "name the consumer group with group=",
    "isolation.level": 'use isolation="read_committed" or "read_uncommitted"',
    "auto.offset.reset": "use start= for where to begin and on_data_loss= for offsets that are gone",
    "enable.auto.commit": _ENGINE,
    "enable.auto.offset.store": _ENGINE,
    "enable.partition.eof": _ENGINE,
    "error_cb": "errors are raised, or logged as headrace.kafka",
}


class KafkaSource(Source):
    """Read topics of Kafka, by name or by a pattern that their names match as a whole.

    `start` and `stop` are made into offsets when the job starts for the first time; partitions that appear later begin
    at their oldest record. With `stop` the source is bounded: it ends there, and later partitions are not read.
    `metadata` adds columns: topic, partition, offset, timestamp, timestamp_type, key, headers. Records that the format
    cannot read fail the job, go to the stream's `errors` or are counted (`on_decode_error`). Records that are gone
    before they were read fail the job, or are skipped with a warning (`on_data_loss`).

        KafkaSource("localhost:9092", topics="orders", schema=Order, metadata=["timestamp"])
    """

    has_record_timestamps = True

    def __init__(
        self,
        bootstrap: str,
        topics: str | Sequence[str] | None = None,
        *,
        pattern: str | None = None,
        schema: Any = None,
        format: str | MessageFormat = "json",
        start: Start = "earliest",
        stop: Stop = None,
        metadata: Sequence[str] | Mapping[str, str] | None = None,
        key_format: KeyFormat = "raw",
        group: str | None = None,
        isolation: Isolation = "read_committed",
        max_rows_per_epoch: int | None = None,
        min_rows: int | None = None,
        max_delay: timedelta = timedelta(seconds=1),
        on_decode_error: OnDecodeError = "fail",
        on_data_loss: OnLoss = "fail",
        discover_every: timedelta = timedelta(seconds=10),
        read_timeout: timedelta = timedelta(minutes=2),
        options: Mapping[str, str] | None = None,
    ) -> None:
        library()
        _check_choice("key_format", key_format, KeyFormat)
        _check_choice("isolation", isolation, Isolation)
        _check_choice("on_decode_error", on_decode_error, OnDecodeError)
        _check_choice("on_data_loss", on_data_loss, OnLoss)
        self._bootstrap = check_bootstrap(bootstrap)
        self._options = check_options(bootstrap, options, _OWNED)
        self._choice = TopicChoice.of(topics, pattern)
        self._start, self._stop = check_start(start), check_stop(stop)
        self._format = self._told(message_format(format))
        rows = self._format.row_schema(None if schema is None else as_schema(schema))
        self._metadata = check_metadata(metadata, rows.names)
        self._key_format, self._rows = key_format, rows
        self._group, self._isolation = _group(group), isolation
        self._on_decode_error, self._on_data_loss = on_decode_error, on_data_loss
        self._discover_us = to_us(discover_every, "discover_every")
        self._read_timeout_us = to_us(read_timeout, "read_timeout")
        self.max_rows = _count("max_rows_per_epoch", max_rows_per_epoch, 1)
        self.min_rows = _count("min_rows", min_rows, 0) or 0
        self.patience_us = to_us(max_delay, "max_delay")
        self.carries_changes = self._format.changes
        self._stamped = True
        self._readings: dict[str, Reading] = {}

    def __repr__(self) -> str:
        shown = f", options={hidden(self._options)!r}" if self._options else ""
        return (
            f"KafkaSource({self._bootstrap!r}, {self._choice}, format={self._format.name!r},"
            f" start={spelled(self._start)!r}, stop={spelled(self._stop)!r}{shown})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Decoders stay in their process."""
        return {**self.__dict__, "_readings": {}}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the format, then those of `metadata`."""
        added = [
            pa.field(name, field_type(field, self._key_format))
            for name, field in self._metadata.items()
        ]
        return pa.schema([*self._rows, *added])

    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> KafkaSource:
        """Fields of JSON that nobody looks at are not decoded, and timestamps that nobody asks for are not read."""
        found = copy.copy(self)
        rows = self._rows
        if self._format.narrows:
            kept = [field for field in rows if field.name in columns]
            rows = pa.schema(kept or [rows.field(0)])
        metadata = {name: field for name, field in self._metadata.items() if name in columns}
        vars(found).update(_rows=rows, _metadata=metadata, _stamped=timestamps, _readings={})
        return found

    def signature(self) -> dict[str, Json]:
        """Which topics; whether they are still the same ones is known by their ids."""
        return {"source": "kafka", **self._choice.signature()}

    def enumerator(self, directory: Path) -> Enumerator:
        """Look once, then watch; brokers that cannot be reached in 30 seconds are a `SetupError`."""
        watched = Watched(
            choice=self._choice, start=self._start, stop=self._stop, on_loss=self._on_data_loss
        )
        found = KafkaEnumerator(
            self._config(),
            watched,
            directory,
            group=self._group,
            committed_only=self._isolation == "read_committed",
            discover_s=self._discover_us / 1_000_000,
        )
        found.start()
        return found

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """The records at these offsets that exist and that a reader of this isolation may see."""
        key = partition_of(partition)
        reading = self._reading_of(key[0])
        wanted = Range(
            key,
            start,
            end,
            reading.needs,
            self._on_data_loss,
            self._read_timeout_us / 1_000_000,
        )
        config = {
            **self._config(),
            "group.id": self._group or "headrace",
            "isolation.level": self._isolation,
        }
        for records in records_of(config, wanted):
            yield reading.rows(records, key)

    def _reading_of(self, topic: str) -> Reading:
        """Made once in a process."""
        if topic not in self._readings:
            self._readings[topic] = Reading(
                self._format.for_topic(topic).decoder(self._rows),
                self.schema,
                self._metadata,
                self._key_format,
                self._on_decode_error,
                self._stamped,
            )
        return self._readings[topic]

    def _config(self) -> dict[str, Any]:
        return client_config(self._bootstrap, self._options)

    def _told(self, format: MessageFormat) -> MessageFormat:
        """A format that asks a registry learns the topic, if there is just one."""
        only = self._choice.only
        return format if only is None else format.for_topic(only)


def _check_choice(option: str, value: object, choices: Any) -> None:
    if value not in get_args(choices):
        raise BuildError(f"{option} must be one of {', '.join(get_args(choices))}, not {value!r}")


def _count(option: str, value: object, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BuildError(f"{option} must be {least} or more, not {value!r}")
    return value


def _group(group: object) -> str | None:
    if group is None or (isinstance(group, str) and group):
        return group
    raise BuildError("group must be the name of a consumer group, or None")
