"""What built-in triggers have beyond those of users: numbered slots for what they remember, and microseconds.

A built-in trigger implements the methods of `Trigger`, but looks at the context alone: row, timestamp and window may
be None. Its memory is a few integers of the window, called slots; some of them are timers, which the engine empties
when it calls. Triggers made of triggers give each of their parts the part of the context that is its own.

    start       the window has its first row, or a composition starts the trigger anew
    on_settle   the epoch's rows are in, or the window closes: is there something left to show?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from headrace.triggers.trigger import Trigger, TriggerResult
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = [
    "NONE",
    "BuiltIn",
    "Inside",
    "Slot",
    "is_finished",
    "merge",
    "multiple_behind",
    "result_of",
    "settle",
    "start",
]

#: The value of a slot without a time.
NONE = NO_WATERMARK

#: A number; one that need not outlive the epoch; a timer of event time; a timer of the clock.
SlotKind: TypeAlias = Literal["number", "passing", "event", "clock"]


class Slot(NamedTuple):
    """One integer that a trigger keeps for a window."""

    name: str
    kind: SlotKind = "number"
    initial: int = 0


class Inside(Protocol):
    """The context as built-in triggers see it: that of the window that is being looked at."""

    #: The watermark, and the clock, by which things are judged now.
    watermark_us: int
    clock_us: int
    #: The watermark, or the time of the event-time timer that is being done.
    event_us: int
    #: The time of the timer that is being done, in its own kind of time.
    time_us: int
    #: The timestamp of the row that came.
    timestamp_us: int
    #: The end of the window.
    end_us: int
    #: The end is a time of the clock.
    ends_on_clock: bool
    #: The contexts of the parts.
    parts: Sequence[Any]

    def get(self, slot: int) -> int:
        """The value of a slot."""

    def set(self, slot: int, value: int) -> None:
        """Change it. A timer is set by its time and taken away by `NONE`."""

    def of_parts(self, slot: int) -> Sequence[int]:
        """The values of a slot in all windows that are being merged, in order of their start."""

    def pick(self, chosen: Sequence[int]) -> None:
        """Merge only these of the windows, by number."""

    def is_due(self) -> bool:
        """Whether a timer that is being done belongs to this trigger."""

    def reset(self) -> None:
        """Everything as it was before the first row."""

    def disarm(self) -> None:
        """Take away all timers."""


class BuiltIn(Trigger):
    """A trigger that comes with Headrace. Immutable; compared by what it says."""

    #: What it keeps for a window.
    slots: ClassVar[tuple[Slot, ...]] = ()
    #: What it is made of.
    parts: tuple[Trigger, ...] = ()

    @property
    def kept(self) -> tuple[Slot, ...]:
        """The slots of this trigger, without those of its parts."""
        return self.slots

    @property
    def can_merge(self) -> bool:
        """Built-in triggers can be used with sessions."""
        return all(part.can_merge for part in self.parts)

    def start(self, context: Inside) -> None:
        """Begin anew."""

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """A row came into the window."""
        return TriggerResult.CONTINUE

    def on_settle(self, context: Inside, *, closing: bool) -> TriggerResult:
        """All rows of the epoch are in, or (`closing`) the window is over."""
        return TriggerResult.CONTINUE

    def is_finished(self, context: Inside) -> bool:
        """It will never fire again."""
        return False


def start(trigger: Trigger, context: Any) -> None:
    """Begin anew, whosever trigger it is."""
    if isinstance(trigger, BuiltIn):
        trigger.start(context)
    else:
        context.reset()


def settle(trigger: Trigger, context: Any, *, closing: bool) -> TriggerResult:
    """What waits; triggers of users never do."""
    if isinstance(trigger, BuiltIn):
        return trigger.on_settle(context, closing=closing)
    return TriggerResult.CONTINUE


def merge(trigger: Trigger, window: Any, context: Any) -> None:
    """Go on with what several windows began. A user's trigger has the state of the first, and no timers."""
    if not isinstance(trigger, BuiltIn):
        context.adopt()
    trigger.on_merge(window, context)


def is_finished(trigger: Trigger, context: Any) -> bool:
    """It will never fire again; triggers of users go on for ever."""
    return isinstance(trigger, BuiltIn) and trigger.is_finished(context)


def result_of(fires: bool, purges: bool) -> TriggerResult:
    """The result that says both."""
    if fires:
        return TriggerResult.FIRE_AND_PURGE if purges else TriggerResult.FIRE
    return TriggerResult.PURGE if purges else TriggerResult.CONTINUE


def multiple_behind(time_us: int, every_us: int) -> int:
    """The first multiple of an interval behind a time; there is none behind the end of time.

    >>> multiple_behind(10, 5), multiple_behind(-3, 5)
    (15, 0)
    """
    return min((time_us // every_us + 1) * every_us, END_OF_TIME)
