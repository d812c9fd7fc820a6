"""What Kafka knows of a record beside its value, as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connectors.kafka.reading.positions import TopicPartition
from headrace.errors import BuildError

__all__ = ["FIELDS", "KeyFormat", "Needs", "Records", "check_metadata", "column", "field_type"]

KeyFormat = Literal["raw", "string"]

_HEADERS = pa.list_(
    pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
)
#: The fields that a column can be made of.
FIELDS: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "headers": _HEADERS,
}
#: By the library's numbers.
_TYPES = np.array(["none", "create", "append"], object)


_FIRST, _SECOND = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class Needs:
    """Which parts of a record are asked for; the rest is never touched."""

    keys: bool = False
    headers: bool = False
    types: bool = False
    stamps: bool = False


@dataclass(slots=True)
class Records:
    """Records of one partition, a list for each part of them."""

    #: Of the values.
    nbytes: int = 0
    values: list[bytes | None] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    #: Milliseconds since 1970.
    stamps: list[int] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    headers: list[list[tuple[str, bytes | None]] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, messages: Sequence[Any], needs: Needs) -> None:
        """Take in what is needed of the library's records, so that they can go."""
        kind = type(messages[0])
        self.nbytes += sum(map(len, messages))
        self.values += map(kind.value, messages)
        self.offsets += map(kind.offset, messages)
        # Pairs are taken apart at once: tens of thousands of them would keep the garbage collector busy.
        if needs.stamps:
            self.stamps += map(_SECOND, map(kind.timestamp, messages))
        if needs.types:
            self.types += map(_FIRST, map(kind.timestamp, messages))
        if needs.keys:
            self.keys += map(kind.key, messages)
        if needs.headers:
            self.headers += map(kind.headers, messages)

    def timestamps_us(self) -> npt.NDArray[np.int64]:
        """When each record was written, in microseconds."""
        return np.array(self.stamps, np.int64) * 1000


def check_metadata(
    metadata: Sequence[str] | Mapping[str, str] | None, columns: Sequence[str]
) -> dict[str, str]:
    """The field behind each metadata column, or `BuildError`."""
    if metadata is None:
        return {}
    if isinstance(metadata, str):
        raise BuildError(f"metadata takes a list of fields, such as [{metadata!r}]")
    wanted = dict(metadata) if isinstance(metadata, Mapping) else {name: name for name in metadata}
    for name, source in wanted.items():
        if source not in FIELDS:
            raise BuildError(f"metadata has no field {source!r}; there are {', '.join(FIELDS)}")
        if name in columns:
            raise BuildError(
                f"the schema has a column {name!r} already; give the metadata another name:"
                f' metadata={{"kafka_{name}": {source!r}}}'
            )
    return wanted


def field_type(source: str, key_format: KeyFormat) -> pa.DataType:
    """The type of a metadata column."""
    return pa.string() if source == "key" and key_format == "string" else FIELDS[source]


def column(source: str, records: Records, partition: TopicPartition) -> pa.Array:
    """A metadata column with a value for each record; keys are bytes."""
    if source in {"topic", "partition"}:
        value = partition[0] if source == "topic" else partition[1]
        return pa.repeat(pa.scalar(value, FIELDS[source]), len(records))
    return _MAKERS[source](records)


def _types(records: Records) -> pa.Array:
    return pa.array(_TYPES[np.array(records.types, np.int64)], pa.string())


def _headers(records: Records) -> pa.Array:
    rows = [
        None if found is None else [{"key": key, "value": value} for key, value in found]
        for found in records.headers
    ]
    return pa.array(rows, _HEADERS)


_MAKERS: dict[str, Callable[[Records], pa.Array]] = {
    "offset": lambda records: pa.array(records.offsets, pa.int64()),
    "timestamp": lambda records: pa.array(records.timestamps_us(), FIELDS["timestamp"]),
    "timestamp_type": _types,
    "key": lambda records: pa.array(records.keys, pa.binary()),
    "headers": _headers,
}
