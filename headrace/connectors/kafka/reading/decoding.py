"""Records to rows: values through their format, metadata beside them, what cannot be a row apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connectors.kafka.reading.metadata import KeyFormat, Needs, Records, column
from headrace.connectors.kafka.reading.positions import TopicPartition, name_of
from headrace.endpoints import DeadLetter, SourceBatch
from headrace.errors import InputError
from headrace.formats.messages.format import BadMessage, DecodedMessages, MessageDecoder

__all__ = ["OnDecodeError", "Reading"]

OnDecodeError = Literal["fail", "dead_letter", "skip"]

_LONGEST_PAYLOAD = 10_000
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Reading:
    """How the records of a source become rows; lives in a worker."""

    decoder: MessageDecoder
    schema: pa.Schema
    #: The field behind each metadata column.
    metadata: Mapping[str, str]
    key_format: KeyFormat
    on_error: OnDecodeError
    #: Batches have the records' timestamps.
    stamped: bool

    @property
    def needs(self) -> Needs:
        """What has to be taken from each record."""
        fields = set(self.metadata.values())
        return Needs(
            keys="key" in fields or self.on_error == "dead_letter",
            headers="headers" in fields,
            types="timestamp_type" in fields,
            stamps=self.stamped or "timestamp" in fields,
        )

    def rows(self, records: Records, partition: TopicPartition) -> SourceBatch:
        """A batch of records as rows."""
        bad_keys = self._bad_keys(records)
        decoded = _without(self.decoder(records.values), bad_keys)
        if decoded.bad and self.on_error == "fail":
            raise InputError(_sentence(records, decoded.bad[0], partition))
        offsets = np.array(records.offsets, np.int64)
        stamps = records.timestamps_us() if self.stamped else None
        batch = self._with_metadata(decoded, records, partition)
        if not _is_whole(decoded, len(records)):
            offsets = offsets[decoded.places]
            stamps = None if stamps is None else stamps[decoded.places]
        name = name_of(*partition)
        if self.on_error == "skip":
            skipped = len(decoded.bad)
            return SourceBatch(batch, offsets, name, timestamps=stamps, skipped=skipped)
        dead = tuple(_letter(records, bad, name) for bad in decoded.bad)
        return SourceBatch(batch, offsets, name, dead, timestamps=stamps)

    def _with_metadata(
        self, decoded: DecodedMessages, records: Records, partition: TopicPartition
    ) -> pa.RecordBatch:
        if not self.metadata:
            return decoded.batch
        added = [column(field, records, partition) for field in self.metadata.values()]
        if not _is_whole(decoded, len(records)):
            places = pa.array(decoded.places)
            added = [array.take(places) for array in added]
        # Keys become text here, where those that are none are gone.
        types = [self.schema.field(name).type for name in self.metadata]
        added = [array.cast(type) for array, type in zip(added, types, strict=True)]
        return pa.record_batch([*decoded.batch.columns, *added], schema=self.schema)

    def _bad_keys(self, records: Records) -> tuple[BadMessage, ...]:
        """Records whose key is no text where it should be; they count as undecodable."""
        if self.key_format == "raw" or "key" not in self.metadata.values():
            return ()
        try:
            pa.array(records.keys, pa.string())
        except pa.ArrowInvalid:
            pass
        else:
            return ()
        places = [place for place, key in enumerate(records.keys) if not _is_text(key)]
        return tuple(BadMessage(place, "its key is not UTF-8") for place in places)


def _without(decoded: DecodedMessages, bad: Sequence[BadMessage]) -> DecodedMessages:
    """What was decoded, less the rows of these messages."""
    if not bad:
        return decoded
    apart = {one.place: one for one in [*bad, *decoded.bad]}
    keep = ~np.isin(decoded.places, [one.place for one in bad])
    batch = decoded.batch.filter(pa.array(keep))
    return DecodedMessages(
        batch, decoded.places[keep], tuple(apart[place] for place in sorted(apart))
    )


def _is_whole(decoded: DecodedMessages, count: int) -> bool:
    """Whether each message is one row in its place."""
    places: npt.NDArray[np.int64] = decoded.places
    return len(places) == count and bool((places == np.arange(count)).all())


def _is_text(key: bytes | None) -> bool:
    try:
        (key or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _letter(records: Records, bad: BadMessage, name: str) -> DeadLetter:
    raw = records.values[bad.place]
    payload = (raw or b"").decode(errors="replace")[:_LONGEST_PAYLOAD]
    key = records.keys[bad.place]
    return DeadLetter(name, records.offsets[bad.place], bad.cause, payload, raw, key)


def _sentence(records: Records, bad: BadMessage, partition: TopicPartition) -> str:
    raw = records.values[bad.place]
    shown = "nothing (a tombstone)" if raw is None else repr(raw[:_LONGEST_SHOWN])
    topic, number = partition
    return (
        f"topic {topic!r}, partition {number}, offset {records.offsets[bad.place]}: {bad.cause}. The value"
        f' begins with {shown}. With on_decode_error="dead_letter" such records go to the errors of the'
        ' stream, with "skip" they are counted and dropped.'
    )
