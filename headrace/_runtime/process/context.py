"""What a process function is told: the key, the time, timers, other outputs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.timing.alarms import Alarms
from headrace._runtime.process.touched import Touched
from headrace.errors import UserCodeError
from headrace.watermarks import NO_WATERMARK

__all__ = ["Context", "TimerService", "instant", "micros"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_DAY_SECONDS = 86_400

#: What users of Flink look for, and where it is.
_ELSEWHERE = {
    "timer_service": "timers are ctx.timers, for example ctx.timers.register_event_time(instant)",
    "get_current_key": "the key is ctx.key",
    "get_broadcast_state": "broadcast state is declared on the class, rules: hr.state.Broadcast[K, V], and is self.rules",
    "get_state": "state is declared on the class, n: hr.state.Value[int], or asked for in open",
    "register_event_time_timer": "it is register_event_time(instant)",
    "register_processing_time_timer": "it is register_processing_time(instant)",
    "delete_event_time_timer": "it is delete_event_time(instant)",
    "delete_processing_time_timer": "it is delete_processing_time(instant)",
    "current_watermark": "the watermark is ctx.watermark",
    "current_processing_time": "the clock is ctx.clock",
}


class TimerService:
    """Timers of the key at hand. Those of one key and instant are one; in `on_timer` they can be set too."""

    __slots__ = ("_at", "_clock", "_event", "_set_clock", "_set_event", "_uid")

    def __init__(self, at: Cursor, event: Alarms, clock: Alarms, uid: str) -> None:
        self._at = at
        self._event = event
        self._clock = clock
        self._set_event = event.set
        self._set_clock = clock.set
        self._uid = uid

    def register_event_time(self, when: datetime) -> None:
        """Call `on_timer` when the watermark has reached this instant; if it has, behind the rows of this epoch."""
        try:
            # As in `micros`: most functions with timers come here for every row.
            since = when - _EPOCH
            us = (since.days * _DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds
        except (TypeError, AttributeError):
            us = micros(when, self._uid)
        self._set_event(self._at.code, us)

    def register_processing_time(self, when: datetime) -> None:
        """Call `on_timer` when the clock has reached this instant, though no row may come."""
        self._set_clock(self._at.code, micros(when, self._uid))

    def delete_event_time(self, when: datetime) -> None:
        """Take the timer of this instant away, if there is one."""
        self._event.delete(self._at.code, micros(when, self._uid))

    def delete_processing_time(self, when: datetime) -> None:
        """Take the timer of this instant away, if there is one."""
        self._clock.delete(self._at.code, micros(when, self._uid))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_missing("ctx.timers", name, TimerService))


class Context:
    """One object for all calls of an epoch; it shows what the cursor stands on."""

    __slots__ = ("_at", "_keys", "_touched", "metrics", "output", "shard", "timers", "uid")

    def __init__(
        self, at: Cursor, touched: Touched, timers: TimerService, output: Callable[[Any, Any], None],
        uid: str,
    ) -> None:  # fmt: skip
        self._at = at
        self._touched = touched
        self._keys = touched.objects
        self.timers = timers
        #: Give a row to a side output.
        self.output = output
        self.uid = uid
        self.shard = 0
        self.metrics: Any = None

    @property
    def key(self) -> Any:
        """The key: its value, or a tuple of several."""
        try:
            return self._keys[self._at.code]
        except IndexError:
            self._touched.show()
            return self._keys[self._at.code]

    @property
    def timestamp(self) -> datetime | None:
        """That of the row or timer; None if rows have none."""
        at = self._at
        if at.moment is None and at.stamp is not None:
            at.moment = instant(at.stamp)
        return at.moment

    @property
    def watermark(self) -> datetime | None:
        """That of the step; None before the first."""
        reached = self._at.watermark
        return None if reached == NO_WATERMARK else instant(reached)

    @property
    def clock(self) -> datetime:
        """That of the epoch."""
        return instant(self._at.clock)

    @property
    def time_domain(self) -> str | None:
        """In `on_timer` the domain of the timer, "event" or "processing"."""
        return self._at.domain

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_missing("ctx", name, Context))


def _missing(owner: str, name: str, kind: type) -> str:
    there = ", ".join(known for known in dir(kind) if not known.startswith("_"))
    return f"{owner} has no {name!r}; {_ELSEWHERE.get(name, f'it has {there}')}"


def instant(us: int) -> datetime:
    """Microseconds as users see them; what no datetime can hold is the first or the last there is."""
    try:
        return _EPOCH + timedelta(0, 0, us)
    except OverflowError:
        return _FIRST if us < 0 else _LAST


def micros(when: Any, uid: str) -> int:
    """An instant in microseconds."""
    try:
        since = when - _EPOCH
        us: int = (since.days * _DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds
    except (TypeError, AttributeError):
        raise UserCodeError(
            f"The code of step '{uid}' set a timer for {when!r}; a timer takes a datetime with a time zone, for"
            " example ctx.timestamp + timedelta(minutes=1)."
        ) from None
    return us
