"""The half of a regular join behind the shuffle: what an epoch changes in the join of all that ever came.

The rows of a phase (those from before the tick, all others) are taken together, so what comes out is their net effect: a row
and its partner of one epoch are a pair at once, and what came and went is never seen. Rows that have run out are gone
before the first phase, and nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.join_nodes import RegularJoin
from headrace._graph.nodes import MAIN
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.expressions import evaluate
from headrace._runtime.joins.kinds import kinds_of, named_kinds
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.regular.delta import Delta, appended, changed, kept_one
from headrace._runtime.joins.regular.phase import Change, Phase
from headrace._runtime.joins.regular.product import NOTHING, roles_of, shows_rows
from headrace._runtime.joins.regular.store import KeptRows, kept_tables
from headrace._runtime.joins.results import joined_rows, split_nulls, timestamps_in
from headrace._runtime.joins.sides import Columns
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import KeyedOperator, Moment, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState, TableSpec
from headrace._runtime.unfolded import join_batches

__all__ = ["RegularOperator", "regular_tables"]

Integers = npt.NDArray[np.int64]
Batches = Mapping[int, pa.RecordBatch]


def regular_tables(node: RegularJoin) -> tuple[TableSpec, ...]:
    """The state that a regular join declares."""
    sides = range(len(node.inputs))
    return (*(spec for side in sides for spec in kept_tables(node, side)), ARRIVALS)


class RegularOperator(KeyedOperator):
    """The join of one shard."""

    def __init__(self, node: RegularJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._roles = roles_of(node.how, len(node.inputs))
        # Those that others wait for first: then whoever need not wait is not kept only to be forgotten.
        self._order = sorted(range(len(node.inputs)), key=node.spends)
        # Checkpointed
        self._kept = [KeptRows(node, side, state) for side in range(len(node.inputs))]
        # Of this epoch
        self._arrived: list[list[pa.RecordBatch]] = [[] for _ in node.inputs]
        self._clock = 0
        self._metrics: Metrics | None = None

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Where null keys, and rows that withdraw what is not there, are counted."""
        self._metrics = metrics

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in; they are joined with all others of their phase."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """What has run out goes; then the rows from before the tick are joined."""
        self._clock = moment.clock
        for kept in self._kept:
            kept.expire(moment.clock_before, moment.clock)
        yield from self._join()

    def settle(self) -> Outputs:
        """The epoch's rows are joined."""
        yield from self._join()

    def _join(self) -> Outputs:
        batches: dict[int, pa.RecordBatch] = {}
        for side, arrived in enumerate(self._arrived):
            if arrived:
                batch, null = split_nulls(self._kept[side].side, join_batches(arrived))
                self._arrived[side] = []
                if null is not None:
                    self._count("null_keys", null.num_rows)
                    yield MAIN, self._alone(side, null)
                if batch.num_rows:
                    batches[side] = batch
        if batches:
            for change in self._changes(batches):
                rows = self._rows(change)
                if len(rows):
                    yield MAIN, rows

    def _changes(self, batches: Batches) -> Iterator[Change]:
        probe, codes = Probe.of_sides(batches, [kept.side for kept in self._kept])
        deltas = {side: self._delta(side, batches[side], probe, codes[side]) for side in batches}
        phase = Phase(self._node, self._kept, probe, deltas)
        order = [side for side in self._order if side in deltas]
        for side in order:
            yield from phase.lose(side)
        for side in order:
            yield from phase.gain(side, self._clock)
        phase.settle()

    def _delta(self, side: int, batch: pa.RecordBatch, probe: Probe, codes: Integers) -> Delta:
        kept, keep, changing = self._kept[side], self._node.keeps[side], self._node.changing[side]
        if keep is not None:
            return kept_one(keep, kept, batch, probe, codes, changing=changing)
        if not changing:
            return appended(batch, codes)
        delta, unknown = changed(kept, batch, probe, codes)
        if unknown:
            self._count("unknown_withdrawals", unknown)
        return delta

    def _rows(self, change: Change) -> Rows:
        sides = {} if change.columns is None else {change.side: change.columns}
        for other, slots in change.met.items():
            if shows_rows(self._roles[other]):
                sides[other] = self._columns(other, slots)
        kinds = change.kinds
        rows = joined_rows(self._node, sides, change.stamps, len(kinds), self._added(kinds))
        if self._node.condition is None:
            return rows
        truth = pc.fill_null(evaluate(self._node.condition, rows.batch), fill_value=False)
        return rows.filter(truth.to_numpy(zero_copy_only=False))

    def _columns(self, other: int, slots: Integers) -> Columns:
        """The columns of rows of another input, null where there is none."""
        there = slots != NOTHING
        if there.all():
            return self._kept[other].rows(slots)
        places = np.cumsum(there) - 1
        index = pa.array(places, mask=~there)
        found = self._kept[other].rows(slots[there])
        return {name: column.take(index) for name, column in found.items()}

    def _alone(self, side: int, null: pa.RecordBatch) -> Rows:
        """Rows with a null in their key, which meet nobody."""
        kinds = np.zeros(null.num_rows, np.int64)
        if self._node.changing[side]:
            kinds = kinds_of(null)
        columns = self._kept[side].side.columns(null)
        stamps = timestamps_in(null)
        return joined_rows(self._node, {side: columns}, stamps, len(kinds), self._added(kinds))

    def _added(self, kinds: Integers) -> list[pa.Array]:
        return [named_kinds(kinds)] if self._node.emits_changes else []

    def _count(self, name: str, rows: int) -> None:
        assert self._metrics is not None
        self._metrics.counter(name).inc(rows)
