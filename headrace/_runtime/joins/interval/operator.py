"""The half of an interval join behind the shuffle: every row looks for partners among those that came before it.

    left    ----------l-------------->       l finds r2, which is there; r3 finds l when it comes
    right   ---r1--------r2-------r3->
                   [lower ... upper]         around l

A row is kept until the watermark has passed its last possible partner. It then comes out of an outer join, if it had none.
Rows are judged before the shuffle: one behind the watermark is late, so whoever gets here meets all partners that it has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import IntervalJoin
from headrace._graph.nodes import MAIN
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.joins.interval.nearness import NewRows, near_pairs
from headrace._runtime.joins.interval.store import TimedRows, timed_table
from headrace._runtime.joins.results import joined_rows, split_nulls
from headrace._runtime.joins.sides import Columns, in_order
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import HASH, KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, Table, TableSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace.watermarks import NO_WATERMARK

__all__ = ["IntervalOperator", "interval_tables"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def interval_tables(node: IntervalJoin) -> tuple[TableSpec, ...]:
    """The state that an interval join declares."""
    return timed_table(node, 0), timed_table(node, 1), ARRIVALS


class IntervalOperator(KeyedOperator):
    """The pairs of one shard."""

    def __init__(self, node: IntervalJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        # Checkpointed
        self._kept = [TimedRows(node, side, state) for side in (0, 1)]
        # Of this epoch
        self._arrived: list[list[pa.RecordBatch]] = [[], []]
        self._watermark = NO_WATERMARK
        self._metrics: Metrics | None = None

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Where null keys are counted."""
        self._metrics = metrics

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; they are matched with all others of their phase."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Match the rows from before it; then let out those that stay alone, and forget what is of no use."""
        self._watermark = moment.before
        yield from self._match()
        for side in (0, 1):
            for table, slots in self._kept[side].lonely(moment.before, moment.watermark):
                columns = self._kept[side].rows(table, slots)
                yield MAIN, self._alone(side, columns, self._kept[side].times(table)[slots])
        self._watermark = moment.watermark
        gone = [kept.drop(moment.watermark) for kept in self._kept]
        if all(gone):
            self._kept[0].forget_arrivals()

    def settle(self) -> Outputs:
        """Match the epoch's rows."""
        yield from self._match()

    def outlook(self) -> Outlook:
        """The first row that would come out alone."""
        firsts = [kept.next_lonely(self._watermark) for kept in self._kept]
        first = min((at for at in firsts if at is not None), default=None)
        return Outlook(first, 0 if first is None else 1)

    def _match(self) -> Outputs:
        # The right looks for partners when the left is kept, so a pair of two new rows is found once.
        for side in (0, 1):
            batches, self._arrived[side] = self._arrived[side], []
            if not batches:
                continue
            batch, null = split_nulls(self._kept[side].side, join_batches(batches))
            if null is not None:
                assert self._metrics is not None
                self._metrics.counter("null_keys").inc(null.num_rows)
                own = self._kept[side].side.columns(null)
                yield MAIN, self._alone(side, own, null.column(TIMESTAMP).to_numpy())
            if batch.num_rows:
                yield from self._meet(side, in_order(batch))

    def _meet(self, side: int, batch: pa.RecordBatch) -> Outputs:
        """Rows of one side, in order of time, meet those of the other, and are kept."""
        mine, others = self._kept[side], self._kept[1 - side]
        times: Integers = batch.column(TIMESTAMP).to_numpy()
        matched = np.zeros(batch.num_rows, np.bool_)
        hashes = batch.column(HASH).to_numpy()
        rows = NewRows(hashes, mine.side.key_columns(batch), *others.interval(times))
        for table, part in others.candidates(times):
            for places, slots in near_pairs(rows[part], table, others.times(table)):
                at = places + part.start
                matched[at] = True
                others.match(table, slots)
                yield MAIN, self._pairs(side, batch, at, table, slots)
        useless = times <= mine.useless_before(self._watermark)
        if useless.any():
            alone = useless & ~matched
            if self._node.preserves(side) and alone.any():
                at = np.flatnonzero(alone)
                yield MAIN, self._alone(side, mine.side.columns(batch, at), times[at])
            batch, matched = batch.filter(pa.array(~useless)), matched[~useless]
        if batch.num_rows:
            mine.add(batch, matched)

    def _pairs(
        self, side: int, batch: pa.RecordBatch, rows: Integers, table: Table, slots: Integers
    ) -> Rows:
        mine, others = self._kept[side], self._kept[1 - side]
        own: Integers = batch.column(TIMESTAMP).to_numpy()[rows]
        stamps = np.maximum(own, others.times(table)[slots])
        columns = {side: mine.side.columns(batch, rows), 1 - side: others.rows(table, slots)}
        return joined_rows(self._node, columns, stamps, len(rows))

    def _alone(self, side: int, columns: Columns, times: Integers) -> Rows:
        """Rows without a partner, at the instant at which that is certain."""
        stamps = times + max(0, self._kept[side].reach_us)
        return joined_rows(self._node, {side: columns}, stamps, len(times))
