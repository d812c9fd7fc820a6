"""Evictors: which rows of a window count when it fires. A window with an evictor keeps its rows.

keyed.window(...).evictor(hr.evictors.count(10))     only the last ten rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.windows.assigner import TimeWindow

__all__ = ["Evictor", "TimedRow", "count", "time"]


class TimedRow(NamedTuple):
    """A row of a window and its timestamp."""

    row: Any
    timestamp: datetime


class Evictor:
    """Derive from it for one of your own. Both methods get the rows in order of arrival and say which stay."""

    def evict_before(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        """Before the function sees the rows: those that it sees, and that stay."""
        return rows

    def evict_after(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        """After it: those that stay."""
        return rows


@dataclass(frozen=True)
class _Count(Evictor):
    rows: int
    after: bool

    def evict_before(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        return rows if self.after else rows[-self.rows :]

    def evict_after(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        return rows[-self.rows :] if self.after else rows


@dataclass(frozen=True)
class _Time(Evictor):
    span: timedelta
    after: bool

    def evict_before(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        return rows if self.after else self._recent(rows)

    def evict_after(self, rows: Sequence[TimedRow], window: TimeWindow) -> Sequence[TimedRow]:
        return self._recent(rows) if self.after else rows

    def _recent(self, rows: Sequence[TimedRow]) -> Sequence[TimedRow]:
        latest = max((row.timestamp for row in rows), default=None)
        return [row for row in rows if latest is None or row.timestamp > latest - self.span]


def count(rows: int, *, after: bool = False) -> Evictor:
    """Keep the last so many rows; with `after` they are dropped only behind the function."""
    if type(rows) is not int or rows < 1:
        raise BuildError(f"evictors.count takes a whole number of rows, 1 or more, not {rows!r}.")
    return _Count(rows, after)


def time(span: timedelta, *, after: bool = False) -> Evictor:
    """Keep rows younger than `span` before the latest one; with `after`, drop only behind the function."""
    to_us(span, "The span of evictors.time")
    return _Time(span, after)
