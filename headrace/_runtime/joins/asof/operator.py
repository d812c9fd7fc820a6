"""The half of a versioned or as-of join behind the shuffle: left rows wait until what is nearest to them is certain.

W promises that no more rows with a timestamp <= W come, so a left row t that looks backward has its partner when
W >= t, and one that looks forward when W >= t + tolerance. It goes out then, with the tick.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import AsOfJoin
from headrace._graph.nodes import MAIN
from headrace._runtime.arrivals import ARRIVALS, Arrivals
from headrace._runtime.joins.asof.latest import LatestVersions, latest_tables
from headrace._runtime.joins.asof.near import NearRows, near_tables
from headrace._runtime.joins.asof.partners import Partners
from headrace._runtime.joins.asof.rights import Rights
from headrace._runtime.joins.results import joined_rows, split_nulls
from headrace._runtime.joins.sides import Columns, Side, in_order
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.pending import Pending, pending_table
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, TableSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches

__all__ = ["EMIT_BYTES", "EMIT_ROWS", "AsOfOperator", "asof_tables"]

#: Result rows in a batch at most, and about how large it gets: one version may stand beside many rows.
EMIT_ROWS = 131_072
EMIT_BYTES = 64 << 20

Integers = npt.NDArray[np.int64]

_WAITING = "waiting"


def asof_tables(node: AsOfJoin) -> tuple[TableSpec, ...]:
    """The state that a versioned or as-of join declares."""
    rights = latest_tables(node) if node.direction == "backward" else near_tables(node)
    return pending_table(_WAITING, _waiting(Side.of(node, 0))), *rights, ARRIVALS


class AsOfOperator(KeyedOperator):
    """The left rows of one shard, beside what is nearest to them."""

    def __init__(self, node: AsOfJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._left = Side.of(node, 0)
        self._shared = [column.name for column in node.columns if len(column.origins) > 1]
        # Checkpointed
        self._waiting = Pending(_WAITING, _waiting(self._left), state, wait_us=node.wait_us)
        looks_back = node.direction == "backward"
        self._rights: Rights = (LatestVersions if looks_back else NearRows)(node, state)
        self._arrivals = Arrivals(state)
        # Of this epoch
        self._arrived: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
        self._metrics: Metrics | None = None

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Where null keys are counted."""
        self._metrics = metrics

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; left ones wait, right ones are waited for."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Let out the left rows whose partner is certain now, earliest first."""
        lefts, rights, null = self._take()
        if null:
            yield MAIN, self._alone(join_batches(null))
        due = self._waiting.release(lefts, moment.watermark)
        due = None if due is None else in_order(due)
        partners = self._rights.meet(due, rights, moment.watermark)
        if due is not None and partners is not None:
            size = _batch_rows(due, partners)
            for start in range(0, due.num_rows, size):
                rows = self._results(due, partners, slice(start, start + size))
                if len(rows):
                    yield MAIN, rows
        if self._waiting.is_empty and not self._rights.are_waiting:
            self._arrivals.forget()

    def settle(self) -> Outputs:
        """Only rows without a key go out: all others are behind the watermark."""
        lefts, rights, null = self._take()
        if null:
            yield MAIN, self._alone(join_batches(null))
        self._waiting.add(lefts)
        self._rights.add(rights)

    def outlook(self) -> Outlook:
        """The first of the rows that wait."""
        return self._waiting.outlook()

    def _take(self) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch], list[pa.RecordBatch]]:
        """What arrived: left rows, right rows, and left rows without a key, which never have a partner."""
        (arrived, rights), self._arrived = self._arrived, ([], [])
        if not self._node.preserves(0):
            return arrived, rights, []
        split = [split_nulls(self._left, batch) for batch in arrived]
        null = [without for _, without in split if without is not None]
        if null:
            assert self._metrics is not None
            self._metrics.counter("null_keys").inc(sum(batch.num_rows for batch in null))
        return [batch for batch, _ in split if batch.num_rows], rights, null

    def _results(self, due: pa.RecordBatch, partners: Partners, part: slice) -> Rows:
        rows, places = due[part], partners.places[part]
        if not self._node.preserves(0) and (places < 0).any():
            found = np.flatnonzero(places >= 0)
            rows, places = rows.take(pa.array(found)), places[found]
        own = self._left.columns(rows)
        sides = {0: own}
        if partners.columns:
            shared: Columns = {name: own[name] for name in self._shared}
            sides[1] = {**partners.take(places), **shared}
        return joined_rows(self._node, sides, self._stamps(rows), rows.num_rows)

    def _alone(self, rows: pa.RecordBatch) -> Rows:
        columns = self._left.columns(rows)
        return joined_rows(self._node, {0: columns}, self._stamps(rows), rows.num_rows)

    def _stamps(self, rows: pa.RecordBatch) -> Integers:
        times: Integers = rows.column(TIMESTAMP).to_numpy()
        return times + self._node.wait_us


def _batch_rows(due: pa.RecordBatch, partners: Partners) -> int:
    """How many results are a batch, if left rows and partners are as large as they are on average."""
    row_bytes: int = due.nbytes // due.num_rows + partners.row_bytes
    return max(1, min(EMIT_ROWS, EMIT_BYTES // max(1, row_bytes)))


def _waiting(side: Side) -> pa.Schema:
    """The columns of a left row that waits."""
    return side.sent.append(pa.field(TIMESTAMP, pa.int64()))
