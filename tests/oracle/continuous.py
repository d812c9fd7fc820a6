"""Triggers that fire again and again while a window lives, as machines."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.testing.epochs import TimedRow
from tests.oracle.epochs import Span
from tests.oracle.machines import (
    FIRE,
    NOTHING,
    AtEnd,
    AtEndOnClock,
    Kind,
    Now,
    Verdict,
)

__all__ = ["Continuous", "ContinuousOnClock"]


class Continuous(AtEnd):
    """At every multiple of an interval of event time, and at the window's end. A jump fires once.

    W passes       10     20     30           interval 10, end 35
    in one tick    ----------------> 33       fires once, as of 30
    in one tick    -------------------> 40    fires once, as of 34: on time
    """

    def __init__(self, span: Span, every_us: int) -> None:
        super().__init__(span)
        self._every_us = every_us
        self.latest: int | None = None
        self.next: int | None = None

    def begin(self, now: Now) -> None:
        super().begin(now)
        self.next = None
        if self.latest is not None:
            self.next = _behind(max(self.latest, self._time(now)), self._every_us)

    def row(self, now: Now, row: TimedRow) -> Verdict:
        self.latest = row[0] if self.latest is None else max(self.latest, row[0])
        if self.next is None:
            self.next = _behind(max(row[0], self._time(now)), self._every_us)
        return super().row(now, row)

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        at_end = super().due(now)
        if at_end or not self._open or self.next is None or self.next > now.watermark:
            return at_end
        return {("event", now.watermark // self._every_us * self._every_us)}

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        self._open = time < self._end
        self.next = _behind(time, self._every_us)
        return FIRE

    def join(self, parts: Sequence[AtEnd], now: Now) -> None:
        super().join(parts, now)
        own = [part for part in parts if isinstance(part, Continuous)]
        self.latest = max((p.latest for p in own if p.latest is not None), default=None)
        ahead = [p.next for p in own if p.next is not None]
        self.next = max(min(ahead), _behind(now.event, self._every_us)) if ahead else None


class ContinuousOnClock(AtEndOnClock):
    """At every multiple of an interval of the clock while the window lives. A jump fires once.

    The end of a window in processing time is a time of the clock, so it fires there too.
    """

    def __init__(self, span: Span, every_us: int, *, ends: bool) -> None:
        super().__init__(span)
        self._every_us = every_us
        self._ends = ends
        self.next = 0

    def begin(self, now: Now) -> None:
        super().begin(now)
        self.next = _behind(now.clock, self._every_us)

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        at_end = super().due(now) if self._ends else set()
        if at_end or self.next > now.clock or (self._ends and not self._open):
            return at_end
        return {("processing", now.clock // self._every_us * self._every_us)}

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        self._open = time < self._end
        self.next = _behind(time, self._every_us)
        return FIRE

    def settle(self, now: Now, *, closing: bool) -> Verdict:
        return super().settle(now, closing=closing) if self._ends else NOTHING

    def join(self, parts: Sequence[AtEnd], now: Now) -> None:
        super().join(parts, now)
        ahead = min(p.next for p in parts if isinstance(p, ContinuousOnClock))
        self.next = max(ahead, _behind(now.clock, self._every_us))


def _behind(time: int, every_us: int) -> int:
    """The first multiple behind a time."""
    return (time // every_us + 1) * every_us
