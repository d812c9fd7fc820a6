"""Read a chunk log into tables.

A row counts if its bucket is not behind its table's horizon and its chunk is not older than the last base of
its range of key groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa

from headrace._runtime.state.chunks import BUCKET, HASHES, ChunkStore, decode
from headrace._runtime.state.columns import plain
from headrace._runtime.state.deltas import keep_groups
from headrace._runtime.state.log import RANGE_GROUPS, Entry, Manifest, range_groups
from headrace._runtime.state.tables import Tables
from headrace.errors import CheckpointDamaged
from headrace.keys import KEY_GROUPS, key_groups

__all__ = ["current_rows", "load_all", "load_since"]

_ALL_GROUPS = range(KEY_GROUPS)


def load_all(
    tables: Tables,
    manifest: Manifest,
    store: ChunkStore,
    *,
    groups: range = _ALL_GROUPS,
    without: Collection[str] = (),
) -> None:
    """Add all rows of these key groups to tables that have none of them; those of some tables are left out."""
    for entry in _in_order(manifest):
        if entry.groups[0] < groups.stop and entry.groups[1] >= groups.start:
            for name, rows in current_rows(store, manifest, entry):
                if name not in without:
                    tables.apply(name, keep_groups(rows, groups))


def load_since(tables: Tables, manifest: Manifest, store: ChunkStore, *, sequence: int) -> None:
    """Bring tables that equal an earlier commit up to date.

    A delta since then may be gone because bases replaced it, so newer bases are loaded in its place.
    """
    for name, horizon in manifest.horizons.items():
        tables.drop_before(name, horizon)
    for number, base in enumerate(manifest.bases):
        if base > sequence:
            tables.clear_groups(range_groups(number, _ALL_GROUPS))
    for entry in _in_order(manifest):
        if entry.sequence > sequence:
            for name, rows in current_rows(store, manifest, entry):
                tables.apply(name, rows)


def current_rows(
    store: ChunkStore, manifest: Manifest, entry: Entry
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a chunk that still count, by table."""
    where = f"chunk {entry.chunk} of the state"
    try:
        content = store.chunk(entry.chunk)
    except KeyError:
        message = f"{where} is missing from the checkpoint: restore the checkpoint from a copy"
        raise CheckpointDamaged(message) from None
    for name, rows in decode(content, where):
        yield name, _without_replaced(_ahead(rows, manifest, name), manifest, entry)


def _in_order(manifest: Manifest) -> list[Entry]:
    return sorted(manifest.entries, key=lambda entry: (entry.sequence, entry.chunk))


def _ahead(rows: pa.RecordBatch, manifest: Manifest, name: str) -> pa.RecordBatch:
    """The rows that are not behind the horizon."""
    horizon = manifest.horizons.get(name)
    if horizon is None:
        return rows
    return _where(rows, rows.column(BUCKET).to_numpy() >= horizon)


def _without_replaced(rows: pa.RecordBatch, manifest: Manifest, entry: Entry) -> pa.RecordBatch:
    """The rows that no later base stands for."""
    if all(entry.sequence >= manifest.bases[number] for number in entry.ranges()):
        return rows
    bases = np.repeat(np.array(manifest.bases), RANGE_GROUPS)
    newest = bases[key_groups(rows.column(HASHES).to_numpy())]
    return _where(rows, newest <= entry.sequence)


def _where(
    rows: pa.RecordBatch, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> pa.RecordBatch:
    return rows if mask.all() else rows.take(plain(np.flatnonzero(mask)))
