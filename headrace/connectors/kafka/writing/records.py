"""Staged records: their columns, and how a publisher gives them to lanes and partitions.

Workers do not know how many partitions a topic has; they stage the hash of the key. The publisher turns it into a
partition. A row's lane hangs on the number of partitions that was written down at the first start, never on the one
of today: if a topic grows between two attempts at an epoch, no row changes to a lane that is past the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connectors.kafka.writing.partitioner import partitions
from headrace.errors import SinkRefused

__all__ = ["Chunk", "Routing", "lane_chunks", "lanes_with_rows"]

#: Rows are turned into Python's objects so many at a time.
_CHUNK = 20_000

_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one lane as the library wants them: one topic, or one for each row."""

    topic: str
    topics: list[str] | None
    values: list[bytes | None]
    keys: list[bytes | None]
    partitions: list[int]
    #: Milliseconds since 1970; 0: when it is sent.
    timestamps: list[int] | None = None
    headers: list[list[tuple[str, bytes | None]]] | None = None

    @property
    def is_plain(self) -> bool:
        """Rows have neither timestamps nor headers of their own."""
        return self.timestamps is None and self.headers is None

    def full(self) -> Iterator[tuple[str, bytes | None, bytes | None, int, dict[str, Any]]]:
        """Row by row, with what is beside key and value."""
        for at, (value, key, partition) in enumerate(
            zip(self.values, self.keys, self.partitions, strict=True)
        ):
            rest: dict[str, Any] = {}
            if self.timestamps is not None:
                rest["timestamp"] = self.timestamps[at]
            if self.headers is not None:
                rest["headers"] = self.headers[at]
            yield (
                self.topic if self.topics is None else self.topics[at],
                value,
                key,
                partition,
                rest,
            )


@dataclass(frozen=True, slots=True)
class Routing:
    """Which partition and which lane a row goes to."""

    #: The one topic; empty: rows name theirs.
    topic: str
    lanes: int
    #: The number of partitions at the first start.
    spread: int
    #: The number of partitions today, by topic.
    counts: Mapping[str, int]

    def partitions(self, batch: pa.RecordBatch) -> _Ints:
        """The target partition of every row."""
        hashed = batch.column("hash").to_numpy()
        if self.topic:
            counts = np.asarray(self.counts[self.topic], np.int32)
        else:
            topics = batch.column("topic").dictionary_encode()
            known = np.array(
                [self.counts[name] for name in topics.dictionary.to_pylist()], np.int32
            )
            counts = known[topics.indices.to_numpy()]
        found, given = partitions(hashed, counts), _given(batch)
        if given is None:
            return found
        beyond = np.flatnonzero(given >= counts)
        if len(beyond):
            raise SinkRefused(
                f"a row names partition {given[beyond[0]]} in the column that partition_by= says, and topic"
                f" {self._topic_of(batch, int(beyond[0]))!r} has not so many: add"
                " partitions, since the rows at hand are staged and stay as they are; for later ones, name others"
            )
        return np.where(given >= 0, given, found)

    def lanes_of(self, batch: pa.RecordBatch) -> _Ints:
        """The lane of every row: by the partition that it would have had at the first start."""
        found, given = partitions(batch.column("hash").to_numpy(), self.spread), _given(batch)
        if given is not None:
            found = np.where(given >= 0, given, found)
        return found % np.int32(self.lanes)

    def _topic_of(self, batch: pa.RecordBatch, row: int) -> str:
        return self.topic or str(batch.column("topic")[row].as_py())


def lanes_with_rows(tables: Iterable[pa.Table], routing: Routing) -> set[int]:
    """The lanes that have anything to do."""
    found: set[int] = set()
    for table in tables:
        for batch in table.to_batches():
            found.update(np.unique(routing.lanes_of(batch)).tolist())
    return found


def lane_chunks(tables: Iterable[pa.Table], routing: Routing, lane: int) -> Iterator[Chunk]:
    """The rows of a lane, in order."""
    for table in tables:
        for batch in table.to_batches(max_chunksize=_CHUNK):
            mine = np.flatnonzero(routing.lanes_of(batch) == lane)
            if len(mine):
                yield _chunk(batch if len(mine) == len(batch) else batch.take(mine), routing)


def _chunk(batch: pa.RecordBatch, routing: Routing) -> Chunk:
    names = batch.schema.names
    return Chunk(
        topic=routing.topic,
        topics=None if routing.topic else batch.column("topic").to_pylist(),
        values=_objects(batch.column("value")),
        keys=_objects(batch.column("key")),
        partitions=routing.partitions(batch).tolist(),
        timestamps=batch.column("timestamp").fill_null(0).to_pylist()
        if "timestamp" in names
        else None,
        headers=_headers(batch.column("headers")) if "headers" in names else None,
    )


def _given(batch: pa.RecordBatch) -> _Ints | None:
    """The partition that each row names, -1 for none; None: rows name none."""
    if "partition" not in batch.schema.names:
        return None
    named: _Ints = batch.column("partition").fill_null(-1).to_numpy()
    return named


def _objects(column: pa.Array) -> list[bytes | None]:
    """A binary column as objects; cutting one buffer is several times faster than asking for each value."""
    _, offsets_at, bytes_at = column.buffers()
    if offsets_at is None or column.null_count == len(column):
        return [None] * len(column)
    offsets = np.frombuffer(offsets_at, np.int32)[column.offset : column.offset + len(column) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    content = b"" if bytes_at is None else bytes_at.slice(first, last - first).to_pybytes()
    found: list[bytes | None] = [
        content[start:end] for start, end in pairwise((offsets - first).tolist())
    ]
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            found[row] = None
    return found


def _headers(column: pa.Array) -> list[list[tuple[str, bytes | None]]]:
    """A map is pairs already; structs become them."""
    rows = column.to_pylist()
    if pa.types.is_map(column.type):
        return [list(row or ()) for row in rows]
    return [[(one["key"], one["value"]) for one in row or ()] for row in rows]
