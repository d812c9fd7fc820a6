"""The half of a look-back step before the shuffle: null keys and late rows leave, the rest goes on as it is.

The watermark promised that no row at or before it would come, and results that saw none are out: such a row is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace._graph.nodes import ERRORS, LATE, LookBackAggregate
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded
from headrace._runtime.windows.entry import timestamps_of
from headrace._runtime.windows.lookback.layout import Layout

__all__ = ["LookBackFeeder"]


class LookBackFeeder(Feeder):
    """Sends the rows of one task for one look-back step."""

    def __init__(self, node: LookBackAggregate) -> None:
        self._node = node
        self._rows = Unfolded(node.keys, Layout.of(node).columns)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those with a null key as errors, and late ones."""
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
        if dead is not None:
            yield ERRORS, dead
        late = timestamps_of(rows, self._node) <= watermark
        if late.any():
            yield LATE, rows.filter(late)
            rows = rows.filter(~late)
        self._rows.add(rows)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows, in order of arrival."""
        yield from self._rows.take()

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of the rows that went on."""
        return self._rows.heavy
