"""The wall clock of a time zone: what it shows at an instant, and when it first shows a time.

Berlin, 26 October 2025        Berlin, 30 March 2025
... 02:00 ... 02:59 |          ... 01:59 |
    02:00 ... 02:59 | 03:00              | 03:00 ...
02:30 is first shown here      02:30 is never shown: its instant is the jump
(and once more an hour later)
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.oracle.epochs import instant, micros

__all__ = ["first_shown", "shown"]

_WALL = datetime(1970, 1, 1)
_HOUR_US = 3_600_000_000


def shown(zone: str, us: int) -> int:
    """What the clock shows, as microseconds since 1970-01-01 00:00 on the wall."""
    wall = instant(us).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return (wall - _WALL) // timedelta(microseconds=1)


def first_shown(zone: str, wall_us: int) -> int:
    """The first instant at which the clock shows this time or a later one."""
    wall = _WALL + timedelta(microseconds=wall_us)
    candidate = micros(wall.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC))
    if shown(zone, candidate) == wall_us:
        return candidate
    # Skipped: between the last instant that shows less and the first that shows more.
    low, high = candidate - 24 * _HOUR_US, candidate
    while high - low > 1:
        middle = (low + high) // 2
        if shown(zone, middle) >= wall_us:
            high = middle
        else:
            low = middle
    return high
