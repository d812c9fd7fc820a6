"""The windows and triggers of random pipelines, by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.triggers import Trigger
from headrace.windows import Assigner, Count, Cumulating, Global, Hopping, LookBack, Session

__all__ = ["IN_ORDER", "TRIGGERS", "UNTIMED", "WINDOWS"]

SECOND = timedelta(seconds=1)


def _count(size: timedelta, slide: timedelta, offset: timedelta, time: Any) -> Assigner:
    return Count(slide // SECOND, time=time)


def _sliding(size: timedelta, slide: timedelta, offset: timedelta, time: Any) -> Assigner:
    return Count(size // SECOND, slide // SECOND, time=time)


#: kind -> (size, slide, offset, time) -> the window
WINDOWS: dict[str, Callable[[timedelta, timedelta, timedelta, Any], Assigner]] = {
    "hopping": lambda size, slide, offset, time: Hopping(size, slide, offset=offset, time=time),
    "cumulating": lambda size, step, offset, time: Cumulating(size, step, offset=offset, time=time),
    "session": lambda *said: Session(said[1], time=said[3]),
    "look_back": lambda *said: LookBack(said[0], time=said[3]),
    "global": lambda *said: Global(time=said[3]),
    "count": _count,
    "sliding": _sliding,
}
UNTIMED = ("look_back", "global", "count", "sliding")

TRIGGERS: dict[str, Callable[[], Trigger]] = {
    "early": lambda: hr.triggers.early(every=2 * SECOND),
    "early event": lambda: hr.triggers.early(every=5 * SECOND, time="event").late(each=True),
    "late every": lambda: hr.triggers.early(every=3 * SECOND).late(every=2 * SECOND),
    "continuous": lambda: hr.triggers.continuous_event_time(4 * SECOND),
    "by clock": lambda: hr.triggers.continuous_processing_time(3 * SECOND),
    "purging": lambda: hr.triggers.purging(hr.triggers.event_time()),
    "count": lambda: hr.triggers.count(3),
    "any": lambda: hr.triggers.any_of(hr.triggers.count(2), hr.triggers.event_time()),
    "finally": lambda: hr.triggers.count(2).or_finally(hr.triggers.event_time()),
}
#: What comes out depends on the order of rows, which is known within one partition only.
IN_ORDER = ("count", "sliding", "any", "finally")
