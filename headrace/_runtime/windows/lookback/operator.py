"""The half of a look-back step behind the shuffle: rows wait for the watermark, then look back and go out.

W promises that no more rows with a timestamp <= W come, so a row t with t <= W has all that it will see: the rows
of its key in [t - size, t]. It goes out with the tick, in order of time, and stays in the history until W + 1 - size
is behind it. Rows that come with the epoch are behind its watermark and wait.
"""

from __future__ import annotations

import pyarrow as pa

from headrace._graph.nodes import MAIN, LookBackAggregate
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.operator import KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.ordering import stable_order
from headrace._runtime.pending import Pending
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.windows.lookback.history import History
from headrace._runtime.windows.lookback.layout import PENDING, Layout, look_back_tables
from headrace._runtime.windows.lookback.looking import Looking

__all__ = ["EMIT_ROWS", "LookBackOperator", "look_back_tables"]

#: Result rows in a batch at most.
EMIT_ROWS = 131_072


class LookBackOperator(KeyedOperator):
    """The look-backs of one shard."""

    def __init__(self, node: LookBackAggregate, state: ShardState) -> None:
        # Configuration
        self._node = node
        layout = Layout.of(node)
        # Checkpointed
        self._pending = Pending(PENDING, layout.waiting, state)
        self._arrivals = Arrivals(state)
        self._history = History(layout, state)
        self._looking = Looking(node, layout, self._history)
        # Of this epoch
        self._arrived: list[pa.RecordBatch] = []

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; they wait."""
        if batch.num_rows:
            self._arrived.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Let out the rows that the watermark has passed, earliest first."""
        arrived, self._arrived = self._arrived, []
        due = self._pending.release(arrived, moment.watermark)
        if due is not None:
            due = due.take(pa.array(stable_order(due.column(TIMESTAMP).to_numpy())))
            results = self._looking.results(due, moment.watermark)
            for start in range(0, due.num_rows, EMIT_ROWS):
                part = slice(start, start + EMIT_ROWS)
                yield MAIN, self._rows(due[part], [array[part] for array in results])
        if self._history.drop(moment.watermark) and self._pending.is_empty:
            self._arrivals.forget()

    def settle(self) -> Outputs:
        """Nothing goes out: what came with the epoch is behind its watermark."""
        arrived, self._arrived = self._arrived, []
        self._pending.add(arrived)
        yield from ()

    def outlook(self) -> Outlook:
        """The first of the rows that wait."""
        return self._pending.outlook(by_clock=self._node.window.time == "processing")

    def _rows(self, rows: pa.RecordBatch, results: list[pa.Array]) -> Rows:
        schema = self._node.schema
        own = len(schema) - len(results)
        arrays = [*rows.columns[:own], *results]
        fitted = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(fitted, schema=schema)
        return Rows(batch, rows.column(TIMESTAMP).to_numpy())
