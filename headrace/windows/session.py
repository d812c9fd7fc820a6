"""Sessions: windows that last as long as rows keep coming, and end when none came for a gap.

    rows        .  . .        .   .
    sessions    [-----gap)    [----gap)

Each row covers `[timestamp, timestamp + gap)`; what overlaps or touches is one session. Rows that come late may
join two sessions into one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, TypeAlias

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.expressions import Expression
from headrace.windows.assigner import Assigner, TimeDomain, check_time

__all__ = ["Gap", "Session"]

#: The gap of each row: a column of durations, an expression, or a function from a row to a timedelta.
Gap: TypeAlias = str | Expression | Callable[[Any], timedelta]


@dataclass(frozen=True, init=False)
class Session(Assigner):
    """Sessions with the same gap for all rows; `Session.dynamic` has one for each.

    >>> str(Session(timedelta(minutes=30)))
    'session with a gap of 0:30:00'
    """

    merging: ClassVar[bool] = True

    #: None if each row has its own.
    gap_us: int | None
    gap: Gap | None
    time: TimeDomain

    def __init__(self, gap: timedelta, *, time: TimeDomain = "event") -> None:
        self._set(to_us(gap, "The gap of a session"), None, time)

    @classmethod
    def dynamic(cls, gap: Gap, *, time: TimeDomain = "event") -> Session:
        """Sessions in which each row says how long it keeps its session open.

        A gap that is null, zero or negative makes the row a dead letter.
        """
        if not isinstance(gap, str | Expression) and not callable(gap):
            raise BuildError(
                "Session.dynamic takes a column's name, an expression or a function of the row,"
                f" not {gap!r}; for one gap for all rows write Session(timedelta(...))."
            )
        session = cls.__new__(cls)
        session._set(None, gap, time)  # noqa: SLF001 - of this class
        return session

    def _set(self, gap_us: int | None, gap: Gap | None, time: TimeDomain) -> None:
        check_time(time)
        for name, value in (("gap_us", gap_us), ("gap", gap), ("time", time)):
            object.__setattr__(self, name, value)

    def signature(self) -> dict[str, Any]:
        """The gap; one that each row has is nobody's to compare."""
        gap = self.gap_us if self.gap_us is not None else "of each row"
        return {"kind": "session", "gap_us": gap, "time": self.time}

    def __str__(self) -> str:
        if self.gap_us is None:
            return "session with a gap of each row"
        return f"session with a gap of {timedelta(microseconds=self.gap_us)}"
