"""Triggers made of triggers, in the way of Beam.

    any_of(a, b)        fires when one of them does; then all start anew
    all_of(a, b)        fires when all have fired since the last time; then all start anew
    after_each(a, b)    a until it is over, then b until it is over; then it is finished
    repeatedly(a)       a, started anew when it is finished
    a.or_finally(b)     a, until b fires: that is the last time
    purging(a)          a, and each firing empties the window

A firing empties the window if a part that fired does. What is finished never fires again. In `after_each` a part that
may fire often before it is finished (repeatedly, or_finally, after_each) is over when it is; any other when it fires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.errors import BuildError
from headrace.triggers.builtin import (
    BuiltIn,
    Inside,
    Slot,
    is_finished,
    merge,
    result_of,
    settle,
    start,
)
from headrace.triggers.trigger import Trigger, TriggerResult

__all__ = [
    "AfterEach",
    "AllOf",
    "AnyOf",
    "Composed",
    "OrFinally",
    "Purging",
    "Repeatedly",
    "after_each",
    "all_of",
    "any_of",
    "or_finally",
    "purges",
    "purging",
    "repeatedly",
]

#: What the parts that were asked said, by their number.
Verdicts = dict[int, TriggerResult]
#: Asks one part, given its context.
Ask = Callable[[Trigger, Any], TriggerResult]


_CONTINUE = TriggerResult.CONTINUE
_FIRE = TriggerResult.FIRE
_PURGE = TriggerResult.PURGE
_FIRE_AND_PURGE = TriggerResult.FIRE_AND_PURGE


@dataclass(frozen=True)
class Composed(BuiltIn):
    """Passes everything to its parts and makes one result of theirs."""

    word: ClassVar[str] = ""
    parts: tuple[Trigger, ...]

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """One result out of those of the parts that were asked."""
        return result_of(_fires(verdicts), _purges(verdicts))

    def running(self, context: Inside) -> Sequence[int]:
        """The parts that are asked."""
        numbers = range(len(self.parts))
        return [n for n in numbers if not is_finished(self.parts[n], context.parts[n])]

    def start(self, context: Inside) -> None:
        """All parts anew."""
        for part, own in zip(self.parts, context.parts, strict=True):
            start(part, own)

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """Every part sees the row."""
        return self._ask(context, lambda part, own: part.on_element(row, timestamp, window, own))

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """For the parts whose timer it is."""
        return self._ask_due(context, lambda part, own: part.on_event_time(time, window, own))

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """For the parts whose timer it is."""
        return self._ask_due(context, lambda part, own: part.on_processing_time(time, window, own))

    def on_settle(self, context: Inside, *, closing: bool) -> TriggerResult:
        """Whatever waits in a part."""
        return self._ask(context, lambda part, own: settle(part, own, closing=closing))

    def on_merge(self, window: Any, context: Any) -> None:
        """Part by part."""
        for part, own in zip(self.parts, context.parts, strict=True):
            merge(part, window, own)

    def clear(self, window: Any, context: Any) -> None:
        """Tell the parts."""
        for part, own in zip(self.parts, context.parts, strict=True):
            part.clear(window, own)

    @property
    def name(self) -> str:
        """The names of the parts are in it."""
        return f"{self.word}({', '.join(part.name for part in self.parts)})"

    def _ask(self, context: Inside, ask: Ask) -> TriggerResult:
        if self.is_finished(context):
            return TriggerResult.CONTINUE
        parts, own = self.parts, context.parts
        return self.combine({n: ask(parts[n], own[n]) for n in self.running(context)}, context)

    def _ask_due(self, context: Inside, ask: Ask) -> TriggerResult:
        return self._ask(
            context, lambda part, own: ask(part, own) if own.is_due() else TriggerResult.CONTINUE
        )


@dataclass(frozen=True)
class AnyOf(Composed):
    """The first to fire fires for all."""

    word: ClassVar[str] = "any_of"

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """After a firing all start anew."""
        if all(verdict is _CONTINUE for verdict in verdicts.values()):
            return _CONTINUE
        if _fires(verdicts):
            self.start(context)
        return super().combine(verdicts, context)


@dataclass(frozen=True)
class AllOf(Composed):
    """Waits for all. Slots: which parts have fired, and which of those want to empty the window, as bits."""

    word: ClassVar[str] = "all_of"
    slots: ClassVar[tuple[Slot, ...]] = (Slot("fired"), Slot("purges"))

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """Remember who fired; a purge without a firing is done at once."""
        fired, purges, at_once = context.get(0), context.get(1), False
        for number, verdict in verdicts.items():
            if verdict.fires:
                fired |= 1 << number
                purges |= verdict.purges << number
            at_once |= verdict is TriggerResult.PURGE
        done = fired + 1 == 1 << len(self.parts)
        context.set(0, fired)
        context.set(1, purges)
        if done:
            self.start(context)
        return result_of(done, at_once or (done and purges > 0))

    def start(self, context: Inside) -> None:
        """All parts anew, and none has fired."""
        super().start(context)
        context.set(0, 0)
        context.set(1, 0)

    def on_merge(self, window: Any, context: Any) -> None:
        """A part has fired if it has in one of the windows."""
        super().on_merge(window, context)
        for slot in (0, 1):
            bits = 0
            for others in context.of_parts(slot):
                bits |= others
            context.set(slot, bits)


@dataclass(frozen=True)
class AfterEach(Composed):
    """One after the other. Slot: whose turn it is."""

    word: ClassVar[str] = "after_each"
    slots: ClassVar[tuple[Slot, ...]] = (Slot("turn"),)

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """The next one's turn, if this one is over."""
        ((turn, verdict),) = verdicts.items()
        part = self.parts[turn]
        if is_finished(part, context.parts[turn]) if _lasts(part) else verdict.fires:
            context.parts[turn].disarm()
            self._turn(context, turn + 1)
        return verdict

    def running(self, context: Inside) -> Sequence[int]:
        """Only one is asked."""
        return (context.get(0),)

    def start(self, context: Inside) -> None:
        """The first one's turn."""
        context.disarm()
        self._turn(context, 0)

    def is_finished(self, context: Inside) -> bool:
        """All had their turn."""
        return context.get(0) == len(self.parts)

    def on_merge(self, window: Any, context: Any) -> None:
        """The furthest goes on, with those that are as far."""
        turns = context.of_parts(0)
        turn = max(turns)
        context.set(0, turn)
        if turn < len(self.parts):
            own = context.parts[turn]
            own.pick([n for n, other in enumerate(turns) if other == turn])
            merge(self.parts[turn], window, own)

    def _turn(self, context: Inside, turn: int) -> None:
        context.set(0, turn)
        if turn < len(self.parts):
            start(self.parts[turn], context.parts[turn])


