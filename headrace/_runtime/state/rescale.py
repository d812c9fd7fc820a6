"""Divide the state of an operator among another number of shards.

A pure function of the old logs: the old stores are only read. Key groups keep their rows; only which shard
owns a group changes. What shards have as a whole is copied, dealt out anew or joined, as its table says.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace._runtime.state.arrays import MemoryArrays
from headrace._runtime.state.chunks import HASHES, ChunkStore
from headrace._runtime.state.columns import plain
from headrace._runtime.state.deltas import chunk_schema
from headrace._runtime.state.loading import load_all
from headrace._runtime.state.log import Manifest
from headrace._runtime.state.spec import TableSpec
from headrace._runtime.state.tables import Tables
from headrace._runtime.state.writing import append_chunks
from headrace.keys import KEY_GROUPS, extend_hashes, groups_of, hash_keys, home_in

__all__ = ["rescale"]

_HOME, _MEMBER = "k0", "k1"


def rescale(
    old: Sequence[ChunkStore], specs: Sequence[TableSpec], new: Sequence[ChunkStore]
) -> None:
    """Write the state of all old shards to new, empty stores, one a shard."""
    logs = [(store, _manifest(store, shard)) for shard, store in enumerate(old)]
    known = [(store, manifest) for store, manifest in logs if manifest is not None]
    horizons = _horizons([manifest for _, manifest in known])
    whole = [spec for spec in specs if spec.spread != "by key"]
    shared = {spec.name: _of_shards(spec, specs, known) for spec in whole}
    for shard, store in enumerate(new):
        groups = groups_of(shard, len(new))
        tables = Tables([spec.ungrouped() for spec in specs], MemoryArrays())
        for source, manifest in known:
            load_all(tables, manifest, source, groups=groups, without=shared)
        for spec in whole:
            rows = _share(spec, shared[spec.name], shard, len(new))
            tables.apply(spec.name, _moved(spec, rows, home_in(groups)))
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


def _of_shards(
    spec: TableSpec, specs: Sequence[TableSpec], known: Sequence[tuple[ChunkStore, Manifest]]
) -> pa.Table:
    """The rows that old shards have as a whole, one shard behind the other; where all have the same, those of one."""
    others = {other.name for other in specs} - {spec.name}
    batches = []
    for store, manifest in known[:1] if spec.spread == "everywhere" else known:
        tables = Tables([spec.ungrouped()], MemoryArrays())
        load_all(tables, manifest, store, without=others)
        rows = tables.in_groups(range(KEY_GROUPS)).get(spec.name)
        if rows is not None:
            batches.append(_in_order(spec, rows))
    return pa.Table.from_batches(batches, chunk_schema(spec)).combine_chunks()


def _in_order(spec: TableSpec, rows: pa.RecordBatch) -> pa.RecordBatch:
    if spec.spread == "everywhere":
        return rows
    return rows.take(plain(np.argsort(rows.column(_MEMBER).to_numpy(), kind="stable")))


def _share(spec: TableSpec, rows: pa.Table, shard: int, shards: int) -> pa.Table:
    if spec.spread != "dealt":
        return rows
    return rows.take(plain(np.arange(shard, rows.num_rows, shards)))


def _moved(spec: TableSpec, rows: pa.Table, home: int) -> pa.RecordBatch:
    """These rows as those of another shard."""
    homes = pa.array(np.full(rows.num_rows, home))
    replaced = {_HOME: homes}
    if spec.spread != "everywhere":
        replaced[_MEMBER] = plain(np.arange(rows.num_rows))
    names = [f"k{place}" for place in range(1, len(spec.keys))]
    members = [
        replaced[name] if name in replaced else rows.column(name).combine_chunks() for name in names
    ]
    replaced[HASHES] = pa.array(extend_hashes(hash_keys([homes]), members))
    columns = [replaced.get(name, rows.column(name)) for name in rows.column_names]
    table = pa.Table.from_arrays(columns, schema=rows.schema).combine_chunks()
    return table.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], rows.schema)
