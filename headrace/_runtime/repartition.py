"""Rows that move to other shards as they are.

Which key group a row goes to follows from the row: from its key, or from where it came from; so it does not depend on
how many shards there are or how many tasks read. Behind a shuffle, where rows do not know where they came from, they
are dealt out in turn. The step has no state, so nothing of it is in a checkpoint.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.columns import row_objects, values
from headrace._runtime.operator import HASH, Feeder, KeyedOperator, Moment, Outputs
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.state import TableSpec
from headrace._runtime.unfolded import TIMESTAMP, Gathered, plain_columns
from headrace._runtime.usercode import calling
from headrace._runtime.watchdog import watching
from headrace.keys import KEY_GROUPS, hash_keys, lowest_hashes

__all__ = ["RepartitionFeeder", "RepartitionOperator", "repartition_tables"]

Hashes = npt.NDArray[np.uint64]

#: Coprime to the number of key groups and near its golden section: however few rows are dealt out, they lie apart.
_STRIDE = 79


def repartition_tables(_: nodes.Repartition) -> tuple[TableSpec, ...]:
    """None."""
    return ()


class RepartitionFeeder(Feeder):
    """Says where each row goes."""

    in_order = True

    def __init__(self, node: nodes.Repartition) -> None:
        self._node = node
        own = [pa.field(TIMESTAMP, pa.int64()), pa.field(HASH, pa.uint64())]
        # Views can be neither sorted by shard nor joined.
        self._columns = plain_columns(node.schema, node.schema.names)
        self._schema = pa.schema([*self._columns, *own])
        # working state
        self._dealt = 0
        self._gathered = Gathered()
        self._joined: list[pa.RecordBatch] = []

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; all of them go on."""
        stamps = pa.nulls(len(rows), pa.int64())
        if rows.timestamps is not None:
            stamps = pa.array(rows.timestamps, pa.int64())
        columns = rows.batch.cast(self._columns).columns
        arrays = [*columns, stamps, pa.array(self._hashes(rows))]
        self._gathered.add(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        if self._gathered.is_enough:
            self._join()
        yield from ()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        self._join()
        joined, self._joined = self._joined, []
        yield from joined

    def _join(self) -> None:
        batch = self._gathered.take()
        if batch is not None:
            self._joined.append(batch)

    def _hashes(self, rows: Rows) -> Hashes:
        if self._node.partitioner is not None:
            return lowest_hashes(np.array(self._groups(rows), np.uint64))
        if rows.origin is not None:
            return _by_origin(rows.origin)
        turns = np.arange(self._dealt, self._dealt + len(rows), dtype=np.uint64)
        self._dealt += len(rows)
        return lowest_hashes(turns * np.uint64(_STRIDE) % np.uint64(KEY_GROUPS))

    def _groups(self, rows: Rows) -> list[int]:
        partitioner = self._node.partitioner
        assert partitioner is not None
        keys = self._keys(rows)
        groups: list[int] = []
        with (
            calling(self._node.uid, rows, groups.__len__, key=lambda: keys[len(groups)]),
            watching(self._node.limit_us, groups.__len__),
        ):
            # Only a generator makes an error of a function that raises StopIteration.
            groups.extend(_checked(partitioner(key, KEY_GROUPS)) for key in keys)
        return groups

    def _keys(self, rows: Rows) -> list[Any]:
        made: list[Any] = []
        function = self._node.function
        if function is None:
            columns = [values(rows.batch.column(name)) for name in self._node.keys]
            return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        with (
            calling(self._node.uid, rows, made.__len__),
            watching(self._node.limit_us, made.__len__),
        ):
            made.extend(function(row) for row in row_objects(rows.batch))
        return made


class RepartitionOperator(KeyedOperator):
    """Hands on what came: before the tick what came before it."""

    def __init__(self, node: nodes.Repartition, _: object = None) -> None:
        self._schema = node.schema
        self._came: list[pa.RecordBatch] = []

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in."""
        self._came.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Rows that another step released by the same tick."""
        return self._go()

    def settle(self) -> Outputs:
        """All others."""
        return self._go()

    def _go(self) -> Outputs:
        came, self._came = self._came, []
        for batch in came:
            timed = batch.column(TIMESTAMP).is_valid().to_numpy(zero_copy_only=False)
            for part in (timed, ~timed):
                if part.any():
                    yield MAIN, self._rows(batch if part.all() else batch.filter(pa.array(part)))

    def _rows(self, batch: pa.RecordBatch) -> Rows:
        stamps = batch.column(TIMESTAMP)
        timeless = stamps.null_count
        return Rows(
            batch.select(self._schema.names).cast(self._schema),
            None if timeless else stamps.to_numpy(),
        )


def _by_origin(origin: Origin) -> Hashes:
    """Rows that were made of one row lie side by side, and have the same offset."""
    offsets = origin.offsets
    starts = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 1))
    places = np.arange(len(offsets))
    ordinals = places - starts[np.searchsorted(starts, places, side="right") - 1]
    partition = hash_keys([pa.array([f"{origin.source}/{origin.partition}"])])
    return hash_keys(
        [
            pa.array(np.repeat(partition.view(np.int64), len(offsets))),
            pa.array(offsets),
            pa.array(ordinals),
        ]
    )


def _checked(group: Any) -> int:
    try:
        number = -1 if isinstance(group, bool) else operator.index(group)
    except TypeError:
        number = -1
    if 0 <= number < KEY_GROUPS:
        return number
    raise TypeError(
        f"a partitioner must return a whole number from 0 to {KEY_GROUPS - 1}, but it returned {group!r}; take it"
        " modulo its second argument"
    )