@dataclass(frozen=True)
class Repeatedly(Composed):
    """Never finished."""

    word: ClassVar[str] = "repeatedly"

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """From the start, if it is finished."""
        self._restart(context)
        return super().combine(verdicts, context)

    def on_merge(self, window: Any, context: Any) -> None:
        """What comes out finished starts anew."""
        super().on_merge(window, context)
        self._restart(context)

    def _restart(self, context: Inside) -> None:
        if is_finished(self.parts[0], context.parts[0]):
            self.start(context)


@dataclass(frozen=True)
class OrFinally(Composed):
    """The second ends it. Slot: whether it has."""

    slots: ClassVar[tuple[Slot, ...]] = (Slot("finished"),)

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """Over, if the second fired or the first is finished."""
        last = verdicts.get(1, TriggerResult.CONTINUE)
        if last.fires or is_finished(self.parts[0], context.parts[0]):
            context.set(0, 1)
            context.disarm()
        return super().combine(verdicts, context)

    def start(self, context: Inside) -> None:
        """Both anew."""
        context.set(0, 0)
        super().start(context)

    def is_finished(self, context: Inside) -> bool:
        """It was ended."""
        return context.get(0) == 1

    def on_merge(self, window: Any, context: Any) -> None:
        """Ended, if one of the windows was."""
        super().on_merge(window, context)
        if any(context.of_parts(0)):
            context.set(0, 1)
            context.disarm()

    @property
    def name(self) -> str:
        """As it is written."""
        return f"{self.parts[0].name}.or_finally({self.parts[1].name})"


