"""What all windows have: an assigner says which windows a row belongs to, and in which time.

In event time a row is judged by its timestamp and the watermark, in processing time by the clock of the epoch
that read it. The clock is part of the epoch's record, so a replay gives the same windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

from headrace.errors import BuildError

__all__ = ["Assigner", "Global", "TimeDomain", "TimeWindow", "WindowAssigner", "check_time"]

TimeDomain: TypeAlias = Literal["event", "processing"]


@dataclass(frozen=True, slots=True, order=True)
class TimeWindow:
    """One window `[start, end)`, as functions and triggers of the user's own see it."""

    start: datetime
    end: datetime


class Assigner(ABC):
    """How rows fall into windows. Immutable."""

    #: Rows carry `window_start` and `window_end`.
    timed: ClassVar[bool] = True
    #: Windows of one key may grow together.
    merging: ClassVar[bool] = False
    #: Rows must have timestamps.
    needs_event_time: ClassVar[bool] = True

    time: TimeDomain

    @abstractmethod
    def signature(self) -> dict[str, Any]:
        """What state depends on, as plain JSON."""


class WindowAssigner(Assigner):
    """Windows of the user's own. Derive from it, and give `assign`.

    `name` is what a checkpoint knows it by: change it when windows are cut in another way. With
    `time = "processing"` in the class the timestamp is the clock of the epoch.

        class Shifts(WindowAssigner):
            def assign(self, row, timestamp):
                start = timestamp.replace(hour=timestamp.hour // 8 * 8, minute=0, second=0, microsecond=0)
                yield start, start + timedelta(hours=8)
    """

    time: TimeDomain = "event"

    @abstractmethod
    def assign(self, row: Any, timestamp: datetime) -> Iterable[tuple[datetime, datetime]]:
        """The windows `(start, end)` of a row: aware datetimes, start before end. With none it goes to `late`."""

    @property
    def name(self) -> str:
        """The name of these windows in a checkpoint."""
        return type(self).__name__

    def signature(self) -> dict[str, Any]:
        """The name."""
        return {"kind": "custom", "name": self.name, "time": self.time}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Global(Assigner):
    """One window for all rows of a key. Without a trigger it fires once, when the input ends.

    >>> str(Global())
    'global'
    """

    timed: ClassVar[bool] = False
    needs_event_time: ClassVar[bool] = False
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        check_time(self.time)

    def signature(self) -> dict[str, Any]:
        """Nothing but the kind."""
        return {"kind": "global", "time": self.time}

    def __str__(self) -> str:
        return "global"


def check_time(time: object) -> None:
    """Refuse a time that there is not."""
    if time not in ("event", "processing"):
        raise BuildError(f'time={time!r} is not a time; choose "event" or "processing".')
