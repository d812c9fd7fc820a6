"""What an oracle is given: epochs with their times, their rows, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

__all__ = ["OracleEpoch", "SidedRow", "Span", "TimedRow", "Times", "instant", "micros"]

#: A row and its timestamp, in microseconds since 1970.
TimedRow = tuple[int, Mapping[str, Any]]
#: A window, [start, end).
Span = tuple[int, int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


class SidedRow(NamedTuple):
    """A row of a step with two inputs, or one whose place decides between rows of one timestamp."""

    at: int
    fields: Mapping[str, Any]
    #: Which input it is of.
    side: int = 0
    #: Source, partition and offset.
    place: tuple[str, str, int] = ("", "", 0)


class OracleEpoch(NamedTuple):
    """One epoch: the watermark before it, the one in it, its rows in order of arrival, and its clock.

    `early` rows come before the tick: a step behind another one gets what that one fired because of it.
    Rows are `TimedRow`s, or `SidedRow`s for a process function.
    """

    before: int
    watermark: int
    rows: Sequence[Any] = ()
    early: Sequence[Any] = ()
    clock_before: int = 0
    clock: int = 0


class Times(NamedTuple):
    """The two times by which something is judged."""

    watermark: int
    clock: int


def instant(us: int) -> datetime:
    """Microseconds as users see them; what no datetime can hold is the first or the last there is."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return _FIRST if us < 0 else _LAST


def micros(moment: datetime) -> int:
    """A datetime as microseconds."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
