"""Triggers as little machines, one for each window of each key: when does it fire?

    begin     the window has its first row, or a composition starts the machine anew
    row       a row came in
    due       which of its timers have been passed
    timer     one of them is done
    settle    the epoch is over, or the window closes: does something wait to be shown?
    join      several windows became one

A machine says FIRE or not; whether there is anything to show is not its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from headrace.testing.epochs import TimedRow
from headrace.watermarks import END_OF_TIME
from tests.oracle.epochs import Span

__all__ = [
    "FIRE",
    "NOTHING",
    "AtEnd",
    "AtEndOfInput",
    "AtEndOnClock",
    "CountRows",
    "Kind",
    "Machine",
    "Never",
    "Now",
    "Verdict",
]

Kind = Literal["event", "processing"]


class Verdict(NamedTuple):
    """What a machine wants."""

    fire: bool
    purge: bool = False


NOTHING = Verdict(False)
FIRE = Verdict(True)


class Now(NamedTuple):
    """The times of this moment. `event` is the watermark, or the time of the timer that is being done."""

    watermark: int
    clock: int
    event: int


class Machine:
    """The state of a trigger for one window."""

    finished = False

    def __init__(self, span: Span) -> None:
        self.last = span[1] - 1

    def begin(self, now: Now) -> None:
        """From the start."""

    def row(self, now: Now, row: TimedRow) -> Verdict:
        """A row is in the window."""
        return NOTHING

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        """Timers that the watermark or the clock has reached."""
        return set()

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        """A timer that is due."""
        return NOTHING

    def settle(self, now: Now, *, closing: bool) -> Verdict:
        """Behind all rows."""
        return NOTHING

    def join(self, parts: Sequence[Any], now: Now) -> None:
        """Continue what these began."""

    def clear(self) -> None:
        """The window is over."""


class Never(Machine):
    """Nothing makes it fire."""


class CountRows(Machine):
    """Every so many rows."""

    def __init__(self, span: Span, rows: int) -> None:
        super().__init__(span)
        self._wanted = rows
        self.seen = 0

    def begin(self, now: Now) -> None:
        self.seen = 0

    def row(self, now: Now, row: TimedRow) -> Verdict:
        self.seen += 1
        if self.seen < self._wanted:
            return NOTHING
        self.seen = 0
        return FIRE

    def join(self, parts: Sequence[CountRows], now: Now) -> None:
        self.seen = sum(part.seen for part in parts)


class AtEnd(Machine):
    """At the window's last microsecond; what comes behind it is shown when the epoch settles."""

    kind: Kind = "event"

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._end = self.last
        self._open = False
        self.waits = False

    def _time(self, now: Now) -> int:
        return now.event

    def begin(self, now: Now) -> None:
        self._open = self._time(now) < self._end
        self.waits = False

    def row(self, now: Now, row: TimedRow) -> Verdict:
        self.waits = self.waits or self._time(now) >= self._end
        return NOTHING

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        reached = now.watermark if self.kind == "event" else now.clock
        return {(self.kind, self._end)} if self._open and self._end <= reached else set()

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        self._open = False
        return FIRE

    def settle(self, now: Now, *, closing: bool) -> Verdict:
        behind, self.waits = self.waits, False
        return Verdict(behind)

    def join(self, parts: Sequence[AtEnd], now: Now) -> None:
        self.begin(now)
        self.waits = not self._open and any(part.waits for part in parts)


class AtEndOnClock(AtEnd):
    """The same by the clock: when it shows the window's end."""

    kind = "processing"

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._end = span[1]

    def _time(self, now: Now) -> int:
        return now.clock


class AtEndOfInput(AtEnd):
    """When no more rows can come."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._end = END_OF_TIME
