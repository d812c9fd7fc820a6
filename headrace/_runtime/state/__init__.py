"""Keyed state of a shard: tables in a replica, and the chunk log that is the truth about them."""

from headrace._runtime.state.arrays import Arrays, MemoryArrays
from headrace._runtime.state.chunks import ChunkStore, MemoryChunkStore
from headrace._runtime.state.shard import ShardState
from headrace._runtime.state.spec import TableSpec, ValueSpec
from headrace._runtime.state.table import Table

__all__ = [
    "Arrays",
    "ChunkStore",
    "MemoryArrays",
    "MemoryChunkStore",
    "ShardState",
    "Table",
    "TableSpec",
    "ValueSpec",
]
