"""Makes aligned windows: tumbling, hopping and cumulating, their numbers checked on the line that wrote them.

What they are once made is in `grid`.
"""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.windows.assigner import TimeDomain, check_time
from headrace.windows.grid import Window

__all__ = ["Cumulating", "Hopping", "Tumbling"]

_DAY_US = 24 * 3600 * 1_000_000
#: Beyond this a window would cover all the years that there are.
_LONGEST = timedelta(days=3_652_060)


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
    """Windows of `size` that begin every `slide`: a timestamp is in about `size / slide` of them.

    State and work grow with the panes, not with the overlap. A pane is the slide if the size is a multiple of it,
    else their greatest common divisor: 10 s by 4 s is made of panes of 2 s. With `zone` the slide is a number
    of days.

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

    Each fires when time passes its end. With `zone` the size is one day of the calendar there, and windows end
    by its clock: the last one of a day ends with it, after 23, 24 or 25 hours, and an hour that the clock leaves out
    or shows twice belongs to one window.

    >>> str(Cumulating(timedelta(days=1), timedelta(hours=1)))
    'cumulating up to 1 day, 0:00:00 by 1:00:00'
    """
    size_us = to_us(size, "The size of a cumulating window")
    step_us = to_us(step, "The step of a cumulating window")
    if step_us > size_us:
        raise BuildError(f"The step ({step}) is longer than the size ({size}).")
    _require_multiple(size_us, step_us)
    _check_length(size_us)
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
    _check_length(size_us)
    if zone is not None and slide_us % _DAY_US:
        raise BuildError(
            f"With a time zone the {what} of a window is a number of whole days, not"
            f" {timedelta(microseconds=slide_us)}; shorter windows do not depend on the zone's days: use"
            " offset= instead."
        )
    return Window(size_us, slide_us, _offset_us(offset, slide_us), zone, False, time)


def _require_multiple(size_us: int, step_us: int) -> None:
    if size_us % step_us:
        smaller = size_us // step_us * step_us
        size, step, below, above = (
            timedelta(microseconds=us) for us in (size_us, step_us, smaller, smaller + step_us)
        )
        raise BuildError(
            f"The size ({size}) is not a multiple of the step ({step}); the nearest sizes that fit"
            f" this step are {below} and {above}."
        )


def _check_length(size_us: int) -> None:
    if (size := timedelta(microseconds=size_us)) > _LONGEST:
        raise BuildError(
            f"A window of {size.days} days is longer than all the years that a timestamp can be in;"
            " windows.Global() is one window for everything."
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


def _offset_us(offset: timedelta, slide_us: int) -> int:
    # Offsets that differ by whole slides are the same windows; keep the one in [0, slide).
    if not isinstance(offset, timedelta):
        raise BuildError(
            f"The offset of a window must be a datetime.timedelta, not {offset!r}"
            f" ({type(offset).__name__})."
        )
    return offset // timedelta(microseconds=1) % slide_us
