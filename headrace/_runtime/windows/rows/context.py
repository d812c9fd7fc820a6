"""What triggers see: the window that is being looked at, its times, its timers and what they remember of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace._runtime.windows.rows.values import Namespace
from headrace.triggers.builtin import NONE
from headrace.watermarks import NO_WATERMARK
from headrace.windows.assigner import TimeWindow

__all__ = ["Context", "Now", "instant", "micros", "shown_watermark", "time_window"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def instant(us: int) -> datetime:
    """Microseconds as users see them; what no datetime can hold is the first or the last there is."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return _FIRST if us < 0 else _LAST


def micros(moment: Any) -> int:
    """A datetime as microseconds; without a zone it is refused."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise TypeError(f"a datetime with a time zone is needed, not {moment!r}")
    return (moment - _EPOCH) // _MICROSECOND


def time_window(start: int, last: int) -> TimeWindow:
    """A window as users see it; `last` is its last microsecond."""
    return TimeWindow(instant(start), instant(last + 1))


def shown_watermark(watermark: int) -> datetime | None:
    """A watermark as users see it."""
    return None if watermark == NO_WATERMARK else instant(watermark)


class Now:
    """The moment and the window that all contexts of a trigger look at."""

    __slots__ = (
        "clock_us",
        "due",
        "end_us",
        "ends_on_clock",
        "event_us",
        "start_us",
        "time_us",
        "timestamp_us",
        "values",
        "watermark_us",
    )

    def __init__(self, ends_on_clock: bool) -> None:
        self.ends_on_clock = ends_on_clock
        self.watermark_us = self.event_us = NO_WATERMARK
        self.clock_us = self.time_us = self.timestamp_us = 0
        self.start_us = self.end_us = 0
        self.values: list[Any] = []
        self.due: set[int] = set()

    @property
    def window(self) -> TimeWindow:
        """The window, for users."""
        return time_window(self.start_us, self.end_us - 1)

    @property
    def time(self) -> datetime:
        """The time of the timer, for users."""
        return instant(self.time_us)


class Context:
    """The part of a window's values that one trigger of the tree may see."""

    __slots__ = (
        "_initial",
        "_kinds",
        "_now",
        "_place",
        "_stop",
        "merged",
        "parts",
        "state",
        "timers",
    )

    def __init__(self, now: Now, place: int, state: Namespace | None = None) -> None:
        self._now = now
        self._place = place
        self._stop = place
        self._kinds: list[str] = []
        self._initial: list[Any] = []
        self.state: Any = state
        self.parts: Sequence[Context] = ()
        #: The values of the windows that are being merged.
        self.merged: Sequence[list[Any]] = ()
        #: The place of a user's timers.
        self.timers = 0

    def close(self, kinds: Sequence[str], initial: Sequence[Any]) -> None:
        """All places of this trigger and of its parts are known."""
        self._stop = len(kinds)
        self._kinds = list(kinds[self._place :])
        self._initial = list(initial[self._place :])

    # For built-in triggers

    @property
    def watermark_us(self) -> int:
        return self._now.watermark_us

    @property
    def clock_us(self) -> int:
        return self._now.clock_us

    @property
    def event_us(self) -> int:
        return self._now.event_us

    @property
    def time_us(self) -> int:
        return self._now.time_us

    @property
    def timestamp_us(self) -> int:
        return self._now.timestamp_us

    @property
    def end_us(self) -> int:
        return self._now.end_us

    @property
    def ends_on_clock(self) -> bool:
        return self._now.ends_on_clock

    def get(self, slot: int) -> Any:
        return self._now.values[self._place + slot]

    def set(self, slot: int, value: int) -> None:
        self._now.values[self._place + slot] = value

    def of_parts(self, slot: int) -> Sequence[int]:
        return [values[self._place + slot] for values in self.merged]

    def pick(self, chosen: Sequence[int]) -> None:
        self.merged = [self.merged[number] for number in chosen]
        for part in self.parts:
            part.pick(chosen)

    def is_due(self) -> bool:
        return any(self._place <= place < self._stop for place in self._now.due)

    def reset(self) -> None:
        self._now.values[self._place : self._stop] = self._initial

    def disarm(self) -> None:
        values = self._now.values
        for place, kind in enumerate(self._kinds, self._place):
            if kind in ("event", "clock"):
                values[place] = NONE
            elif kind in ("events", "clocks"):
                values[place] = None

    def adopt(self) -> None:
        """The state of the first of the windows that are merged; timers are set anew."""
        first = self.merged[0]
        self._now.values[self._place : self.timers] = first[self._place : self.timers]

    # For triggers of users

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the step; None before the first."""
        return shown_watermark(self._now.watermark_us)

    @property
    def clock(self) -> datetime:
        """The clock of the epoch."""
        return instant(self._now.clock_us)

    def register_event_time_timer(self, time: datetime) -> None:
        """Call `on_event_time` when the watermark reaches `time`."""
        self._add(self.timers, time)

    def register_processing_time_timer(self, time: datetime) -> None:
        """Call `on_processing_time` when the clock reaches `time`."""
        self._add(self.timers + 1, time)

    def delete_event_time_timer(self, time: datetime) -> None:
        """Forget such a timer."""
        self._drop(self.timers, time)

    def delete_processing_time_timer(self, time: datetime) -> None:
        """Forget such a timer."""
        self._drop(self.timers + 1, time)

    def _add(self, place: int, time: datetime) -> None:
        values = self._now.values
        if values[place] is None:
            values[place] = set()
        values[place].add(micros(time))

    def _drop(self, place: int, time: datetime) -> None:
        times = self._now.values[place]
        if times is not None:
            times.discard(micros(time))
