"""The half of a join before the shuffle: rows that cannot match or come too late leave, all others are sent as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from headrace._graph.join_nodes import AsOfJoin, IntervalJoin, JoinStep
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.joins.sides import Side
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.plain_keys import plain_key
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded
from headrace.errors import EngineError

__all__ = ["JoinFeeder", "KeysAlike"]

#: Joins in which a row behind the watermark finds no partner that it could not have found before.
_JUDGING = (AsOfJoin, IntervalJoin)


class JoinFeeder(Feeder):
    """Sends the rows of one task for one input."""

    def __init__(self, node: JoinStep, side: int) -> None:
        self._node = node
        self._side = side
        self._keys = node.keys[side]
        self._alike = KeysAlike(node, side)
        self._unfolded = Unfolded(self._keys, Side.of(node, side).sent)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key, if they need a partner, and late ones."""
        if not self._node.preserves(self._side):
            rows, dead = split_null_keys(rows, self._node.uid, self._keys)
            if dead is not None:
                yield ERRORS, dead
        late = self._late(rows, watermark)
        if late is not None and late.any():
            yield (LATE_RIGHT if self._side else LATE), rows.filter(late)
            rows = rows.filter(~late)
        self._unfolded.add(rows.with_batch(self._alike(rows.batch)))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._unfolded.take()

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys."""
        return self._unfolded.heavy

    def _late(self, rows: Rows, watermark: int) -> npt.NDArray[np.bool_] | None:
        """Which rows come too late; None if none can."""
        if not isinstance(self._node, _JUDGING):
            return None
        if rows.timestamps is None:
            raise EngineError(f"Rows without timestamps reached the join '{self._node.uid}'.")
        return rows.timestamps <= watermark


class KeysAlike:
    """Makes keys that are equal look alike from here on, whether they are kept or not."""

    def __init__(self, node: JoinStep, side: int) -> None:
        schema = node.input_schemas[side]
        self._floats = [key for key in node.keys[side] if pt.is_floating(schema.field(key).type)]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with such keys."""
        for key in self._floats:
            place = batch.schema.get_field_index(key)
            batch = batch.set_column(
                place, batch.schema.field(place), plain_key(batch.column(place))
            )
        return batch
