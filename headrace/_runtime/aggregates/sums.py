"""`sum` and `avg`. An integer or decimal sum that does not fit its type is an error, never a wrong number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Request, Slots
from headrace._runtime.aggregates.numbers import OneNumber
from headrace._runtime.state import ValueSpec
from headrace.errors import InputError

__all__ = ["Average", "DecimalSum", "FloatSum", "IntegerSum"]

_LIMIT = 2**63
_LOW_BITS = 32
_AT_LEAST_ONE = pc.ScalarAggregateOptions(min_count=1)

Overflow = Callable[[], InputError]


class _NumberSum(OneNumber):
    """Adds in a type of at most 64 bits."""

    def __init__(self, name: str, column: str, kind: pa.DataType) -> None:
        super().__init__(name, "sum", column, kind=kind, neutral=0)

    def _combine(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
        total: npt.NDArray[Any] = a + b
        return total


class FloatSum(_NumberSum):
    """Sums of floats."""

    def __init__(self, name: str, column: str) -> None:
        super().__init__(name, column, pa.float64())

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow adds, in float64 whatever the width."""
        return (Request(flush.columns[self._column], "sum", _AT_LEAST_ONE),)


class IntegerSum(_NumberSum):
    """Sums of integers in int64."""

    def __init__(self, name: str, column: str, overflow: Overflow) -> None:
        super().__init__(name, column, pa.int64())
        self._overflow = overflow

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow adds: at once if no sum can be too large, else the halves of the numbers."""
        column = flush.columns[self._column]
        extremes = pc.min_max(column)
        highest = max((abs(v.as_py() or 0) for v in extremes.values()), default=0)
        if highest * len(column) < _LIMIT:
            return (Request(column, "sum", _AT_LEAST_ONE),)
        wide = column.cast(pa.int64()) if column.type != pa.uint64() else column
        # An arithmetic shift and the bits that it drops: high * 2**32 + low is the number, also below 0.
        high = pc.shift_right(wide, pa.scalar(_LOW_BITS, wide.type)).cast(pa.int64())
        low = pc.bit_wise_and(wide, pa.scalar(2**_LOW_BITS - 1, wide.type)).cast(pa.int64())
        return (Request(high, "sum", _AT_LEAST_ONE), Request(low, "sum", _AT_LEAST_ONE))

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The sums, or halves put together exactly."""
        if len(folded) == 1:
            return (folded[0].cast(pa.int64()),)
        pairs = zip(folded[0].to_pylist(), folded[1].to_pylist(), strict=True)
        sums = [None if high is None else (high << _LOW_BITS) + low for high, low in pairs]
        if any(s is not None and not -_LIMIT <= s < _LIMIT for s in sums):
            raise self._overflow()
        return (pa.array(sums, pa.int64()),)

    def _combine(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
        total = super()._combine(a, b)
        # Only a sum of two numbers of one sign can wrap, and then its sign is the other.
        if np.any(((a ^ total) & (b ^ total)) < 0):
            raise self._overflow()
        return total


class DecimalSum(Fold):
    """Sums of decimals, with 38 digits."""

    def __init__(self, name: str, column: str, kind: pa.DataType, overflow: Overflow) -> None:
        self._column = column
        self._kind = kind
        self._wide = pa.decimal256(76, kind.scale)
        self._overflow = overflow
        self._sum = f"{name}.sum"
        self.reads = (column,)
        self.columns = (ValueSpec(self._sum, kind, None),)
        self.parts = (pa.field(self._sum, kind),)

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow adds, with digits to spare."""
        return (Request(flush.columns[self._column].cast(self._wide), "sum", _AT_LEAST_ONE),)

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """The sums, if they fit."""
        return (self._narrow(folded[0]),)

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Add; null is nothing."""
        old = into.get(self._sum, slots)
        # 75 digits: the type of a sum has one more.
        old_wide, new_wide = (
            part.cast(pa.decimal256(75, self._kind.scale)) for part in (old, parts[0])
        )
        both = self._narrow(pc.add(old_wide, new_wide))
        into.put(self._sum, slots, pc.coalesce(both, old, parts[0]))

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """The sums."""
        return (self.result(source, slots),)

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The sums, null where there is none."""
        return source.get(self._sum, slots)

    def _narrow(self, sums: pa.Array) -> pa.Array:
        try:
            return sums.cast(self._kind)
        except pa.ArrowInvalid:
            raise self._overflow() from None


class Average(Fold):
    """A float sum and a count."""

    def __init__(self, name: str, column: str) -> None:
        self._column = column
        self._sum = f"{name}.sum"
        self._count = f"{name}.count"
        self.reads = (column,)
        self.columns = (
            ValueSpec(self._sum, pa.float64(), 0),
            ValueSpec(self._count, pa.int64(), 0),
        )
        self.parts = (pa.field(self._sum, pa.float64()), pa.field(self._count, pa.int64()))

    def requests(self, flush: Flush) -> Sequence[Request]:
        """Arrow adds and counts."""
        column = flush.columns[self._column].cast(pa.float64(), safe=False)
        return (Request(column, "sum"), Request(column, "count"))

    def partial(self, flush: Flush, folded: Sequence[pa.Array]) -> Sequence[pa.Array]:
        """Both; a sum of nothing is 0."""
        return (pc.fill_null(folded[0], 0.0), folded[1])

    def merge(self, into: Columns, slots: Slots, parts: Sequence[pa.Array]) -> None:
        """Add both."""
        into.values(self._sum)[slots] += parts[0].to_numpy()
        into.values(self._count)[slots] += parts[1].to_numpy()

    def export(self, source: Columns, slots: Slots) -> Sequence[pa.Array]:
        """Both."""
        return tuple(pa.array(source.get(c, slots)) for c in (self._sum, self._count))

    def result(self, source: Columns, slots: Slots) -> pa.Array:
        """The quotients, null where nothing was counted."""
        counts = source.get(self._count, slots)
        empty = counts == 0
        return pa.array(source.get(self._sum, slots) / np.maximum(counts, 1), mask=empty)
