"""Keep a chunk log short without any epoch paying for the whole state.

Two debts grow with every commit, and each is paid from what was written:

- *Many small chunks.* The newest deltas are merged, newest row of a key first, whenever sixteen of one size
  class have gathered; a row is merged at most once a class.
- *Rows nobody needs.* When the log is several times the live rows, ranges of key groups are rewritten as bases,
  in turn. A commit may rewrite about as many rows as it wrote, so one round takes as many changes as there are
  live rows; deltas older than the round then go.

Chunks whose buckets all lie behind the horizon cost nothing here: `Manifest.pruned` drops them unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from headrace._runtime.state.arrays import MemoryArrays
from headrace._runtime.state.chunks import ChunkStore
from headrace._runtime.state.loading import current_rows
from headrace._runtime.state.log import RANGES, Entry, Manifest, range_groups
from headrace._runtime.state.tables import Tables
from headrace._runtime.state.writing import append_chunks, put_rows

__all__ = ["compact"]

_FAN_IN = 16
_SMALL_BYTES = (64 * 2**10, 512 * 2**10)
_GARBAGE = 6
_FEW_ROWS = 20_000


def compact(manifest: Manifest, store: ChunkStore, tables: Tables, *, groups: range) -> Manifest:
    """Do this commit's share of the work."""
    smallest = 0
    for largest in _SMALL_BYTES:
        deltas = (entry for entry in reversed(manifest.entries) if entry.kind == "delta")
        run = list(takewhile(lambda entry, limit=largest: entry.size < limit, deltas))  # type: ignore[misc]
        if sum(entry.size >= smallest for entry in run) >= _FAN_IN:
            manifest = _merge(manifest, store, tables, run=run[::-1])
        smallest = largest
    return _rewrite_ranges(manifest, store, tables, groups=groups)


def _merge(
    manifest: Manifest, store: ChunkStore, tables: Tables, *, run: Sequence[Entry]
) -> Manifest:
    """Replace the newest deltas by one. It takes the place of the last: no delta lies between them."""
    scratch = Tables([spec.ungrouped() for spec in tables.specs.values()], MemoryArrays())
    for entry in run:
        for name, rows in current_rows(store, manifest, entry):
            scratch.apply(name, rows, tombstones=True)
    merged = put_rows(
        store,
        scratch.changes(),
        kind="delta",
        sequence=run[-1].sequence,
        first_chunk=manifest.next_chunk,
    )
    old = {entry.chunk for entry in run}
    for chunk in old:
        store.remove_chunk(chunk)
    kept = [entry for entry in manifest.entries if entry.chunk not in old]
    return replace(manifest, entries=(*kept, *merged), next_chunk=manifest.next_chunk + len(merged))


def _rewrite_ranges(
    manifest: Manifest, store: ChunkStore, tables: Tables, *, groups: range
) -> Manifest:
    """Write bases for the next ranges, as far as the credit of the rows written goes."""
    owned = [number for number in range(RANGES) if len(range_groups(number, groups))]
    live = tables.size
    share = max(1, live // max(1, len(owned)))
    logged = sum(entry.rows for entry in manifest.entries)
    if logged <= _GARBAGE * max(live, _FEW_ROWS):
        # What was saved up before there was need may start a round, not pay for all of it at once.
        return replace(manifest, credit=min(manifest.credit, share))
    turns = min(manifest.credit // share, len(owned))
    for turn in range(turns):
        number = owned[(manifest.next_range + turn) % len(owned)]
        manifest = _write_base(manifest, store, tables, number=number, groups=groups)
    credit = manifest.credit - turns * share
    return replace(manifest, credit=credit, next_range=(manifest.next_range + turns) % len(owned))


def _write_base(
    manifest: Manifest, store: ChunkStore, tables: Tables, *, number: int, groups: range
) -> Manifest:
    rows = tables.in_groups(range_groups(number, groups))
    manifest = append_chunks(manifest, store, rows, kind="base")
    bases = list(manifest.bases)
    bases[number] = manifest.sequence
    return replace(manifest, bases=tuple(bases))
