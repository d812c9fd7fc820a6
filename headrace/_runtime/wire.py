"""Parcels: what moves between tasks, as bytes with a small header.

Spark promises no order inside a group, so a parcel says where it stands among its siblings
(`stage`, `task`, `sequence`); the receiver sorts by that and has the arrival order of every source
partition back. A parcel stays below `PARCEL_BYTES`, whatever the batch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headrace._runtime.ipc import from_stream, to_stream
from headrace._runtime.operator import HASH
from headrace.keys import key_groups, shards_of

__all__ = [
    "AFTER",
    "BEFORE",
    "PARCEL_BYTES",
    "Parcel",
    "decode_rows",
    "encode_rows",
    "pieces",
    "split_by_shard",
]

PARCEL_BYTES = 4 << 20

#: The phase of rows: released by the tick, hence seen before the next stage's tick, or not.
BEFORE = 0
AFTER = 1

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message to a shard of a stage: rows for a keyed step, the tick, or a task's report."""

    kind: Literal["rows", "tick", "report"]
    #: (stage, task, sequence) of the producer
    order: tuple[int, int, int]
    attempt: str
    #: The keyed node that rows are for, and the stage that hosts it.
    node: int = -1
    target: int = -1
    phase: int = AFTER
    #: Which input of that node.
    side: int = 0
    fields: dict[str, Any] | None = None
    payload: bytes | memoryview = b""

    def to_bytes(self) -> bytes:
        """Header length, header as JSON, payload."""
        header = json.dumps(
            [
                self.kind,
                self.order,
                self.attempt,
                self.node,
                self.target,
                self.phase,
                self.side,
                self.fields,
            ],
            separators=(",", ":"),
        ).encode()
        return b"".join((_LENGTH.pack(len(header)), header, self.payload))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Parcel:
        """The inverse of `to_bytes`; the payload is not copied."""
        view = memoryview(blob)
        (length,) = _LENGTH.unpack_from(view)
        start = _LENGTH.size + length
        fields = json.loads(bytes(view[_LENGTH.size : start]))
        kind, order, attempt, node, target, phase, side, extra = fields
        return cls(kind, tuple(order), attempt, node, target, phase, side, extra, view[start:])


def encode_rows(batch: pa.RecordBatch) -> bytes:
    """An Arrow IPC stream of one batch."""
    return bytes(to_stream(batch))


def decode_rows(payload: bytes | memoryview) -> pa.RecordBatch:
    """The batch of `encode_rows`, without a copy."""
    return from_stream(pa.py_buffer(payload))


def split_by_shard(
    batch: pa.RecordBatch, shards: int, *, in_order: bool = False
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each shard, sorted by key group unless they are to stay in order, in pieces that fit a parcel."""
    groups = key_groups(batch.column(HASH).to_numpy())
    owners = shards_of(groups, shards)
    order = np.argsort(owners if in_order else groups, kind="stable")
    batch = batch.take(pa.array(order))
    bounds = np.searchsorted(owners[order], np.arange(shards + 1))
    for shard in range(shards):
        mine = batch.slice(bounds[shard], bounds[shard + 1] - bounds[shard])
        yield from ((shard, piece) for piece in pieces(mine, of=batch))


def pieces(batch: pa.RecordBatch, *, of: pa.RecordBatch | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, a part of another perhaps, in pieces that fit a parcel."""
    whole = batch if of is None else of
    step = max(1, int(whole.num_rows * PARCEL_BYTES * 0.9 // max(1, whole.nbytes)))
    yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))
