"""Aggregates from scratch: all rows in, one value out, in plain Python."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import reduce
from types import SimpleNamespace
from typing import Any

from headrace.aggregates import Aggregate
from headrace.testing.epochs import TimedRow

__all__ = ["compute", "key_of", "same_nan"]

_NAN = math.nan


def key_of(row: TimedRow, keys: Sequence[str]) -> tuple[Any, ...]:
    """The key of a row."""
    return tuple(same_nan(row[1][name]) for name in keys)


def same_nan(value: Any) -> Any:
    """The value, or the one NaN."""
    # A dictionary finds a NaN only if it is the same object.
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def compute(aggregate: Aggregate, rows: Sequence[TimedRow], *, weighted: bool = False) -> Any:
    """One aggregate over these rows, given in order of arrival."""
    if weighted:
        return _balance(aggregate, rows)
    if aggregate.function is not None:
        return _call(aggregate.function, rows)
    if aggregate.reducer is not None:
        return _reduce(aggregate.reducer, rows)
    if aggregate.column is None:
        return len(rows)
    present = [(ts_us, row) for ts_us, row in rows if row[aggregate.column] is not None]
    if aggregate.by is not None:
        present = [(ts_us, row) for ts_us, row in present if row[aggregate.by] is not None]
    values = [row[aggregate.column] for _, row in present]
    if aggregate.kind in _OF_MANY:
        return _OF_MANY[aggregate.kind](values)
    if aggregate.kind in ("variance", "stddev"):
        return _variance(values, aggregate)
    return _pick(aggregate, present) if present else None


def _call(function: Any, rows: Sequence[TimedRow]) -> Any:
    accumulator = function.create_accumulator()
    for _, row in rows:
        accumulator = function.add(SimpleNamespace(**row), accumulator)
    return function.get_result(accumulator)


def _reduce(reducer: Callable[[Any, Any], Any], rows: Sequence[TimedRow]) -> dict[str, Any]:
    made = reduce(reducer, (SimpleNamespace(**row) for _, row in rows))
    return dict(made) if isinstance(made, dict) else dict(vars(made))


def _balance(aggregate: Aggregate, rows: Sequence[TimedRow]) -> Any:
    """Rows that withdraw others count against them."""
    column = aggregate.column
    present = [row for _, row in rows if column is None or row[column] is not None]
    weights = [-1 if row["change"].startswith("-") else 1 for row in present]
    if aggregate.kind == "count":
        return sum(weights)
    assert column is not None
    assert aggregate.kind in ("sum", "avg"), aggregate
    if not sum(weights):
        return None
    total = sum(weight * row[column] for weight, row in zip(weights, present, strict=True))
    return total if aggregate.kind == "sum" else float(total) / sum(weights)


_OF_MANY: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: sum(values[1:], values[0]) if values else None,
    "avg": lambda values: float(sum(values[1:], values[0])) / len(values) if values else None,
    "min": lambda values: min(values, key=_nan_last) if values else None,
    "max": lambda values: max(values, key=_nan_last) if values else None,
    "collect": list,
    "count_distinct": lambda values: len({same_nan(value) for value in values}),
}


def _variance(values: list[Any], aggregate: Aggregate) -> float | None:
    numbers = [float(value) for value in values]
    if len(numbers) <= aggregate.ddof:
        return None
    variance = statistics.variance if aggregate.ddof else statistics.pvariance
    result = variance(numbers) if len(numbers) > 1 else 0.0
    return math.sqrt(result) if aggregate.kind == "stddev" else result


def _pick(aggregate: Aggregate, rows: Sequence[TimedRow]) -> Any:
    def order(row: TimedRow) -> Any:
        return row[0] if aggregate.by is None else _nan_last(row[1][aggregate.by])

    best = rows[0]
    for row in rows[1:]:
        if aggregate.kind in ("first", "min_by"):
            better = order(row) < order(best)
        elif aggregate.kind == "max_by":
            better = order(row) > order(best)
        else:
            better = order(row) >= order(best)
        best = row if better else best
    return best[1][aggregate.column or ""]


def _nan_last(value: Any) -> tuple[bool, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value)
