"""The half of a count step before the shuffle: null keys leave, the rest goes on as it is.

Where a window begins is known behind the shuffle only, so nothing can be folded here. No row is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace._graph.nodes import ERRORS, CountAggregate
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded
from headrace._runtime.windows.counts.layout import Layout

__all__ = ["CountFeeder"]


class CountFeeder(Feeder):
    """Sends the rows of one task for one count step."""

    def __init__(self, node: CountAggregate) -> None:
        self._node = node
        self._rows = Unfolded(node.keys, Layout.of(node).columns)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those with a null key as errors."""
        del watermark
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
        if dead is not None:
            yield ERRORS, dead
        self._rows.add(rows)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows, in order of arrival."""
        yield from self._rows.take()

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of the rows that went on."""
        return self._rows.heavy
