"""Append rows to a chunk log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.state.chunks import BUCKET, HASHES, ChunkStore, encode, pack
from headrace._runtime.state.log import Entry, Manifest

__all__ = ["append_chunks", "put_rows"]

_GROUP_SHIFT = 57


def append_chunks(
    manifest: Manifest,
    store: ChunkStore,
    rows: Mapping[str, pa.RecordBatch],
    *,
    kind: Literal["base", "delta"],
) -> Manifest:
    """Write rows under the next sequence number, in as many chunks as they need."""
    if kind == "delta" and not rows:
        return manifest
    sequence = manifest.sequence + 1
    entries = put_rows(store, rows, kind=kind, sequence=sequence, first_chunk=manifest.next_chunk)
    credit = manifest.credit + sum(entry.rows for entry in entries if kind == "delta")
    return replace(
        manifest,
        sequence=sequence,
        next_chunk=manifest.next_chunk + len(entries),
        entries=(*manifest.entries, *entries),
        credit=credit,
    )


def put_rows(
    store: ChunkStore,
    rows: Mapping[str, pa.RecordBatch],
    *,
    kind: Literal["base", "delta"],
    sequence: int,
    first_chunk: int,
) -> list[Entry]:
    """Write rows as chunks and say which they are."""
    entries = []
    for number, parts in enumerate(pack(rows), first_chunk):
        content = encode(parts)
        store.put_chunk(number, content)
        entries.append(_entry(parts, chunk=number, sequence=sequence, kind=kind, size=len(content)))
    return entries


def _entry(
    parts: list[tuple[str, pa.RecordBatch]],
    *,
    chunk: int,
    sequence: int,
    kind: Literal["base", "delta"],
    size: int,
) -> Entry:
    first = min(rows.column(HASHES)[0].as_py() for _, rows in parts) >> _GROUP_SHIFT
    last = max(rows.column(HASHES)[-1].as_py() for _, rows in parts) >> _GROUP_SHIFT
    buckets: dict[str, tuple[int, int]] = {}
    for name, rows in parts:
        span = pc.min_max(rows.column(BUCKET)).as_py()
        low, high = buckets.get(name, (span["min"], span["max"]))
        buckets[name] = (min(low, span["min"]), max(high, span["max"]))
    count = sum(rows.num_rows for _, rows in parts)
    return Entry(chunk, sequence, kind, (first, last), count, size, buckets)
