"""Early, on time, late: the trigger of Beam's `AfterWatermark` as a machine.

early(every=5).late(each=True), window [0, 20), W in a line; r: a row came since the last firing

W    0....5....10...15...|20
     r    E    .    E    T  r  L       E early, only what changed; T on time, always; L late, in settle
                  r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headrace.testing.epochs import TimedRow
from tests.oracle.epochs import Span
from tests.oracle.machines import NOTHING, Kind, Machine, Now, Verdict

__all__ = ["EarlyLate", "Often"]


@dataclass(frozen=True)
class Often:
    """How often: at multiples of a time, every so many rows, or (neither) once an epoch."""

    every_us: int | None = None
    rows: int | None = None
    time: Kind = "processing"


Phase = Literal["early", "late"]


class EarlyLate(Machine):
    """The part before the end may be missing (None); the part behind it is there."""

    def __init__(self, span: Span, early: Often | None, late: Often) -> None:
        super().__init__(span)
        self._early = early
        self._late = late
        self._open = False
        self.seen = 0
        self.since: Now | None = None

    def begin(self, now: Now) -> None:
        self._open = now.event < self.last
        self._shown()

    def row(self, now: Now, row: TimedRow) -> Verdict:
        self.seen += 1
        self.since = self.since or now
        often = self._early if now.event < self.last else self._late
        if often is None or often.rows is None or self.seen < often.rows:
            return NOTHING
        return self._shown()

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        if self._open and self.last <= now.watermark:
            return {("event", self.last)}
        often = self._early if self._open else self._late
        if self.since is None or often is None or often.every_us is None:
            return set()
        since, reached = self.since.event, now.watermark
        if often.time == "processing":
            since, reached = self.since.clock, now.clock
        multiple = reached // often.every_us * often.every_us
        return {(often.time, multiple)} if multiple > since else set()

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        if kind == "event" and time == self.last:
            self._open = False
        return self._shown()

    def settle(self, now: Now, *, closing: bool) -> Verdict:
        each = self._late.every_us is None and self._late.rows is None
        if self._open or self.since is None or not (each or closing):
            return NOTHING
        return self._shown()

    def join(self, parts: Sequence[EarlyLate], now: Now) -> None:
        self.begin(now)
        changed = [part.since for part in parts if part.since is not None]
        self.since = min(changed, default=None)
        self.seen = sum(part.seen for part in parts)

    def _shown(self) -> Verdict:
        self.seen, self.since = 0, None
        return Verdict(True)
