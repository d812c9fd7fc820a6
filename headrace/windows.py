"""Event-time windows as values: size, slide and offset, checked when they are made.

A window covers `[start, end)`. Windows start at offset + k * slide for every integer k, so a row belongs to
`panes` windows and each window is made of `panes` panes of `pane_us` each:

    panes     |--p0--|--p1--|--p2--|--p3--|
    windows   [------w0-----)
                     [------w1-----)
                            [------w2-----)

Rows are folded into one pane, never copied once per window. Deliberately absent: state and firing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.config import to_us
from headrace.errors import BuildError

__all__ = ["Hopping", "Tumbling", "Window", "windows_of"]


@dataclass(frozen=True, slots=True)
class Window:
    """How timestamps fall into windows. Made by `Tumbling` and `Hopping`, which check the numbers."""

    size_us: int
    slide_us: int
    offset_us: int = 0

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

    def __str__(self) -> str:
        size = timedelta(microseconds=self.size_us)
        shift = f", offset {timedelta(microseconds=self.offset_us)}" if self.offset_us else ""
        if self.panes == 1:
            return f"tumbling {size}{shift}"
        return f"hopping {size} every {timedelta(microseconds=self.slide_us)}{shift}"


def Tumbling(size: timedelta, offset: timedelta = timedelta(0)) -> Window:  # noqa: N802 - a noun of the vocabulary
    """Windows side by side: every timestamp is in exactly one.

    They are aligned to 1970-01-01 00:00 UTC plus `offset`, which may be negative: days in New York's
    winter are `Tumbling(timedelta(days=1), offset=timedelta(hours=5))`.

    >>> Tumbling(timedelta(seconds=10)).size_us
    10000000
    """
    size_us = to_us(size, "The size of a tumbling window")
    return Window(size_us, size_us, _offset_us(offset, size_us))


def Hopping(size: timedelta, slide: timedelta, *, offset: timedelta = timedelta(0)) -> Window:  # noqa: N802 - a noun of the vocabulary
    """Windows of `size` that begin every `slide`: a timestamp is in `size / slide` of them.

    The size must be a multiple of the slide. State and work grow with the panes, not with the overlap.

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
    if size_us % slide_us:
        smaller = size_us // slide_us * slide_us
        raise BuildError(
            f"The size ({size}) is not a multiple of the slide ({slide}); the nearest sizes that fit"
            f" this slide are {timedelta(microseconds=smaller)} and"
            f" {timedelta(microseconds=smaller + slide_us)}."
        )
    return Window(size_us, slide_us, _offset_us(offset, slide_us))


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
