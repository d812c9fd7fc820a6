"""Windows aligned to the calendar as a grid: which pane holds a timestamp, which windows hold a pane.

A window covers `[start, end)`. Rows are folded into one pane, never copied once per window, and a window is made
of the panes between its start and its end:

    panes     |--p0--|--p1--|--p2--|--p3--|
    windows   [------w0-----)                    hopping: starts are offset + k * slide, a pane is the
                     [------w1-----)             greatest common divisor of size and slide
    windows   [--w0--)                           cumulating: all begin where the biggest does,
              [------w1-----)                    a pane is the step
              [---------w2---------)

The grid is drawn on the wall: without a zone that is time itself, with one it is what the clock there shows (`wall`).
Panes are known by their start and windows by their end, both on the wall, and only `span` says at which instants a
window begins and ends. So a day may have 23 or 25 hours, and arithmetic stays that of a clock that never jumps.
Deliberately absent: state and firing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.watermarks import END_OF_TIME
from headrace.windows.assigner import Assigner, TimeDomain
from headrace.windows.wall import Wall, wall_of

__all__ = ["Window", "windows_of"]

Integers = npt.NDArray[np.int64]

#: Timestamps further from 1970 count as this far: 146,000 years.
_FAR = 2**62


@dataclass(frozen=True)
class Window(Assigner):
    """How timestamps fall into aligned windows. Made by `Tumbling`, `Hopping` and `Cumulating`."""

    size_us: int
    #: From the start of a window to the next; the step of a cumulating one.
    slide_us: int
    offset_us: int = 0
    #: An IANA name; windows begin and end by the clock there.
    zone: str | None = None
    #: Windows share their start and grow by `slide_us` up to `size_us`.
    cumulating: bool = False
    time: TimeDomain = "event"

    @property
    def pane_us(self) -> int:
        """The length of a pane, on the wall."""
        return gcd(self.size_us, self.slide_us)

    @property
    def panes(self) -> int:
        """How many panes make the biggest window."""
        return self.size_us // self.pane_us

    @property
    def _wall(self) -> Wall | None:
        # Not kept: a window travels to workers.
        return None if self.zone is None else wall_of(self.zone)

    # Panes

    def pane_start(self, ts_us: int) -> int:
        """The start of the pane that holds a timestamp."""
        return self._floor(self._shown(ts_us), self.pane_us)

    def pane_starts(self, timestamps: Integers) -> Integers:
        """The start of the pane of each timestamp."""
        if not len(timestamps):
            return timestamps
        ends = int(timestamps.min()), int(timestamps.max())
        first, last = map(self.pane_start, ends)
        if first == last:
            return np.full(len(timestamps), min(max(first, -_FAR), _FAR))
        if ends[0] < -_FAR or ends[1] > _FAR:
            timestamps = np.clip(timestamps, -_FAR, _FAR)
        walls = timestamps if self._wall is None else self._wall.shown(timestamps)
        starts = (walls - self.offset_us if self.offset_us else walls) // self.pane_us
        starts *= self.pane_us
        if self.offset_us:
            starts += self.offset_us
        return starts

    def first_open(self, passed: int) -> int:
        """The first pane with a window that ends behind `passed`; those before it are done with."""
        if self.cumulating:
            return min(self._floor(passed, self.size_us), END_OF_TIME)
        return min(self._floor(passed - self.size_us, self.slide_us) + self.slide_us, END_OF_TIME)

    def first_apart(self, passed: int) -> int:
        """The first pane that some window leaves out, of those that end behind `passed`. Cumulating only."""
        return min(self._floor(passed, self.pane_us) + self.pane_us, END_OF_TIME)

    # Windows

    def passed(self, watermark: int) -> int:
        """At this watermark a window has reached its last microsecond if its end is not behind this."""
        return self._shown(watermark + 1)

    def ends_of(self, pane: int, after: int, until: int) -> list[int]:
        """The ends of the windows that hold a pane, of those behind `after` and not behind `until`."""
        smallest = max(self._first_end(pane), self._first_end(after))
        ends = range(smallest, min(self.last_end(pane), until) + 1, self.slide_us)
        return list(ends) if self._wall is None else self._told_apart(ends)

    def next_end(self, pane: int, after: int) -> int | None:
        """The end of the first window that holds a pane and ends behind `after`."""
        end = max(self._first_end(pane), self._first_end(after))
        return end if end <= self.last_end(pane) else None

    def last_end(self, pane: int) -> int:
        """The end of the last window that holds a pane."""
        return self._floor(pane, self.size_us if self.cumulating else self.slide_us) + self.size_us

    def start_of(self, end: int) -> int:
        """The first pane of a window."""
        return self._floor(end - 1, self.size_us) if self.cumulating else end - self.size_us

    def span(self, end: int) -> tuple[int, int]:
        """The instants at which a window begins and ends."""
        start = self.start_of(end)
        if self._wall is None:
            return start, end
        return self._wall.first_shown_at(start), self._wall.first_shown_at(end)

    # The grid

    def _shown(self, instant: int) -> int:
        return instant if self._wall is None else self._wall.shown_at(instant)

    def _floor(self, wall: int, step_us: int) -> int:
        return wall - (wall - self.offset_us) % step_us

    def _first_end(self, pane: int) -> int:
        """The first end on the grid behind a time; of a pane, that of the first window that holds it."""
        # With sizes that are no multiple of the slide, ends lie on another grid than starts.
        return self._floor(pane - self.size_us, self.slide_us) + self.slide_us + self.size_us

    def _told_apart(self, ends: range) -> list[int]:
        """Where the clock jumps, growing windows may end at one instant: they are one, known by the last end."""
        if not self.cumulating or len(ends) == 0:
            return list(ends)
        assert self._wall is not None
        at = self._wall.first_shown(np.array([*ends, ends[-1] + self.slide_us], np.int64))
        last_of_day = self.last_end(ends[-1] - 1)
        return [e for i, e in enumerate(ends) if e == last_of_day or at[i] != at[i + 1]]

    # What it is

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
        if self.size_us == self.slide_us:
            return f"tumbling {size}{shift}{place}"
        return f"hopping {size} every {slide}{shift}{place}"


def windows_of(window: Window, ts_us: int) -> list[tuple[int, int]]:
    """The windows `[start, end)` that hold a timestamp, earliest first, as instants.

    >>> windows_of(Window(size_us=4, slide_us=2), 5)
    [(2, 6), (4, 8)]
    """
    pane = window.pane_start(ts_us)
    return [window.span(end) for end in window.ends_of(pane, pane, window.last_end(pane))]
