"""What a trigger is: for every window of every key it decides when to fire, and when to forget the rows.

A trigger holds configuration only. What it remembers for a window it declares with annotations
(`seen: hr.state.Value[int]`) and finds in `context.state`; it lies in the checkpoint like everything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from headrace.windows.assigner import TimeWindow

__all__ = ["Trigger", "TriggerContext", "TriggerResult"]


class TriggerResult(Enum):
    """What a trigger wants of its window."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        """The window's result goes out."""
        return bool(self.value[0])

    @property
    def purges(self) -> bool:
        """The window's rows are forgotten."""
        return bool(self.value[1])


class TriggerContext(Protocol):
    """Time, timers and state of one window of one key."""

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the step; None before the first."""

    @property
    def clock(self) -> datetime:
        """The processing time: the clock of the epoch."""

    @property
    def state(self) -> Any:
        """What the trigger declared, by name: `context.state.seen.value()`."""

    def register_event_time_timer(self, time: datetime) -> None:
        """Call `on_event_time` when the watermark reaches `time`."""

    def register_processing_time_timer(self, time: datetime) -> None:
        """Call `on_processing_time` when the clock reaches `time`."""

    def delete_event_time_timer(self, time: datetime) -> None:
        """Forget such a timer."""

    def delete_processing_time_timer(self, time: datetime) -> None:
        """Forget such a timer."""


class Trigger(ABC):
    """Derive from it for a trigger of your own; the built-in ones are made by `hr.triggers.count(...)` and so on."""

    @abstractmethod
    def on_element(
        self, row: Any, timestamp: datetime, window: TimeWindow, context: Any
    ) -> TriggerResult:
        """A row came into the window."""

    def on_event_time(self, time: datetime, window: TimeWindow, context: Any) -> TriggerResult:
        """A timer of event time is due."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: datetime, window: TimeWindow, context: Any) -> TriggerResult:
        """A timer of processing time is due."""
        return TriggerResult.CONTINUE

    @property
    def can_merge(self) -> bool:
        """Whether it may be used with sessions; then it has `on_merge`."""
        return False

    def on_merge(self, window: TimeWindow, context: Any) -> None:
        """Windows grew together into `window`: register its timers anew."""

    def clear(self, window: TimeWindow, context: Any) -> None:
        """The window is gone; its state and timers go by themselves."""

    def or_finally(self, last: Trigger) -> Trigger:
        """This trigger, until `last` fires: that is the last time."""
        from headrace.triggers.composed import or_finally

        return or_finally(self, last)

    @property
    def name(self) -> str:
        """The name of this trigger in a checkpoint; change it when its state means something else."""
        return type(self).__name__
