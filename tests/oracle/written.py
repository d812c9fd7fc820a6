"""What users write, called as an engine would: triggers and window functions, with their contexts and state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from headrace.state import declared
from headrace.testing.epochs import TimedRow
from headrace.triggers import Trigger, TriggerResult
from headrace.watermarks import NO_WATERMARK
from headrace.windows import TimeWindow
from tests.oracle.epochs import Span, instant, micros
from tests.oracle.machines import Kind, Machine, Now, Verdict

__all__ = ["State", "Written", "shown_watermark", "time_window"]


class Cell:
    """One declared value."""

    def __init__(self) -> None:
        self._value: Any = None

    def value(self) -> Any:
        """What is there."""
        return self._value

    def update(self, value: Any) -> None:
        """Put something there."""
        self._value = value

    def clear(self) -> None:
        """Take it away."""
        self._value = None


class State(SimpleNamespace):
    """The values that a class declares, all empty."""

    def __init__(self, owner: type) -> None:
        super().__init__(**{name: Cell() for name in declared(owner)})


def time_window(span: Span) -> TimeWindow:
    """A window as users see it."""
    return TimeWindow(instant(span[0]), instant(span[1]))


def shown_watermark(watermark: int) -> datetime | None:
    """A watermark as users see it."""
    return None if watermark == NO_WATERMARK else instant(watermark)


class Written(Machine):
    """A trigger of the user's own."""

    def __init__(self, span: Span, trigger: Trigger) -> None:
        super().__init__(span)
        self._trigger = trigger
        self._window = time_window(span)
        self.start = span[0]
        self.state = State(type(trigger))
        self._timers: set[tuple[Kind, int]] = set()

    def begin(self, now: Now) -> None:
        self.state, self._timers = State(type(self._trigger)), set()

    def row(self, now: Now, row: TimedRow) -> Verdict:
        timestamp, fields = instant(row[0]), SimpleNamespace(**row[1])
        context = self._context(now)
        return _verdict(self._trigger.on_element(fields, timestamp, self._window, context))

    def due(self, now: Now) -> set[tuple[Kind, int]]:
        reached = {"event": now.watermark, "processing": now.clock}
        return {(kind, time) for kind, time in self._timers if time <= reached[kind]}

    def timer(self, kind: Kind, time: int, now: Now) -> Verdict:
        self._timers.discard((kind, time))
        calls: dict[Kind, Callable[..., TriggerResult]] = {
            "event": self._trigger.on_event_time,
            "processing": self._trigger.on_processing_time,
        }
        return _verdict(calls[kind](instant(time), self._window, self._context(now)))

    def join(self, parts: Sequence[Written], now: Now) -> None:
        self.state = min(parts, key=lambda part: part.start).state
        self._timers = set()
        self._trigger.on_merge(self._window, self._context(now))

    def _context(self, now: Now) -> Any:
        def change(act: Callable[[tuple[Kind, int]], None], kind: Kind) -> Callable[..., None]:
            return lambda time: act((kind, micros(time)))

        return SimpleNamespace(
            watermark=shown_watermark(now.watermark),
            clock=instant(now.clock),
            state=self.state,
            register_event_time_timer=change(self._timers.add, "event"),
            register_processing_time_timer=change(self._timers.add, "processing"),
            delete_event_time_timer=change(self._timers.discard, "event"),
            delete_processing_time_timer=change(self._timers.discard, "processing"),
        )


def _verdict(result: TriggerResult) -> Verdict:
    return Verdict(result.fires, result.purges)
