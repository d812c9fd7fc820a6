"""From a trigger as users write it to the machine that the oracle runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.triggers import Trigger
from headrace.windows import Assigner, Count
from tests.oracle import compositions
from tests.oracle.continuous import Continuous, ContinuousOnClock
from tests.oracle.early_late import EarlyLate, Often
from tests.oracle.epochs import Span
from tests.oracle.machines import (
    AtEnd,
    AtEndOfInput,
    AtEndOnClock,
    CountRows,
    Machine,
    Never,
)
from tests.oracle.written import Written

__all__ = ["machine_of"]


def machine_of(trigger: Trigger | None, span: Span, assigner: Assigner) -> Machine:
    """The machine of one window of one key."""
    if trigger is None:
        return _default(span, assigner)
    kind = type(trigger).__name__
    if not type(trigger).__module__.startswith("headrace.triggers."):
        return Written(span, trigger)
    if kind in _COMPOSED:
        return _COMPOSED[kind]([machine_of(part, span, assigner) for part in _parts(trigger)])
    if kind == "ContinuousProcessingTime":
        every_us = vars(trigger)["every_us"]
        return ContinuousOnClock(span, every_us, ends=assigner.time == "processing")
    return _PLAIN[kind](span, vars(trigger))


def _default(span: Span, assigner: Assigner) -> Machine:
    if isinstance(assigner, Count):
        every = CountRows(span, assigner.slide or assigner.size)
        # Sliding windows need the rows again; an evictor keeps them few.
        return every if assigner.slide else compositions.Purging([every])
    return AtEnd(span)


def _early_late(span: Span, said: Mapping[str, Any]) -> Machine:
    time = said["early_time"]
    early = None
    if said["early_every_us"] is not None or said["early_count"] is not None:
        early = Often(said["early_every_us"], said["early_count"], time)
    return EarlyLate(span, early, Often(said["late_every_us"], said["late_count"], time))


def _parts(trigger: Any) -> Sequence[Trigger]:
    parts: Sequence[Trigger] = trigger.parts
    return parts


#: By name: the oracle reads what triggers say, and runs nothing of theirs.
_PLAIN: Mapping[str, Callable[[Span, Mapping[str, Any]], Machine]] = {
    "EventTime": lambda span, _: AtEnd(span),
    "ProcessingTime": lambda span, _: AtEndOnClock(span),
    "EndOfInput": lambda span, _: AtEndOfInput(span),
    "ContinuousEventTime": lambda span, said: Continuous(span, said["every_us"]),
    "CountRows": lambda span, said: CountRows(span, said["rows"]),
    "Never": lambda span, _: Never(span),
    "EarlyLate": _early_late,
}
_COMPOSED: Mapping[str, Callable[[Sequence[Machine]], Machine]] = {
    "AnyOf": compositions.AnyOf,
    "AllOf": compositions.AllOf,
    "AfterEach": compositions.AfterEach,
    "Repeatedly": compositions.Repeatedly,
    "OrFinally": compositions.OrFinally,
    "Purging": compositions.Purging,
}
