"""Triggers that follow time: at the end of a window, at the end of input, and again and again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from headrace.config import to_us
from headrace.triggers.builtin import NONE, BuiltIn, Inside, Slot, multiple_behind
from headrace.triggers.early_late import EarlyLate, late_part
from headrace.triggers.trigger import TriggerResult
from headrace.watermarks import END_OF_TIME

__all__ = [
    "AtEnd",
    "ContinuousEventTime",
    "ContinuousProcessingTime",
    "EndOfInput",
    "EventTime",
    "ProcessingTime",
    "continuous_event_time",
    "continuous_processing_time",
    "end_of_input",
    "event_time",
    "processing_time",
]

_TIMER, _WAITS, _NEXT, _LATEST = 0, 1, 2, 3


@dataclass(frozen=True)
class AtEnd(BuiltIn):
    """Once when time reaches an end; rows behind it are shown together when their epoch settles."""

    slots: ClassVar[tuple[Slot, ...]] = (Slot("timer", "event", NONE), Slot("waits", "passing"))

    def start(self, context: Inside) -> None:
        """Wait for the end, if it is still to come."""
        end = self._end(context)
        context.set(_TIMER, end if self._time(context) < end else NONE)
        context.set(_WAITS, 0)

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """A row behind the end waits for the epoch's end."""
        if self._time(context) >= self._end(context):
            context.set(_WAITS, 1)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """The end."""
        return TriggerResult.FIRE

    def on_settle(self, context: Inside, *, closing: bool) -> TriggerResult:
        """Late rows, all at once."""
        if not context.get(_WAITS):
            return TriggerResult.CONTINUE
        context.set(_WAITS, 0)
        return TriggerResult.FIRE

    def on_merge(self, window: Any, context: Any) -> None:
        """Wait for the new end; what waited goes on waiting if that has passed too."""
        self.start(context)
        if context.get(_TIMER) == NONE and any(context.of_parts(_WAITS)):
            context.set(_WAITS, 1)

    def _end(self, context: Inside) -> int:
        return context.end_us - 1

    def _time(self, context: Inside) -> int:
        return context.event_us


@dataclass(frozen=True)
class EventTime(AtEnd):
    """When the watermark reaches the window's end."""

    def late(
        self, *, each: bool = False, every: timedelta | None = None, count: int | None = None
    ) -> EarlyLate:
        """When late rows fire the window again: `each` epoch (so it is without this), every so often, by number."""
        return EarlyLate(**late_part(each, every, count))

    @property
    def name(self) -> str:
        """As it is written."""
        return "event_time()"


@dataclass(frozen=True)
class EndOfInput(AtEnd):
    """When no more rows can come."""

    @property
    def name(self) -> str:
        """As it is written."""
        return "end_of_input()"

    def _end(self, context: Inside) -> int:
        return END_OF_TIME


@dataclass(frozen=True)
class ProcessingTime(AtEnd):
    """When the clock shows the window's end."""

    slots: ClassVar[tuple[Slot, ...]] = (Slot("timer", "clock", NONE), Slot("waits", "passing"))

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """The end."""
        return TriggerResult.FIRE

    @property
    def name(self) -> str:
        """As it is written."""
        return "processing_time()"

    def _end(self, context: Inside) -> int:
        # The end of the global window is one more than any clock shows.
        return min(context.end_us, END_OF_TIME)

    def _time(self, context: Inside) -> int:
        return context.clock_us


