"""A reference for windows: one row at a time, in plain Python, slow and easy to believe.

It keeps every row of every window and computes each result from scratch. It is given the epochs and
watermarks that the engine used, and shares nothing with the engine but `windows_of`. Compare its results as
a set: the order inside an epoch means nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

from headrace.aggregates import Aggregate
from headrace.windows import Window, windows_of

__all__ = ["OracleEpoch", "WindowOracle"]

#: A row and its timestamp, in microseconds since 1970.
TimedRow = tuple[int, Mapping[str, Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OracleEpoch(NamedTuple):
    """One epoch: the watermark before it, the one in it, and its rows in order of arrival.

    `early` rows come before the tick: a step behind another one gets what that one fired because of it.
    """

    before: int
    watermark: int
    rows: Sequence[TimedRow] = ()
    early: Sequence[TimedRow] = ()


class WindowOracle:
    """What a window step must say. Rows with a null key are kept in `errors`.

    >>> from headrace.aggregates import count
    >>> oracle = WindowOracle(Window(10, 10), 0, ("k",), [("rows", count())])
    >>> results, late = oracle.run([OracleEpoch(-1, 3, [(5, {"k": 1})]), OracleEpoch(3, 9)])
    >>> results[0]["rows"], results[0]["firing"], late
    (1, 0, [])
    """

    def __init__(
        self,
        window: Window,
        lateness_us: int,
        keys: Sequence[str],
        aggregates: Iterable[tuple[str, Aggregate]],
    ) -> None:
        self._window = window
        self._lateness_us = lateness_us
        self._keys = tuple(keys)
        self._aggregates = list(aggregates)
        self._rows: dict[tuple[int, int], dict[tuple[Any, ...], list[TimedRow]]] = {}
        self._firings: dict[tuple[int, tuple[Any, ...]], int] = {}
        self._results: list[dict[str, Any]] = []
        self._late: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []

    def run(
        self, epochs: Iterable[tuple[Any, ...]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The results and the late rows of these epochs; call it again to go on."""
        for epoch in epochs:
            self._run(OracleEpoch(*epoch))
        results, self._results = self._results, []
        late, self._late = self._late, []
        return results, late

    def _run(self, epoch: OracleEpoch) -> None:
        changed: set[tuple[int, int, tuple[Any, ...]]] = set()
        for row in epoch.early:
            self._take(row, epoch.before, changed)
        for start, end in sorted(self._rows):
            if epoch.before < end - 1 <= epoch.watermark:
                for key in self._rows[start, end]:
                    self._emit(start, end, key, 0)
        for row in epoch.rows:
            self._take(row, epoch.watermark, changed)
        for start, end, key in sorted(changed, key=lambda change: change[:2]):
            firing = self._firings.get((start, key), 0) + 1
            self._firings[start, key] = firing
            self._emit(start, end, key, firing)
        for start, end in list(self._rows):
            if epoch.watermark >= end - 1 + self._lateness_us:
                del self._rows[start, end]

    def _take(
        self, row: TimedRow, watermark: int, changed: set[tuple[int, int, tuple[Any, ...]]]
    ) -> None:
        ts_us, fields = row
        key = tuple(_same_nan(fields[name]) for name in self._keys)
        if None in key:
            self.errors.append(dict(fields))
            return
        open_windows = [
            (start, end)
            for start, end in windows_of(self._window, ts_us)
            if not watermark >= end - 1 + self._lateness_us
        ]
        if not open_windows:
            self._late.append(dict(fields))
        for start, end in open_windows:
            self._rows.setdefault((start, end), {}).setdefault(key, []).append(row)
            if watermark >= end - 1:
                changed.add((start, end, key))

    def _emit(self, start: int, end: int, key: tuple[Any, ...], firing: int) -> None:
        rows = self._rows[start, end][key]
        result = dict(zip(self._keys, key, strict=True))
        result["window_start"] = _EPOCH + timedelta(microseconds=start)
        result["window_end"] = _EPOCH + timedelta(microseconds=end)
        result["firing"] = firing
        for name, aggregate in self._aggregates:
            result[name] = _compute(aggregate, rows)
        self._results.append(result)


_NAN = math.nan


def _same_nan(value: Any) -> Any:
    # A dictionary finds a NaN only if it is the same object.
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _compute(aggregate: Aggregate, rows: Sequence[TimedRow]) -> Any:
    if aggregate.function is not None:
        return _call(aggregate.function, rows)
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


_OF_MANY: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: sum(values[1:], values[0]) if values else None,
    "avg": lambda values: float(sum(values[1:], values[0])) / len(values) if values else None,
    "min": lambda values: min(values, key=_nan_last) if values else None,
    "max": lambda values: max(values, key=_nan_last) if values else None,
    "collect": list,
    "count_distinct": lambda values: len({_same_nan(value) for value in values}),
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
