"""Windows aligned to the calendar: size, slide and offset, checked when they are made.

A window covers `[start, end)`. Windows start at offset + k * slide for every integer k, so a row belongs to
`panes` windows and each window is made of `panes` panes of `pane_us` each:

    panes     |--p0--|--p1--|--p2--|--p3--|
    windows   [------w0-----)                    hopping
                     [------w1-----)
    windows   [--w0--)                           cumulating up to three panes
              [------w1-----)
              [---------w2---------)

Rows are folded into one pane, never copied once per window. With a time zone, days are those of the
calendar there: 23, 24 or 25 hours. Deliberately absent: state and firing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.windows.assigner import Assigner, TimeDomain, check_time

__all__ = ["Cumulating", "Hopping", "Tumbling", "Window", "windows_of"]

_DAY_US = 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class Window(Assigner):
    """How timestamps fall into aligned windows. Made by `Tumbling`, `Hopping` and `Cumulating`.

    `slide_us` is the length of a pane: the step of a cumulating window, the slide of a hopping one.
    """

    size_us: int
    slide_us: int
    offset_us: int = 0
    #: An IANA name; sizes are then whole days of that calendar.
    zone: str | None = None
    #: Windows share their start and grow by `slide_us` up to `size_us`.
    cumulating: bool = False
    time: TimeDomain = "event"

    @property
    def pane_us(self) -> int:
        """The length of a pane: the slide, because the size is a multiple of it."""
        return self.slide_us

    @property
    def panes(self) -> int:
        """How many panes make a window, and how many windows a row belongs to."""
        return self.size_us // self.slide_us

    def pane_start(self, ts_us: int) -> int:
        """The start of the pane that holds this timestamp; it is also the start of a window."""
        return ts_us - (ts_us - self.offset_us) % self.slide_us

    def signature(self) -> dict[str, Any]:
        """All of it."""
        signed: dict[str, Any] = {
            "size_us": self.size_us,
            "slide_us": self.slide_us,
            "offset_us": self.offset_us,
            "zone": self.zone,
            "time": self.time,
        }
        return {"kind": "cumulating" if self.cumulating else "aligned", **signed}

    def __str__(self) -> str:
        size, slide = (timedelta(microseconds=us) for us in (self.size_us, self.slide_us))
        shift = f", offset {timedelta(microseconds=self.offset_us)}" if self.offset_us else ""
        place = f" in {self.zone}" if self.zone else ""
        if self.cumulating:
            return f"cumulating up to {size} by {slide}{shift}{place}"
        if self.panes == 1:
            return f"tumbling {size}{shift}{place}"
        return f"hopping {size} every {slide}{shift}{place}"


def Tumbling(  # noqa: N802 - a noun of the vocabulary
    size: timedelta,
    offset: timedelta = timedelta(0),
    *,
    zone: str | None = None,
    time: TimeDomain = "event",
) -> Window:
    """Windows side by side: every timestamp is in exactly one.

    They are aligned to 1970-01-01 00:00 UTC plus `offset`, which may be negative. With `zone`, an IANA name
    such as "Europe/Berlin", the size is a number of days and windows begin at midnight there, also where
    the clocks change.

    >>> Tumbling(timedelta(seconds=10)).size_us
    10000000
    """
    size_us = to_us(size, "The size of a tumbling window")
    return _made(size_us, size_us, offset, zone, time, "size")


def Hopping(  # noqa: N802 - a noun of the vocabulary
    size: timedelta,
    slide: timedelta,
    *,
    offset: timedelta = timedelta(0),
    zone: str | None = None,
    time: TimeDomain = "event",
) -> Window:
    """Windows of `size` that begin every `slide`: a timestamp is in `size / slide` of them.

    The size must be a multiple of the slide. State and work grow with the panes, not with the overlap.
    With `zone` the slide is a number of days.

    >>> Hopping(timedelta(minutes=1), timedelta(seconds=10)).panes
    6
    """
    size_us = to_us(size, "The size of a hopping window")
    slide_us = to_us(slide, "The slide of a hopping window")
    if slide_us > size_us:
        raise BuildError(
            f"The slide ({slide}) is longer than the size ({size}), so rows between two windows would"
            " be lost; make the slide at most the size."
        )
    _require_multiple(size_us, slide_us, "slide")
    return _made(size_us, slide_us, offset, zone, time, "slide")


def Cumulating(  # noqa: N802 - a noun of the vocabulary
    size: timedelta,
    step: timedelta,
    *,
    offset: timedelta = timedelta(0),
    zone: str | None = None,
    time: TimeDomain = "event",
) -> Window:
    """Windows that share their start and grow by `step` up to `size`: the day's total every hour.

    Each fires when time passes its end. With `zone` the size is one day of the calendar there, and the last
    window of a day ends with it, after 23, 24 or 25 hours.

    >>> str(Cumulating(timedelta(days=1), timedelta(hours=1)))
    'cumulating up to 1 day, 0:00:00 by 1:00:00'
    """
    size_us = to_us(size, "The size of a cumulating window")
    step_us = to_us(step, "The step of a cumulating window")
    if step_us > size_us:
        raise BuildError(f"The step ({step}) is longer than the size ({size}).")
    _require_multiple(size_us, step_us, "step")
    if zone is not None and size_us != _DAY_US:
        raise BuildError(
            f"A cumulating window with a time zone grows over one day, not over {size}."
        )
    check_time(time)
    _check_zone(zone)
    return Window(size_us, step_us, _offset_us(offset, size_us), zone, True, time)


def _made(
    size_us: int, slide_us: int, offset: timedelta, zone: str | None, time: TimeDomain, what: str
) -> Window:
    check_time(time)
    _check_zone(zone)
    if zone is not None and slide_us % _DAY_US:
        raise BuildError(
            f"With a time zone the {what} of a window is a number of whole days, not"
            f" {timedelta(microseconds=slide_us)}; shorter windows do not depend on the zone's days: use"
            " offset= instead."
        )
    return Window(size_us, slide_us, _offset_us(offset, slide_us), zone, False, time)


def _require_multiple(size_us: int, slide_us: int, what: str) -> None:
    if size_us % slide_us:
        smaller = size_us // slide_us * slide_us
        size, slide, below, above = (
            timedelta(microseconds=us) for us in (size_us, slide_us, smaller, smaller + slide_us)
        )
        raise BuildError(
            f"The size ({size}) is not a multiple of the {what} ({slide}); the nearest sizes that fit"
            f" this {what} are {below} and {above}."
        )


def _check_zone(zone: str | None) -> None:
    if zone is None:
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError):
        raise BuildError(
            f'zone={zone!r} is not a time zone that is known here; write an IANA name such as "Europe/Berlin".'
        ) from None


def windows_of(window: Window, ts_us: int) -> list[tuple[int, int]]:
    """The windows `[start, end)` that hold a timestamp, earliest first.

    >>> windows_of(Window(size_us=4, slide_us=2), 5)
    [(2, 6), (4, 8)]
    """
    last = window.pane_start(ts_us)
    starts = range(last - window.size_us + window.slide_us, last + 1, window.slide_us)
    return [(start, start + window.size_us) for start in starts]


def _offset_us(offset: timedelta, slide_us: int) -> int:
    # Offsets that differ by whole slides are the same windows; keep the one in [0, slide).
    if not isinstance(offset, timedelta):
        raise BuildError(
            f"The offset of a window must be a datetime.timedelta, not {offset!r}"
            f" ({type(offset).__name__})."
        )
    return offset // timedelta(microseconds=1) % slide_us
