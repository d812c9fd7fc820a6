"""Aggregates that can be had for many ranges of rows at once: all that Arrow has, but for lists and sets of values.

Nulls, NaN and types are as in `headrace._runtime.aggregates`. What is absent here is folded range by range, see
`expansion`; so are sums of integers that might not fit, for the error that they make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.aggregates.words import from_words, has_words, to_words
from headrace._runtime.windows.lookback.ranges import Columns, Ranges
from headrace.aggregates import Aggregate

__all__ = ["Items", "measure"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LIMIT = 2**63
_LEAST = -(2**63)
_GREATEST = 2**63 - 1


@dataclass(frozen=True)
class Items:
    """Rows of some keys, key by key in order of time: columns that aggregates read, and their order of arrival."""

    columns: Mapping[str, pa.Array]
    timestamps: Integers
    #: Only if an aggregate goes by it.
    arrivals: Integers | None


def measure(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array | None:
    """The aggregate of each range; None if this module cannot have it."""
    make = _MEASURES.get(aggregate.kind)
    return None if make is None else make(aggregate, items, ranges)


def _count(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    if aggregate.column is None:
        return pa.array(ranges.sizes)
    return pa.array(_counted(items.columns[aggregate.column], ranges))


def _sum(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array | None:
    column = _column(aggregate, items)
    if pt.is_floating(column.type):
        return pa.array(_float_sum(column, ranges), mask=_nothing(_counted(column, ranges)))
    if pt.is_decimal(column.type):
        return None
    extremes = pc.min_max(column)
    highest = max(abs(value.as_py() or 0) for value in extremes.values())
    if highest * int(ranges.sizes.max(initial=0)) >= _LIMIT:
        return None
    numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return pa.array(ranges.add(numbers), mask=_nothing(_counted(column, ranges)))


def _average(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    column = _column(aggregate, items)
    counts = _counted(column, ranges)
    return pa.array(_float_sum(column, ranges) / np.maximum(counts, 1), mask=_nothing(counts))


def _variance(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    column = _column(aggregate, items)
    count = _valid(column).astype(np.float64)
    mean = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0).to_numpy()
    with np.errstate(all="ignore"):
        counts, _, spreads = ranges.reduce((count, mean, np.zeros(len(count))), _chan)
        variance = spreads / np.maximum(counts - aggregate.ddof, 1)
    result = np.sqrt(variance) if aggregate.kind == "stddev" else variance
    return pa.array(result, mask=_nothing(counts > aggregate.ddof))


def _extreme(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    column = _column(aggregate, items)
    greatest = aggregate.kind == "max"
    words, ordered = _ranked(column)
    words = np.where(_valid(column), words, _LEAST if greatest else _GREATEST)
    better = np.maximum if greatest else np.minimum
    (best,) = ranges.reduce((words,), lambda a, b: (better(a[0], b[0]),))
    has = _counted(column, ranges) > 0
    if ordered is None:
        return from_words(best, column.type, has)
    return ordered.take(pa.array(np.where(has, best, 0), mask=~has))


def _first(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    column = _column(aggregate, items)
    places = ranges.first(_valid(column))
    return column.take(pa.array(places, mask=places >= ranges.ends))


def _last(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    column = _column(aggregate, items)
    places = ranges.last(_valid(column))
    return column.take(pa.array(places, mask=places < ranges.starts))


def _pick_by(aggregate: Aggregate, items: Items, ranges: Ranges) -> pa.Array:
    """The row with the best word; among equals the one that arrived first."""
    assert aggregate.by is not None
    assert items.arrivals is not None
    column, by = _column(aggregate, items), items.columns[aggregate.by]
    usable = _valid(column) & _valid(by)
    words, _ = _ranked(by)
    if aggregate.kind == "max_by":
        words = ~words
    places = np.where(usable, np.arange(len(usable)), -1)
    _, _, best = ranges.reduce((words, items.arrivals, places), _better)
    return column.take(pa.array(best, mask=best < 0))


def _better(a: Columns, b: Columns) -> Columns:
    wins = (b[0] < a[0]) | ((b[0] == a[0]) & (b[1] < a[1])) | (a[2] < 0)
    wins &= b[2] >= 0
    return tuple(np.where(wins, y, x) for x, y in zip(a, b, strict=True))


def _chan(a: Columns, b: Columns) -> Columns:
    """Count, mean and sum of squared distances of two sets together."""
    total = a[0] + b[0]
    share = b[0] / np.maximum(total, 1)
    # A set of nothing has the mean 0 by convention, which must not count as a distance.
    distance = np.where((a[0] > 0) & (b[0] > 0), b[1] - a[1], 0.0)
    mean = np.where(a[0] > 0, a[1] + distance * share, b[1])
    return total, mean, a[2] + b[2] + distance * distance * a[0] * share


def _float_sum(column: pa.Array, ranges: Ranges) -> npt.NDArray[np.float64]:
    numbers = pc.fill_null(column.cast(pa.float64(), safe=False), 0.0).to_numpy()
    with np.errstate(all="ignore"):
        (sums,) = ranges.reduce((numbers,), lambda a, b: (a[0] + b[0],))
    return sums


def _ranked(column: pa.Array) -> tuple[Integers, pa.Array | None]:
    """Words in the order of the values; where they are no words themselves, places among the values in order."""
    if pt.is_floating(column.type):
        # -0.0 and 0.0 are equal, so neither may come before the other.
        column = pc.add(column, pa.scalar(0, column.type))
    if has_words(column.type):
        return to_words(column), None
    encoded = column.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    codes = pc.fill_null(encoded.indices, 0).to_numpy()
    words = ranks[codes] if len(ranks) else np.zeros(len(codes), np.int64)
    return words, encoded.dictionary.take(order)


def _column(aggregate: Aggregate, items: Items) -> pa.Array:
    assert aggregate.column is not None
    return items.columns[aggregate.column]


def _counted(column: pa.Array, ranges: Ranges) -> Integers:
    return ranges.count(_valid(column)) if column.null_count else ranges.sizes


def _valid(column: pa.Array) -> Mask:
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    flags: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return flags


def _nothing(counts: npt.NDArray[np.generic]) -> Mask | None:
    """Where there is nothing; None if nowhere."""
    empty: Mask = counts == 0
    return empty if empty.any() else None


_MEASURES: Mapping[str, Callable[[Aggregate, Items, Ranges], pa.Array | None]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "variance": _variance,
    "stddev": _variance,
    "min": _extreme,
    "max": _extreme,
    "first": _first,
    "last": _last,
    "min_by": _pick_by,
    "max_by": _pick_by,
}
