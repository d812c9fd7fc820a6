"""The state of one operator in one shard, for the length of one epoch.

`open` makes the replica equal to the manifest: it does nothing if the stamps agree, reads the chunks since if
the replica equals an earlier commit, and otherwise builds the replica anew. `commit` writes what changed. The
store is the truth; it makes everything written since `open` visible at once or never, so an epoch that fails
in between leaves a replica whose stamp no manifest knows, and that is not used again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from headrace._runtime.state.arrays import Arrays
from headrace._runtime.state.chunks import ChunkStore
from headrace._runtime.state.compaction import compact
from headrace._runtime.state.loading import load_all, load_since
from headrace._runtime.state.log import Manifest
from headrace._runtime.state.spec import TableSpec
from headrace._runtime.state.table import Table
from headrace._runtime.state.tables import Tables
from headrace._runtime.state.writing import append_chunks
from headrace.errors import EngineError

__all__ = ["ShardState"]


class ShardState:
    """Tables by name and bucket, restored by `open` and written down by `commit`."""

    def __init__(
        self, specs: Sequence[TableSpec], store: ChunkStore, arrays: Arrays, groups: range
    ) -> None:
        self._specs = specs
        self._store = store
        self._arrays = arrays
        self._groups = groups
        self._where = f"key groups {groups.start}-{groups.stop - 1}"
        self._tables = Tables(specs, arrays)
        self._manifest = Manifest()
        self._horizons: dict[str, int] = {}
        self.previous = ""

    @property
    def groups(self) -> range:
        """The key groups of the shard."""
        return self._groups

    @property
    def stamp(self) -> str:
        """The stamp of the last commit; empty before the first."""
        return self._manifest.stamp

    def open(self) -> None:
        """Make the tables equal to what the store holds."""
        content = self._store.manifest()
        self._manifest = (
            Manifest() if content is None else Manifest.from_bytes(content, self._where)
        )
        self.previous = self._manifest.stamp
        self._horizons = dict(self._manifest.horizons)
        header = self._arrays.load_header()
        reached = None if header is None else self._reached(str(header["stamp"]))
        if header is None or reached is None:
            self._arrays.clear()
            self._tables = Tables(self._specs, self._arrays)
            load_all(self._tables, self._manifest, self._store, groups=self._groups)
        else:
            self._tables = Tables(self._specs, self._arrays)
            self._tables.restore(cast("Mapping[str, list[list[int]]]", header["tables"]))
            if header["stamp"] == self.stamp:
                return
            load_since(self._tables, self._manifest, self._store, sequence=reached)
        self._tables.forget_changes()
        self._save()

    def table(self, name: str, bucket: int) -> Table:
        """The table of a bucket; a new one if there is none. Buckets behind the horizon are gone."""
        if bucket < self._horizons.get(name, bucket):
            raise EngineError(
                f"bucket {bucket} of state table {name!r} lies before its horizon "
                f"{self._horizons[name]}: it was dropped and cannot be written again"
            )
        return self._tables.get(name, bucket)

    def buckets(self, name: str) -> list[int]:
        """The buckets of a table that have rows, in order."""
        return self._tables.buckets(name)

    def rows(self, name: str, bucket: int) -> int:
        """How many rows a bucket has; it is not opened for that."""
        return self._tables.rows(name, bucket)

    def drop_before(self, name: str, bucket: int) -> None:
        """Forget all buckets of a table below this one, for ever."""
        if bucket > self._horizons.get(name, bucket - 1):
            self._horizons[name] = bucket
            self._tables.drop_before(name, bucket)

    def commit(self) -> str:
        """Write down what changed since `open` or the last commit; the stamp of the result."""
        manifest = replace(self._manifest, horizons=dict(self._horizons))
        changes = self._tables.changes()
        if not changes and manifest == self._manifest:
            self._save()
            return self.stamp
        self._arrays.mark_dirty()
        manifest = append_chunks(manifest, self._store, changes, kind="delta")
        manifest = compact(manifest, self._store, self._tables, groups=self._groups)
        manifest, gone = manifest.pruned()
        for chunk in gone:
            self._store.remove_chunk(chunk)
        self._manifest = manifest.committed(secrets.token_hex(8))
        self._store.put_manifest(self._manifest.to_bytes())
        self._save()
        return self.stamp

    def _reached(self, stamp: str) -> int | None:
        """The sequence number that a replica's stamp stands for."""
        if stamp == self.stamp:
            return self._manifest.sequence
        return self._manifest.since(stamp)

    def _save(self) -> None:
        self._tables.tidy()
        self._arrays.save_header({"stamp": self.stamp, "tables": self._tables.catalog()})
