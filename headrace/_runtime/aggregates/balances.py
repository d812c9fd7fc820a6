"""`sum` and `avg` of rows some of which withdraw others: a total, and how many values are in it.

A withdrawn value is added with the other sign, in the same fold or in a later one, so totals of integers and decimals
are exact; those of floats are as exact as floats are, and an infinity or NaN that was added stays. Where as many
values were taken away as added the result is null, as it is over no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._graph.changes import CHANGE
from headrace._runtime.aggregates.counts import Count
from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace.errors import InputError

__all__ = ["Balance"]


class Balance(Fold):
    """A fold that adds, fed with signed values, and a count of them."""

    def __init__(
        self, name: str, column: str, total: Fold, *, mean: bool, overflow: Callable[[], InputError]
    ) -> None:
        self._column = column
        self._total = total
        self._count = Count(f"{name}.values", column, weighted=True)
        self._mean = mean
        self._overflow = overflow
        self.reads = (column, CHANGE)
        self.columns = (*total.columns, *self._count.columns)
        self.parts = (*total.parts, *self._count.parts)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """What both ask for."""
        signed = Flush({self._column: self._signed(flush)}, flush.timestamps)
        return (*self._total.requests(signed), *self._count.requests(flush))

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The parts of both."""
        return (*self._total.partial(flush, folded[:-1]), folded[-1])

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Merge both."""
        self._total.merge(into, slots, parts[:-1])
        self._count.merge(into, slots, parts[-1:])

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The parts of both."""
        return (*self._total.export(source, slots), *self._count.export(source, slots))

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The totals, or quotients; null where nothing is left."""
        counts = self._count.result(source, slots)
        totals = self._total.result(source, slots)
        left = pc.not_equal(counts, 0)
        if self._mean:
            totals = pc.divide(totals, pc.if_else(left, counts, 1).cast(pa.float64()))
        return pc.if_else(left, totals, pa.scalar(None, totals.type))

    def _signed(self, flush: Flush) -> pa.Array:
        column = flush.columns[self._column]
        if self._mean or pt.is_floating(column.type):
            weights = pa.array(flush.weights.astype(np.float64))
            return pc.multiply(column.cast(pa.float64(), safe=False), weights)
        if pt.is_decimal(column.type):
            return pc.if_else(pa.array(flush.weights < 0), pc.negate(column), column)
        try:
            weights = pa.array(flush.weights.astype(np.int64))
            return pc.multiply_checked(column.cast(pa.int64()), weights)
        except pa.ArrowInvalid:
            raise self._overflow() from None
