"""Chunks: rows of state as bytes, and where they are kept.

A chunk holds one Arrow stream a table, its rows sorted by key group, behind a header with a checksum over
everything. A row is its bucket, its hash, its keys and values, and whether it was removed. Chunks stay
below 16 MB unless a single row is larger. Nothing read back is ever a pickle.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from headrace._runtime.ipc import from_stream, to_stream
from headrace.errors import CheckpointDamaged

__all__ = [
    "BUCKET",
    "HASHES",
    "REMOVED",
    "ChunkStore",
    "MemoryChunkStore",
    "decode",
    "encode",
    "pack",
]

BUCKET, HASHES, REMOVED = "bucket", "hash", "removed"
#: Of rows in memory: with what Arrow adds, a chunk stays below 16 MB.
_SLICE_BYTES = 15 * 2**20
_MAGIC = b"HRC1"
_HEAD = struct.Struct("<4sII")


class ChunkStore(Protocol):
    """Durable bytes of one operator in one shard; writes become visible together or not at all."""

    def manifest(self) -> bytes | None:
        """The manifest last put, None if there never was one."""

    def put_manifest(self, content: bytes) -> None:
        """Replace the manifest."""

    def chunk(self, number: int) -> bytes:
        """A chunk; `KeyError` if it does not exist."""

    def put_chunk(self, number: int, content: bytes) -> None:
        """Write a chunk under a number never used before."""

    def remove_chunk(self, number: int) -> None:
        """Delete a chunk."""


@dataclass
class MemoryChunkStore:
    """A store in this process: for tests and for `_local`. `snapshot` is a copy, as of a checkpoint."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    manifest_bytes: bytes | None = None

    def manifest(self) -> bytes | None:
        """The manifest last put."""
        return self.manifest_bytes

    def put_manifest(self, content: bytes) -> None:
        """Replace the manifest."""
        self.manifest_bytes = content

    def chunk(self, number: int) -> bytes:
        """A chunk; `KeyError` if it does not exist."""
        return self.chunks[number]

    def put_chunk(self, number: int, content: bytes) -> None:
        """Write a chunk."""
        self.chunks[number] = content

    def remove_chunk(self, number: int) -> None:
        """Delete a chunk."""
        self.chunks.pop(number, None)

    def snapshot(self) -> MemoryChunkStore:
        """What the store holds now, apart from what follows."""
        return MemoryChunkStore(dict(self.chunks), self.manifest_bytes)


def encode(parts: Sequence[tuple[str, pa.RecordBatch]]) -> bytes:
    """A chunk of these tables' rows."""
    streams = [to_stream(batch) for _, batch in parts]
    names = [[name, stream.size] for (name, _), stream in zip(parts, streams, strict=True)]
    index = json.dumps(names).encode()
    crc = zlib.crc32(index)
    for stream in streams:
        crc = zlib.crc32(stream, crc)
    return b"".join([_HEAD.pack(_MAGIC, crc, len(index)), index, *streams])


def decode(content: bytes, where: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The tables' rows in a chunk; `where` names it if it is damaged."""
    start = _HEAD.size
    if len(content) < start or content[:4] != _MAGIC:
        raise CheckpointDamaged(
            f"{where} is not a chunk of state: restore the checkpoint from a copy"
        )
    _, crc, size = _HEAD.unpack_from(content)
    if zlib.crc32(memoryview(content)[start:]) != crc:
        raise CheckpointDamaged(
            f"{where} is damaged: its checksum is wrong; restore it from a copy"
        )
    place = start + size
    for name, length in json.loads(content[start:place]):
        stream = pa.py_buffer(content).slice(place, length)
        yield name, from_stream(stream)
        place += length


def pack(tables: Mapping[str, pa.RecordBatch]) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
    """Divide rows into groups that each fit one chunk."""
    group: list[tuple[str, pa.RecordBatch]] = []
    size = 0
    for name, batch in tables.items():
        for piece in _slices(batch):
            if group and size + piece.nbytes > _SLICE_BYTES:
                yield group
                group, size = [], 0
            group.append((name, piece))
            size += piece.nbytes
    if group:
        yield group


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pieces below the limit; rows may differ in size, so halve what is still too large."""
    if batch.nbytes <= _SLICE_BYTES or batch.num_rows <= 1:
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from _slices(batch.slice(0, half))
    yield from _slices(batch.slice(half))