@dataclass(frozen=True)
class ContinuousEventTime(AtEnd):
    """At every multiple of an interval, and at the end. Time that jumps over several fires once.

    The timer stands at the next multiple or at the end, whichever comes first. When it is done and time has gone on
    to a later one of them, it moves there and fires as of then.
    """

    slots: ClassVar[tuple[Slot, ...]] = (
        *AtEnd.slots,
        Slot("next", initial=NONE),
        Slot("latest", initial=NONE),
    )
    every_us: int

    def start(self, context: Inside) -> None:
        """The first multiple lies behind the latest row and behind the time."""
        super().start(context)
        latest = context.get(_LATEST)
        self._go_on(context, None if latest == NONE else max(latest, context.event_us))

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """The first row says where to begin."""
        context.set(_LATEST, max(context.get(_LATEST), context.timestamp_us))
        if context.get(_NEXT) == NONE:
            self._go_on(context, max(context.timestamp_us, context.event_us))
        return super().on_element(row, timestamp, window, context)

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """Fire as of the last multiple that time has passed, or of the end."""
        end = self._end(context)
        reached = context.watermark_us // self.every_us * self.every_us
        last = end if context.watermark_us >= end else reached
        if context.time_us < last:
            context.set(_TIMER, last)
            return TriggerResult.CONTINUE
        context.set(_NEXT, multiple_behind(context.time_us, self.every_us))
        if context.time_us < end:
            context.set(_TIMER, min(end, context.get(_NEXT)))
        return TriggerResult.FIRE

    def on_merge(self, window: Any, context: Any) -> None:
        """The earliest next multiple of all."""
        super().on_merge(window, context)
        context.set(_LATEST, max(context.of_parts(_LATEST)))
        ahead = [time for time in context.of_parts(_NEXT) if time != NONE]
        self._set_next(context, _soonest(ahead, context.event_us, self.every_us))

    @property
    def name(self) -> str:
        """As it is written."""
        return f"continuous_event_time({timedelta(microseconds=self.every_us)})"

    def _go_on(self, context: Inside, time_us: int | None) -> None:
        self._set_next(
            context, NONE if time_us is None else multiple_behind(time_us, self.every_us)
        )

    def _set_next(self, context: Inside, time_us: int) -> None:
        context.set(_NEXT, time_us)
        if context.get(_TIMER) != NONE:
            end = self._end(context)
            context.set(_TIMER, end if time_us == NONE else min(end, time_us))


@dataclass(frozen=True)
class ContinuousProcessingTime(ProcessingTime):
    """At every multiple of an interval of the clock, as long as the window lives. A jump fires once."""

    slots: ClassVar[tuple[Slot, ...]] = (*ProcessingTime.slots, Slot("next", initial=NONE))
    every_us: int

    def start(self, context: Inside) -> None:
        """The first multiple behind now."""
        super().start(context)
        self._set_next(context, multiple_behind(context.clock_us, self.every_us))

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """Fire as of the last multiple that the clock has passed, or of the end."""
        ends = context.ends_on_clock and context.clock_us >= context.end_us
        last = context.end_us if ends else context.clock_us // self.every_us * self.every_us
        if context.time_us < last:
            context.set(_TIMER, last)
            return TriggerResult.CONTINUE
        if not ends:
            # The engine took the timer away; there is one again.
            context.set(_TIMER, context.time_us)
        self._set_next(context, multiple_behind(context.time_us, self.every_us))
        return TriggerResult.FIRE

    def on_settle(self, context: Inside, *, closing: bool) -> TriggerResult:
        """Rows behind an end of the clock."""
        if not context.ends_on_clock:
            return TriggerResult.CONTINUE
        return super().on_settle(context, closing=closing)

    def on_merge(self, window: Any, context: Any) -> None:
        """The earliest next multiple of all."""
        super().on_merge(window, context)
        self._set_next(context, _soonest(context.of_parts(_NEXT), context.clock_us, self.every_us))

    @property
    def name(self) -> str:
        """As it is written."""
        return f"continuous_processing_time({timedelta(microseconds=self.every_us)})"

    def _set_next(self, context: Inside, time_us: int) -> None:
        context.set(_NEXT, time_us)
        if not context.ends_on_clock:
            context.set(_TIMER, time_us)
        elif context.get(_TIMER) != NONE:
            context.set(_TIMER, min(self._end(context), time_us))


def _soonest(ahead: Any, time_us: int, every_us: int) -> int:
    """The earliest of these multiples, but none that has passed."""
    return max(min(ahead), multiple_behind(time_us, every_us)) if ahead else NONE


def event_time() -> EventTime:
    """Fire when the watermark passes the window's end. This is what windows do without a trigger.

    Rows that come behind it, within the allowed lateness, fire again, all those of one epoch together.
    """
    return EventTime()


def processing_time() -> ProcessingTime:
    """Fire when the clock passes the window's end, wherever event time is."""
    return ProcessingTime()


def end_of_input() -> EndOfInput:
    """Fire once, when the input has ended. This is what global windows do without a trigger."""
    return EndOfInput()


def continuous_event_time(every: timedelta) -> ContinuousEventTime:
    """Fire whenever the watermark passes a multiple of `every`, and at the window's end, changed or not.

    A watermark that jumps over several multiples fires once.
    """
    return ContinuousEventTime(to_us(every, "The interval of continuous_event_time"))


def continuous_processing_time(every: timedelta) -> ContinuousProcessingTime:
    """Fire whenever the clock passes a multiple of `every`, changed or not, until the window is over.

    A clock that jumps over several multiples fires once. The end of a window in event time is no reason to fire.
    """
    return ContinuousProcessingTime(to_us(every, "The interval of continuous_processing_time"))
