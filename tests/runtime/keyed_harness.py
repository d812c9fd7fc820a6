"""Runs both halves of a keyed step over epochs, on real chunk logs, with crashes, restores and rescaling."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import MAIN
from headrace._runtime import registry
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.state.rescale import rescale
from headrace._runtime.wire import decode_rows, encode_rows, split_by_shard
from headrace.keys import groups_of
from headrace.testing.oracle import OracleEpoch

Outputs = dict[str, list[dict[str, Any]]]

#: Ends behind the last microsecond of the year 9999 are shown as that.
_LAST_US = 253_402_300_799_999_999


@dataclass
class KeyedHarness:
    """One keyed step on so many shards. Replicas live as long as nothing is restored."""

    node: Any
    shards: int = 1
    batch_rows: int = 1_000_000
    stores: list[MemoryChunkStore] = field(default_factory=list)
    arrays: list[MemoryArrays] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stores = [MemoryChunkStore() for _ in range(self.shards)]
        self.restore()

    def restore(self, shards: int | None = None) -> None:
        """Forget all replicas; with another number of shards, move the state."""
        if shards is not None and shards != self.shards:
            stores = [MemoryChunkStore() for _ in range(shards)]
            rescale(self.stores, registry.tables(self.node), stores)
            self.stores, self.shards = stores, shards
        self.arrays = [MemoryArrays() for _ in range(self.shards)]

    def run(
        self, epochs: Sequence[OracleEpoch], *, restores: Mapping[int, int] | None = None,
        crashes: Sequence[int] = (),
    ) -> Outputs:  # fmt: skip
        """All outputs. `restores`: epoch -> shards from there on. `crashes`: epochs done twice."""
        outputs: Outputs = defaultdict(list)
        for number, epoch in enumerate(epochs):
            if restores and number in restores:
                self.restore(restores[number])
            if number in crashes:
                before = copy.deepcopy(self.stores)
                self.epoch(epoch)
                self.stores = before
            for output, rows in self.epoch(epoch).items():
                outputs[output] += rows
        return outputs

    def epoch(self, epoch: OracleEpoch) -> Outputs:
        """One epoch on all shards, committed."""
        outputs: Outputs = defaultdict(list)
        early = self._feed(epoch.early, epoch.before, outputs)
        rest = self._feed(epoch.rows, epoch.watermark, outputs)
        for shard in range(self.shards):
            state = ShardState(
                registry.tables(self.node),
                self.stores[shard],
                self.arrays[shard],
                groups_of(shard, self.shards),
            )
            state.open()
            operator = registry.keyed(self.node, state)
            for batch in early[shard]:
                operator.merge(batch)
            released = list(operator.tick(moment(epoch)))
            for batch in rest[shard]:
                operator.merge(batch)
            for output, rows in [*released, *operator.settle()]:
                check_rows(rows, self.node.output_schema(output))
                if output == MAIN:
                    check_times(rows)
                outputs[output] += rows.batch.to_pylist()
            operator.outlook()
            state.commit()
        return outputs

    def _feed(self, rows: Sequence[Any], watermark: int, outputs: Outputs) -> dict[int, list[Any]]:
        feeder = registry.feeder(self.node)
        for start in range(0, max(1, len(rows)), self.batch_rows):
            part = rows[start : start + self.batch_rows]
            for output, out in feeder.feed(timed_rows(self.node.input_schema, part), watermark):
                check_rows(out, self.node.output_schema(output))
                outputs[output] += out.batch.to_pylist()
        fed: dict[int, list[Any]] = defaultdict(list)
        for batch in feeder.flush():
            for shard, piece in split_by_shard(batch, self.shards):
                fed[shard].append(decode_rows(encode_rows(piece)))
        return fed


def moment(epoch: OracleEpoch) -> Moment:
    """The time of an epoch as its operator is told."""
    return Moment(epoch.before, epoch.watermark, epoch.clock_before, epoch.clock)


def timed_rows(schema: pa.Schema, rows: Sequence[Any]) -> Rows:
    """(timestamp, row) pairs as they come out of a source."""
    batch = pa.RecordBatch.from_pylist([dict(row) for _, row in rows], schema=schema)
    return Rows(batch, np.array([ts_us for ts_us, _ in rows], np.int64))


def check_times(rows: Rows) -> None:
    """A result has the last microsecond of its window, also one that is withdrawn: what counted it takes it back."""
    if "window_end" in rows.batch.schema.names:
        ends = rows.batch.column("window_end").cast(pa.int64()).to_numpy()
        representable = ends < _LAST_US
        assert (rows.timestamps == ends - 1)[representable].all()


def check_rows(rows: Rows, schema: pa.Schema) -> None:
    """What every output must be, whatever is in it."""
    assert rows.batch.schema == schema
    rows.batch.validate(full=True)
    assert rows.timestamps is not None
    assert len(rows.timestamps) == len(rows)
