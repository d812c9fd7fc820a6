"""The half of a broadcast join behind the shuffle: each row beside what the shard's own table has for its key.

The table has the last row of each key. In an epoch what changes it comes before the rows that are looked up; all shards get
all changes in the same order, so all tables are alike, and no row need go where its key is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import MAIN
from headrace._runtime.joins.kinds import DELETE, kinds_of, without_replaced
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.results import joined_rows, null_keys, timestamps_in
from headrace._runtime.joins.sides import Side, row_values, write_rows
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import KeyedOperator, Moment, Outputs
from headrace._runtime.process.spreading import in_source_order
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, Table, TableSpec
from headrace._runtime.unfolded import join_batches
from headrace.keys import extend_hashes, hash_keys, home_in

__all__ = ["BroadcastOperator", "broadcast_tables"]

Integers = npt.NDArray[np.int64]

_TABLE = "table"
_HOME = pa.field("__home", pa.int64())
_BUCKET = 0


def broadcast_tables(node: BroadcastJoin) -> tuple[TableSpec, ...]:
    """The state that a broadcast join declares: the table, in every shard."""
    side = Side.of(node, 1, changing=node.changing)
    keys = pa.schema([_HOME, *side.keys])
    return (TableSpec(_TABLE, keys, tuple(row_values(side)), spread="everywhere"),)


class BroadcastOperator(KeyedOperator):
    """The rows of one shard, and its copy of the table."""

    def __init__(self, node: BroadcastJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._left = Side.of(node, 0)
        self._right = Side.of(node, 1, changing=node.changing)
        self._home = home_in(state.groups)
        # Checkpointed
        self._state = state
        # Of this epoch
        self._arrived: list[list[pa.RecordBatch]] = [[], []]
        self._metrics: Metrics | None = None

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Where null keys are counted."""
        self._metrics = metrics

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; those of the table are applied first."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """The rows from before the tick."""
        yield from self._join()

    def settle(self) -> Outputs:
        """The epoch's rows."""
        yield from self._join()

    def _join(self) -> Outputs:
        (rows, changes), self._arrived = self._arrived, [[], []]
        if changes:
            self._change(in_source_order(join_batches(changes)))
        for batch in rows:
            yield MAIN, self._beside(batch)

    def _change(self, batch: pa.RecordBatch) -> None:
        """Each row replaces the one of its key, or deletes it."""
        if self._node.changing:
            batch = without_replaced(batch, self._right)
        probe = Probe.of(self._right.key_columns(batch))
        last = np.empty(len(probe.hashes), np.int64)
        last[probe.codes] = np.arange(batch.num_rows)
        rows = batch.take(pa.array(last))
        table = self._state.table(_TABLE, _BUCKET)
        stays = np.ones(len(last), np.bool_)
        if self._node.changing:
            stays = kinds_of(rows) != DELETE
            gone = self._find(table, [column.filter(pa.array(~stays)) for column in probe.keys])
            table.remove(gone[gone >= 0])
        keys = [column.filter(pa.array(stays)) for column in probe.keys]
        if stays.any():
            slots, _ = table.upsert(*self._own(keys))
            write_rows(table, self._right, rows.filter(pa.array(stays)), slots)

    def _beside(self, batch: pa.RecordBatch) -> Rows:
        """Rows with what the table has for their keys."""
        found = self._slots(batch)
        if self._node.how == "inner":
            there = np.flatnonzero(found >= 0)
            batch, found = batch.take(pa.array(there)), found[there]
        sides = {0: self._left.columns(batch)}
        present = found >= 0
        if present.any():
            index = pa.array(np.cumsum(present) - 1, mask=~present)
            columns = self._columns(found[present])
            sides[1] = {name: column.take(index) for name, column in columns.items()}
        return joined_rows(self._node, sides, timestamps_in(batch), batch.num_rows)

    def _slots(self, batch: pa.RecordBatch) -> Integers:
        """Where the table has the key of each row, -1 where it has none."""
        null = null_keys(batch, self._left.key_names)
        if null is not None:
            assert self._metrics is not None
            self._metrics.counter("null_keys").inc(int(null.sum()))
        if not self._state.buckets(_TABLE):
            return np.full(batch.num_rows, -1)
        probe = Probe.of(self._left.key_columns(batch))
        # The table has no nulls in its keys, so a null finds nothing there.
        return self._find(self._state.table(_TABLE, _BUCKET), probe.keys)[probe.codes]

    def _columns(self, slots: Integers) -> dict[str, pa.Array]:
        table = self._state.table(_TABLE, _BUCKET)
        names = self._right.key_names
        found = {name: table.key(1 + place, slots) for place, name in enumerate(names)}
        if self._right.carried.names:
            rows = table.arrow(row_values(self._right)[0].name, slots).flatten()
            found |= zip(self._right.carried.names, rows, strict=True)
        return found

    def _find(self, table: Table, keys: list[pa.Array]) -> Integers:
        return table.find(*self._own(keys))

    def _own(self, keys: list[pa.Array]) -> tuple[npt.NDArray[np.uint64], list[pa.Array]]:
        """The hashes and key columns of the shard's own rows."""
        homes = pa.array(np.full(len(keys[0]), self._home))
        return extend_hashes(hash_keys([homes]), keys), [homes, *keys]
