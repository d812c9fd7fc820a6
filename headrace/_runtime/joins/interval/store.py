"""The rows of one side that may still find a partner, in slices of event time.

Slices are buckets of their own, so rows that no partner can reach any more go with them, whole, and nobody writes down that
they went. A row is looked up in the slices that its interval crosses, of which there are four or five.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import IntervalJoin
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.joins.sides import Columns, Side, add_rows, read_rows, rows_table
from headrace._runtime.joins.slices import Slices
from headrace._runtime.operator import HASH
from headrace._runtime.ordering import stable_order
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["TimedRows", "timed_table"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_AT = "at"
_MATCHED = "matched"


def timed_table(node: IntervalJoin, number: int) -> TableSpec:
    """The table of one side; of a preserved one it knows which rows had a partner."""
    values = [ValueSpec(_AT, pa.int64(), 0)]
    if node.preserves(number):
        values.append(ValueSpec(_MATCHED, pa.bool_(), 0))
    return rows_table(_name(number), Side.of(node, number), values)


class TimedRows:
    """The kept rows of one side."""

    def __init__(self, node: IntervalJoin, number: int, state: ShardState) -> None:
        # Configuration
        self.side = Side.of(node, number)
        self._preserved = node.preserves(number)
        #: From a row of this side to its last possible partner; behind it the row is of no use.
        self.reach_us = node.upper_us if number == 0 else -node.lower_us
        #: From a row of the other side, where the interval of its partners on this side begins and ends.
        lower, upper = node.lower_us, node.upper_us
        self._begins, self._ends = (-upper, -lower) if number == 0 else (lower, upper)
        self._slices = Slices(upper - lower)
        # Checkpointed
        self._name = _name(number)
        self._state = state
        self._arrivals = Arrivals(state)

    def useless_before(self, watermark: int) -> int:
        """Rows at or before this instant cannot match any more."""
        return watermark if watermark in (NO_WATERMARK, END_OF_TIME) else watermark - self.reach_us

    def candidates(self, times: Integers) -> Iterator[tuple[Table, slice]]:
        """The slices that rows of the other side, in order of time, look into, and which of the rows do."""
        for bucket in self._state.buckets(self._name):
            first, last = self._slices.span(bucket)
            start = int(np.searchsorted(times, first - self._ends, side="left"))
            stop = int(np.searchsorted(times, last - self._begins, side="right"))
            if stop > start:
                yield self._state.table(self._name, bucket), slice(start, stop)

    def interval(self, times: Integers) -> tuple[Integers, Integers]:
        """From when to when the partners of rows of the other side lie."""
        return times + self._begins, times + self._ends

    def times(self, table: Table) -> Integers:
        """The timestamps of kept rows, by slot."""
        return table.values(_AT)

    def rows(self, table: Table, slots: Integers) -> Columns:
        """Their columns."""
        return read_rows(table, self.side, slots)

    def match(self, table: Table, slots: Integers) -> None:
        """These rows had a partner."""
        if self._preserved:
            flags = table.values(_MATCHED)
            fresh = slots[~flags[slots]]
            if len(fresh):
                flags[fresh] = True
                table.touch(fresh)

    def add(self, batch: pa.RecordBatch, matched: Mask) -> None:
        """Keep rows in order of time, some of which had a partner."""
        times: Integers = batch.column(TIMESTAMP).to_numpy()
        numbers = self._arrivals.count(batch.column(HASH).to_numpy()) + np.arange(batch.num_rows)
        live = len(self._state.buckets(self._name))
        for bucket, part in self._slices.parts(times, live):
            table = self._state.table(self._name, bucket)
            slots = add_rows(table, self.side, batch[part], numbers[part])
            table.put(_AT, slots, times[part])
            if self._preserved:
                table.put(_MATCHED, slots, matched[part])

    def lonely(self, before: int, watermark: int) -> Iterator[tuple[Table, Integers]]:
        """The rows that had no partner when the last moment for one passed, between two watermarks."""
        first, last = self.useless_before(before), self.useless_before(watermark)
        for table in self._waiting(last):
            slots = self._alone(table)
            times = self.times(table)[slots]
            due = (times > first) & (times <= last)
            if due.any():
                yield table, slots[due][stable_order(times[due])]

    def next_lonely(self, watermark: int) -> int | None:
        """The watermark that lets out the next row that has no partner so far."""
        last, found = self.useless_before(watermark), END_OF_TIME
        for bucket in self._state.buckets(self._name) if self._preserved else ():
            if self._slices.span(bucket)[0] < found:
                table = self._state.table(self._name, bucket)
                times = self.times(table)[self._alone(table)]
                found = min(found, int(times[times > last].min(initial=END_OF_TIME)))
        return None if found == END_OF_TIME else found + self.reach_us

    def drop(self, watermark: int) -> bool:
        """Forget the slices that cannot be reached any more; whether nothing is left."""
        last = self.useless_before(watermark)
        if last != NO_WATERMARK:
            horizon = self._slices.horizon(last)
            live = self._state.buckets(self._name)
            if live and live[0] < horizon:
                self._state.drop_before(self._name, horizon)
        return not self._state.buckets(self._name)

    def forget_arrivals(self) -> None:
        """No row is left to be told apart from others."""
        self._arrivals.forget()

    def _waiting(self, last: int) -> Iterator[Table]:
        """The tables in which rows up to an instant may wait to come out alone."""
        for bucket in self._state.buckets(self._name) if self._preserved else ():
            if self._slices.span(bucket)[0] <= last:
                yield self._state.table(self._name, bucket)

    def _alone(self, table: Table) -> Integers:
        # Rows go with their slice only, so those there are have the first slots.
        return np.flatnonzero(~table.values(_MATCHED)[: table.size])


def _name(number: int) -> str:
    return f"side {number}"
