"""The half behind the shuffle: of each key and window the rows that nobody has beaten; they come out when it is over."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import WindowExtreme
from headrace._graph.nodes import MAIN
from headrace._runtime.arrivals import ARRIVALS, Arrivals
from headrace._runtime.joins.extreme.feeder import best_of, values_in
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.results import joined_rows
from headrace._runtime.joins.sides import Side, add_rows, read_rows, rows_table
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace._runtime.windows.results import shown_bounds
from headrace.watermarks import NO_WATERMARK

__all__ = ["ExtremeOperator", "extreme_tables"]

Integers = npt.NDArray[np.int64]

_ROWS = "rows"
_VALUE = "value"


def extreme_tables(node: WindowExtreme) -> tuple[TableSpec, ...]:
    """The state that it declares: rows by the start of their window."""
    return rows_table(_ROWS, Side.of(node, 0), [ValueSpec(_VALUE, pa.int64(), 0)]), ARRIVALS


class ExtremeOperator(KeyedOperator):
    """The windows of one shard."""

    def __init__(self, node: WindowExtreme, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._side = Side.of(node, 0)
        # Checkpointed
        self._state = state
        self._arrivals = Arrivals(state)
        # Of this epoch
        self._arrived: list[pa.RecordBatch] = []
        self._passed = NO_WATERMARK

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; they are compared with all others of their phase."""
        if batch.num_rows:
            self._arrived.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Compare the rows from before it; then let out those of windows that are over."""
        self._compare()
        window = self._node.window
        self._passed = window.passed(moment.watermark)
        over = [
            pane for pane in self._state.buckets(_ROWS) if window.last_end(pane) <= self._passed
        ]
        for pane in over:
            yield MAIN, self._rows(pane)
        if over:
            self._state.drop_before(_ROWS, over[-1] + 1)
        if not self._state.buckets(_ROWS):
            self._arrivals.forget()

    def settle(self) -> Outputs:
        """Compare the epoch's rows; none of them is of a window that is over."""
        self._compare()
        yield from ()

    def outlook(self) -> Outlook:
        """The next end of a window with rows."""
        panes = self._state.buckets(_ROWS)
        if not panes:
            return Outlook()
        _, end = self._node.window.span(self._node.window.last_end(panes[0]))
        return Outlook(end - 1, self._state.rows(_ROWS, panes[0]))

    def _compare(self) -> None:
        if not self._arrived:
            return
        arrived, self._arrived = join_batches(self._arrived), []
        panes: Integers = arrived.column(TIMESTAMP).to_numpy()
        for pane in np.unique(panes).tolist():
            self._keep_best(pane, arrived.take(pa.array(np.flatnonzero(panes == pane))))

    def _keep_best(self, pane: int, batch: pa.RecordBatch) -> None:
        table = self._state.table(_ROWS, pane)
        probe = Probe.of(self._side.key_columns(batch))
        slots, counts = probe.members(table)
        owners = np.repeat(np.arange(len(counts)), counts)
        values, kept = values_in(self._node, batch), table.values(_VALUE)[slots]
        best = np.maximum(
            best_of(probe.codes, values, len(counts)), best_of(owners, kept, len(counts))
        )
        table.remove(slots[kept < best[owners]])
        winners = np.flatnonzero(values == best[probe.codes])
        if len(winners):
            rows = batch.take(pa.array(winners))
            numbers = self._arrivals.count(rows.column(HASH).to_numpy()) + np.arange(len(winners))
            table.put(_VALUE, add_rows(table, self._side, rows, numbers), values[winners])

    def _rows(self, pane: int) -> Rows:
        table = self._state.table(_ROWS, pane)
        slots = table.live()
        start, end = self._node.window.span(self._node.window.last_end(pane))
        bounds = [pa.array(shown_bounds(bound, len(slots))) for bound in (start, end)]
        stamps = np.full(len(slots), end - 1)
        columns = read_rows(table, self._side, slots)
        return joined_rows(self._node, {0: columns}, stamps, len(slots), bounds)
