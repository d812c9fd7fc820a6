"""Times as oracles count them: microseconds since 1970, spans of them, and the datetimes that users see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

__all__ = ["Span", "Times", "instant", "micros"]

#: A window, [start, end).
Span = tuple[int, int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


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