@dataclass(frozen=True)
class Purging(Composed):
    """Shown, then forgotten."""

    word: ClassVar[str] = "purging"

    def combine(self, verdicts: Verdicts, context: Inside) -> TriggerResult:
        """A firing is also a purge."""
        return result_of(_fires(verdicts), _fires(verdicts) or _purges(verdicts))

    def is_finished(self, context: Inside) -> bool:
        """With what it is made of."""
        return is_finished(self.parts[0], context.parts[0])


def any_of(*triggers: Trigger) -> AnyOf:
    """Fire when one of these does; then all of them start anew.

    >>> from headrace.triggers import count, event_time
    >>> any_of(count(100), event_time()).name
    'any_of(count(100), event_time())'
    """
    return AnyOf(_several("any_of", triggers))


def all_of(*triggers: Trigger) -> AllOf:
    """Fire when all of these have fired since the last time; then all of them start anew."""
    return AllOf(_several("all_of", triggers))


def after_each(*triggers: Trigger) -> AfterEach:
    """Fire as the first does until it is over, then as the second, and so on; behind the last never again.

    `after_each(repeatedly(count(1)).or_finally(event_time()), repeatedly(count(10)))` fires at every row until the
    watermark passes the end, then at every tenth.
    """
    return AfterEach(_several("after_each", triggers))


def repeatedly(trigger: Trigger) -> Repeatedly:
    """Start a trigger anew whenever it is finished: `repeatedly(after_each(count(1), count(10)))`."""
    return Repeatedly(_checked("repeatedly", (trigger,)))


def purging(trigger: Trigger) -> Purging:
    """Each firing empties the window: the next result is over the rows that come then."""
    return Purging(_checked("purging", (trigger,)))


def or_finally(trigger: Trigger, last: Trigger) -> OrFinally:
    """A trigger until another one fires; `trigger.or_finally(last)` is the same."""
    return OrFinally(_checked("or_finally", (trigger, last)))


def purges(trigger: Trigger | None) -> bool:
    """Whether a built-in part of it empties windows; what a user's own class does cannot be seen."""
    if isinstance(trigger, Purging):
        return True
    return isinstance(trigger, Composed) and any(map(purges, trigger.parts))


def _lasts(trigger: Trigger) -> bool:
    """Whether it may fire more than once before it is finished."""
    if isinstance(trigger, Purging):
        return _lasts(trigger.parts[0])
    return isinstance(trigger, Repeatedly | OrFinally | AfterEach)


def _fires(verdicts: Verdicts) -> bool:
    # Asked for every row: a look at the members is several times faster than their properties.
    return any(v is _FIRE or v is _FIRE_AND_PURGE for v in verdicts.values())


def _purges(verdicts: Verdicts) -> bool:
    return any(v is _PURGE or v is _FIRE_AND_PURGE for v in verdicts.values())


def _several(word: str, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    if not 2 <= len(triggers) <= 60:
        raise BuildError(f"{word} takes between two and sixty triggers, not {len(triggers)}.")
    return _checked(word, triggers)


def _checked(word: str, triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    for trigger in triggers:
        if not isinstance(trigger, Trigger):
            raise BuildError(
                f"{word} takes triggers, for example hr.triggers.count(100), not {trigger!r}."
            )
    return triggers
