"""The manifest of an epoch: what it did, written before Spark may call the epoch durable.

A manifest is named by epoch and fence, so a run never overwrites what another run wrote. If an epoch has
several, the one with the highest fence is true: a lower one belongs to a run that died before its commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace._commit.files import make_directory, read_record, write_record
from headrace._commit.paths import Layout, parse_manifest_name
from headrace.endpoints import Json, Receipt
from headrace.errors import CheckpointDamaged

__all__ = ["Manifest", "list_manifests", "read_fenced", "read_manifest", "write_manifest"]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What one epoch did."""

    epoch: int
    fence: int
    incarnation: str
    #: What the planner needs for the next epoch (`headrace._epochs.facts.Facts.to_json`).
    facts: Mapping[str, Json] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] = ()
    #: The ledger since the job began: uid -> name of a count -> rows.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: What users' functions counted since the job began: uid -> name -> [kind, numbers].
    metrics: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    #: uid of a keyed step -> shard -> stamp of its state.
    stamps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Checksum of Spark's offsets/N, and of commits/N-1.
    offsets_crc: int | None = None
    commits_crc: int | None = None
    #: This was the job's final epoch.
    finished: bool = False
    #: uid of a sink -> its columns as text, for those who read a checkpoint by hand.
    schemas: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def receipts_of(self, sink: str) -> tuple[Receipt, ...]:
        """What this epoch staged for one sink."""
        return tuple(receipt for receipt in self.receipts if receipt.sink == sink)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON."""
        return {
            "epoch": self.epoch,
            "fence": self.fence,
            "incarnation": self.incarnation,
            "facts": dict(self.facts),
            "receipts": [asdict(receipt) for receipt in self.receipts],
            "counts": {uid: dict(counts) for uid, counts in self.counts.items()},
            "metrics": {uid: dict(found) for uid, found in self.metrics.items()},
            "stamps": {uid: dict(shards) for uid, shards in self.stamps.items()},
            "offsets_crc": self.offsets_crc,
            "commits_crc": self.commits_crc,
            "finished": self.finished,
            "schemas": dict(self.schemas),
            "versions": dict(self.versions),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Manifest:
        """The manifest again; wrong shapes raise `TypeError` or `KeyError`."""
        receipts = tuple(Receipt(**receipt) for receipt in body["receipts"])
        return Manifest(**{**body, "receipts": receipts})


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Write it durably; the same run may write an epoch again when it is run again."""
    make_directory(layout.manifests)
    write_record(layout.manifest(manifest.epoch, manifest.fence), manifest.to_json())


def list_manifests(layout: Layout) -> dict[int, tuple[int, ...]]:
    """The fences of each epoch that has a manifest, ascending."""
    found: dict[int, list[int]] = {}
    for epoch, fence in _names(layout):
        found.setdefault(epoch, []).append(fence)
    return {epoch: tuple(sorted(fences)) for epoch, fences in sorted(found.items())}


def read_manifest(layout: Layout, epoch: int, *, fence: int | None = None) -> Manifest | None:
    """The true manifest of an epoch, or None. A damaged one raises `CheckpointDamaged`.

    `fence` is that of the present run, which is the highest: what it wrote is found without a search.
    """
    if fence is not None and layout.manifest(epoch, fence).exists():
        return read_fenced(layout, epoch, fence)
    fences = [fence for found, fence in _names(layout) if found == epoch]
    return read_fenced(layout, epoch, max(fences)) if fences else None


def read_fenced(layout: Layout, epoch: int, fence: int) -> Manifest:
    """The manifest that one run wrote; for those who have listed them already."""
    path = layout.manifest(epoch, fence)
    try:
        manifest = Manifest.from_json(read_record(path))
    except (KeyError, TypeError) as error:
        raise CheckpointDamaged(f"{path} is not a manifest of this version: {error}") from error
    if (manifest.epoch, manifest.fence) != (epoch, fence):
        raise CheckpointDamaged(f"{path} holds the manifest of epoch {manifest.epoch}")
    return manifest


def _names(layout: Layout) -> Iterable[tuple[int, int]]:
    if not layout.manifests.is_dir():
        return
    for path in layout.manifests.iterdir():
        parsed = parse_manifest_name(path.name)
        if parsed is not None:
            yield parsed
