"""The halves of a broadcast join before the shuffle: rows are dealt out evenly, the table goes to every shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa

from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import ERRORS
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.joins.feeder import KeysAlike
from headrace._runtime.joins.sides import Side
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.process.feeder import ORIGIN, with_origins
from headrace._runtime.process.spreading import Dealing
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded

__all__ = ["broadcast_feeder"]


def broadcast_feeder(node: BroadcastJoin, side: int) -> Feeder:
    """The feeder of one input."""
    return _TableFeeder(node) if side else _RowsFeeder(node)


class _RowsFeeder(Feeder):
    """Deals rows out to the shards, each of which has the whole table."""

    in_order: ClassVar[bool] = True

    def __init__(self, node: BroadcastJoin) -> None:
        self._node = node
        self._alike = KeysAlike(node, 0)
        self._unfolded = Unfolded((), Side.of(node, 0).sent)
        self._dealing = Dealing()

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key, if they need a partner."""
        if not self._node.preserves(0):
            rows, dead = split_null_keys(rows, self._node.uid, self._node.keys[0])
            if dead is not None:
                yield ERRORS, dead
        self._dealing.note(rows)
        self._unfolded.add(rows.with_batch(self._alike(rows.batch)))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._dealing.dealt(self._unfolded.take())


class _TableFeeder(Feeder):
    """Sends every row of the table to every shard. It is counted here, once."""

    everywhere: ClassVar[bool] = True

    def __init__(self, node: BroadcastJoin) -> None:
        self._node = node
        self._alike = KeysAlike(node, 1)
        sent = Side.of(node, 1).sent
        # Shards must agree on which row of a key is the last, however many tasks read them.
        self._unfolded = Unfolded(node.keys[1], pa.schema([*sent, *ORIGIN]))

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key."""
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys[1])
        if dead is not None:
            yield ERRORS, dead
        self._unfolded.add(with_origins(rows.with_batch(self._alike(rows.batch))))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._unfolded.take()
