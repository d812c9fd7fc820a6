"""The manifest of a chunk log: which chunks make up the state, in what order, and up to where.

A *delta* holds the rows that changed in one commit. A *base* holds every live row of one range of key groups
and stands for everything before it there. `bases` says from which sequence number on a range must be read,
so a chunk is needed for a range only if its own number is not below. `horizons` drop all rows of a table
whose bucket lies before them. `history` lists recent commits: a replica that equals one of them needs only
the chunks since.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from typing import Any, Literal

from headrace.errors import CheckpointDamaged
from headrace.keys import KEY_GROUPS

__all__ = ["RANGES", "RANGE_GROUPS", "Entry", "Manifest", "range_groups"]

#: Compaction rewrites one of these ranges of key groups at a time.
RANGES = 16
RANGE_GROUPS = KEY_GROUPS // RANGES
_HISTORY = 64
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One chunk: its place in the order, the key groups it may hold, and its buckets by table."""

    chunk: int
    sequence: int
    kind: Literal["base", "delta"]
    groups: tuple[int, int]
    rows: int
    size: int
    buckets: Mapping[str, tuple[int, int]]

    def ranges(self) -> range:
        """The ranges of key groups that this chunk touches."""
        return range(self.groups[0] // RANGE_GROUPS, self.groups[1] // RANGE_GROUPS + 1)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All there is to know about the state of one operator in one shard."""

    stamp: str = ""
    sequence: int = 0
    next_chunk: int = 1
    entries: tuple[Entry, ...] = ()
    bases: tuple[int, ...] = (0,) * RANGES
    horizons: Mapping[str, int] = field(default_factory=dict)
    history: tuple[tuple[str, int], ...] = ()
    credit: int = 0
    next_range: int = 0

    def is_needed(self, entry: Entry) -> bool:
        """Whether any row of this chunk may still count."""
        behind = all(self.is_behind(table, last) for table, (_, last) in entry.buckets.items())
        replaced = all(entry.sequence < self.bases[number] for number in entry.ranges())
        return not behind and not replaced

    def is_behind(self, table: str, bucket: int) -> bool:
        """Whether a bucket lies before its table's horizon."""
        horizon = self.horizons.get(table)
        return horizon is not None and bucket < horizon

    def pruned(self) -> tuple[Manifest, list[int]]:
        """Without the chunks that nobody needs, and which those are."""
        needed = tuple(entry for entry in self.entries if self.is_needed(entry))
        kept = {entry.chunk for entry in needed}
        gone = [entry.chunk for entry in self.entries if entry.chunk not in kept]
        return replace(self, entries=needed), gone

    def committed(self, stamp: str) -> Manifest:
        """The same under a new stamp, remembered in the history."""
        history = (*self.history, (stamp, self.sequence))[-_HISTORY:]
        return replace(self, stamp=stamp, history=history)

    def since(self, stamp: str) -> int | None:
        """The sequence number reached by the commit of this stamp; None if it is not one of ours."""
        return dict(self.history).get(stamp)

    def to_bytes(self) -> bytes:
        """As JSON behind a checksum."""
        fields = {each.name: getattr(self, each.name) for each in dataclass_fields(self)}
        fields["entries"] = [
            (e.chunk, e.sequence, e.kind, e.groups, e.rows, e.size, e.buckets) for e in self.entries
        ]
        body = json.dumps({"format": _FORMAT, **fields}, separators=(",", ":")).encode()
        return b"%08x%s" % (zlib.crc32(body), body)

    @staticmethod
    def from_bytes(content: bytes, where: str) -> Manifest:
        """Read what `to_bytes` wrote; `where` names it if it is damaged."""
        body = content[8:]
        if content[:8] != b"%08x" % zlib.crc32(body):
            raise CheckpointDamaged(
                f"the manifest of {where} is damaged: its checksum is wrong; restore it from a copy"
            )
        fields = json.loads(body)
        if fields.pop("format") != _FORMAT:
            raise CheckpointDamaged(
                f"the manifest of {where} has a format this version cannot read"
            )
        fields["entries"] = tuple(_entry(entry) for entry in fields["entries"])
        fields["bases"] = tuple(fields["bases"])
        fields["history"] = tuple((stamp, number) for stamp, number in fields["history"])
        return Manifest(**fields)


def range_groups(number: int, groups: range) -> range:
    """The key groups of a compaction range that a shard owns."""
    start, stop = number * RANGE_GROUPS, (number + 1) * RANGE_GROUPS
    return range(max(start, groups.start), min(stop, groups.stop))


def _entry(fields: Sequence[Any]) -> Entry:
    chunk, sequence, kind, groups, rows, size, buckets = fields
    spans = {table: (first, last) for table, (first, last) in buckets.items()}
    return Entry(chunk, sequence, kind, (groups[0], groups[1]), rows, size, spans)
