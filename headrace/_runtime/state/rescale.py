"""Divide the state of an operator among another number of shards.

A pure function of the old logs: the old stores are only read. Key groups keep their rows; only which shard
owns a group changes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from headrace._runtime.state.arrays import MemoryArrays
from headrace._runtime.state.chunks import ChunkStore
from headrace._runtime.state.loading import load_all
from headrace._runtime.state.log import Manifest
from headrace._runtime.state.spec import TableSpec
from headrace._runtime.state.tables import Tables
from headrace._runtime.state.writing import append_chunks
from headrace.keys import groups_of

__all__ = ["rescale"]


def rescale(
    old: Sequence[ChunkStore], specs: Sequence[TableSpec], new: Sequence[ChunkStore]
) -> None:
    """Write the state of all old shards to new, empty stores, one a shard."""
    logs = [(store, _manifest(store, shard)) for shard, store in enumerate(old)]
    known = [(store, manifest) for store, manifest in logs if manifest is not None]
    horizons = _horizons([manifest for _, manifest in known])
    for shard, store in enumerate(new):
        tables = Tables([spec.ungrouped() for spec in specs], MemoryArrays())
        for source, manifest in known:
            load_all(tables, manifest, source, groups=groups_of(shard, len(new)))
        manifest = append_chunks(Manifest(horizons=horizons), store, tables.changes(), kind="delta")
        store.put_manifest(manifest.committed(secrets.token_hex(8)).to_bytes())


def _manifest(store: ChunkStore, shard: int) -> Manifest | None:
    content = store.manifest()
    return None if content is None else Manifest.from_bytes(content, f"shard {shard}")


def _horizons(manifests: Sequence[Manifest]) -> Mapping[str, int]:
    """The horizons that hold in every old shard: a lower one loses nothing."""
    if not manifests:
        return {}
    named = set.intersection(*(set(manifest.horizons) for manifest in manifests))
    return {name: min(manifest.horizons[name] for manifest in manifests) for name in sorted(named)}
