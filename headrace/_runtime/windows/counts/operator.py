"""The half of a count step behind the shuffle: rows are counted as they come, full windows go out.

Windows that are filled by rows from before the tick go out with it, all others when the epoch settles. Time means
nothing here: what is not full waits for rows of its key, also behind the end of time.
"""

from __future__ import annotations

import pyarrow as pa

from headrace._graph.nodes import MAIN, CountAggregate
from headrace._runtime.operator import KeyedOperator, Moment, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import Gathered
from headrace._runtime.windows.counts.layout import Layout, count_tables
from headrace._runtime.windows.counts.sliding import SlidingCounts
from headrace._runtime.windows.counts.tumbling import TumblingCounts

__all__ = ["CountOperator", "count_tables"]


class CountOperator(KeyedOperator):
    """The count windows of one shard."""

    def __init__(self, node: CountAggregate, state: ShardState) -> None:
        # Configuration
        self._node = node
        layout = Layout.of(node)
        # Checkpointed
        self._state = state
        kind = SlidingCounts if layout.overlapping else TumblingCounts
        self._windows = kind(node.keys, layout, state)
        # Of this epoch
        self._moment: Moment | None = None
        self._waiting = Gathered()
        self._results: list[Rows] = []

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Count the rows of a fed batch, some batches at a time; before the tick they wait for it."""
        if not batch.num_rows:
            return
        self._waiting.add(batch)
        if self._moment is not None and self._waiting.is_enough:
            self._count(self._moment.clock)

    def tick(self, moment: Moment) -> Outputs:
        """Count what waited."""
        self._moment = moment
        self._count(moment.clock)
        yield from self._take()

    def settle(self) -> Outputs:
        """Count the rest."""
        assert self._moment is not None
        self._count(self._moment.clock)
        yield from self._take()
        self._moment = None

    def _count(self, clock: int) -> None:
        batch = self._waiting.take()
        if batch is not None:
            for fired in self._windows.take(batch):
                self._results += fired.rows(self._node, clock)

    def _take(self) -> Outputs:
        results, self._results = self._results, []
        for rows in results:
            yield MAIN, rows
