"""A trigger made ready to run: what all its parts remember, laid out as one list of values for each window.

    any_of(count(3), Mine())       values = [seen of count, state of Mine ..., its timers]

Every part of the trigger has a context of its own, which knows its places in that list. The list is a Python list
while a window is looked at, and columns of a table between epochs. Timers are values too: a slot holds one time, a
trigger of the user's own has two sets of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from headrace._runtime.state import ValueSpec
from headrace._runtime.usercode import calling
from headrace._runtime.windows.rows.context import Context, Now
from headrace._runtime.windows.rows.values import Declared
from headrace.triggers.builtin import NONE, BuiltIn, merge, settle, start
from headrace.triggers.composed import Purging
from headrace.triggers.counted import CountRows
from headrace.triggers.early_late import EarlyLate
from headrace.triggers.timed import AtEnd
from headrace.triggers.trigger import Trigger, TriggerResult

__all__ = ["Tree"]

#: A number; one of this epoch only; a timer; a set of timers; a value that a user declared.
Kind: TypeAlias = Literal["number", "passing", "event", "clock", "events", "clocks", "value"]

_TIMES = pa.list_(pa.int64())


@dataclass
class Places:
    """The list of values: what is where."""

    kinds: list[Kind] = field(default_factory=list)
    initial: list[Any] = field(default_factory=list)
    #: Declared state by the place where it begins.
    declared: dict[int, Declared] = field(default_factory=dict)

    def add(self, kind: Kind, initial: Any = None) -> None:
        """One more."""
        self.kinds.append(kind)
        self.initial.append(initial)


class Tree:
    """One trigger of one step."""

    def __init__(self, trigger: Trigger, uid: str, *, ends_on_clock: bool) -> None:
        self._trigger = trigger
        self._uid = uid
        self._places = Places()
        self._contexts: list[Context] = []
        self.now = Now(ends_on_clock)
        self._root = self._context(trigger)
        kinds = self._places.kinds
        self._events = [p for p, kind in enumerate(kinds) if kind == "event"]
        self._event_sets = [p for p, kind in enumerate(kinds) if kind == "events"]
        self._clocks = [p for p, kind in enumerate(kinds) if kind == "clock"]
        self._clock_sets = [p for p, kind in enumerate(kinds) if kind == "clocks"]
        #: Whether a part is a user's: it is shown rows, timestamps and windows, and may raise.
        self.written = any(not isinstance(part, BuiltIn) for part in _all(trigger))
        self.has_clock = bool(self._clocks or self._clock_sets)
        self.has_timers = self.has_clock or bool(self._events or self._event_sets)
        #: Whether something may wait for the end of the epoch.
        self.settles = any(isinstance(part, AtEnd | EarlyLate) for part in _all(trigger))
        #: If all that it does is to count rows: to how many, and what then.
        self.counts_to = _counted(trigger)
        self._on_element = trigger.on_element

    # Values

    def fresh(self) -> list[Any]:
        """The values of a window before its first row."""
        return list(self._places.initial)

    @property
    def stored(self) -> list[tuple[int, ValueSpec]]:
        """The values that outlive an epoch: their places and columns."""
        found: list[tuple[int, ValueSpec]] = []
        for place, kind in enumerate(self._places.kinds):
            if kind in ("number", "event", "clock"):
                spec = ValueSpec(f"trigger.{place}", pa.int64(), self._places.initial[place])
                found.append((place, spec))
            elif kind in ("events", "clocks"):
                found.append((place, ValueSpec(f"trigger.{place}", _TIMES, None)))
        for first, own in self._places.declared.items():
            found += [(first + number, spec) for number, spec in enumerate(own.specs)]
        return sorted(found, key=lambda pair: pair[0])

    def read(self, place: int, column: Any) -> list[Any]:
        """A column as values."""
        kind = self._places.kinds[place]
        if kind == "value":
            first, own = self._declared_at(place)
            return own.read(place - first, column)
        if kind in ("events", "clocks"):
            return [set(times) if times else None for times in column.to_pylist()]
        return list(column.tolist())

    def write(self, place: int, values: Sequence[Any]) -> Any:
        """Values as a column."""
        kind = self._places.kinds[place]
        if kind == "value":
            first, own = self._declared_at(place)
            return own.write(place - first, values)
        if kind in ("events", "clocks"):
            return pa.array([sorted(times) if times else None for times in values], _TIMES)
        return pa.array(values, pa.int64()).to_numpy()

    # Timers

    def next_event(self, values: list[Any]) -> int:
        """The first timer of event time; `NONE` if there is none."""
        return _least(values, self._events, self._event_sets)

    def next_clock(self, values: list[Any]) -> int:
        """The first timer of the clock."""
        return _least(values, self._clocks, self._clock_sets)

    def pop_event(self, values: list[Any], time: int) -> None:
        """Take away all timers of event time with this time, and remember whose they were."""
        self._pop(values, time, self._events, self._event_sets)

    def pop_clock(self, values: list[Any], time: int) -> None:
        """The same of the clock."""
        self._pop(values, time, self._clocks, self._clock_sets)

    # Calls; `now` says for which window

    def start(self) -> None:
        """A window has its first row."""
        start(self._trigger, self._root)

    def on_element(self, row: Any, timestamp: datetime | None) -> TriggerResult:
        """A row is in the window."""
        if not self.written:
            return self._on_element(row, timestamp, None, self._root)  # type: ignore[arg-type]
        return self._call(
            lambda: self._on_element(row, timestamp, self.now.window, self._root)  # type: ignore[arg-type]
        )

    def on_event_time(self) -> TriggerResult:
        """The timers that were popped are done."""
        trigger, now = self._trigger, self.now
        if not self.written:
            return trigger.on_event_time(None, None, self._root)  # type: ignore[arg-type]
        return self._call(lambda: trigger.on_event_time(now.time, now.window, self._root))

    def on_processing_time(self) -> TriggerResult:
        """The same of the clock."""
        trigger, now = self._trigger, self.now
        if not self.written:
            return trigger.on_processing_time(None, None, self._root)  # type: ignore[arg-type]
        return self._call(lambda: trigger.on_processing_time(now.time, now.window, self._root))

    def settle(self, *, closing: bool) -> TriggerResult:
        """All rows are in, or the window is over."""
        return settle(self._trigger, self._root, closing=closing)

    def merge(self, parts: Sequence[list[Any]]) -> None:
        """The values of several windows, in order of their start, become those of this one."""
        for context in self._contexts:
            context.merged = parts
        with calling(self._uid):
            merge(self._trigger, self.now.window if self.written else None, self._root)

    def clear(self) -> None:
        """The window leaves."""
        if self.written:
            with calling(self._uid):
                self._trigger.clear(self.now.window, self._root)

    # Making

    def _context(self, trigger: Trigger) -> Context:
        first = len(self._places.kinds)
        if isinstance(trigger, BuiltIn):
            for slot in trigger.kept:
                self._places.add(slot.kind, slot.initial)
            context = Context(self.now, first)
            context.parts = [self._context(part) for part in trigger.parts]
        else:
            own = Declared(type(trigger), f"trigger.{first}.", self._uid)
            self._places.declared[first] = own
            for _ in own.names:
                self._places.add("value")
            context = Context(self.now, first, own.namespace(lambda: self.now.values, first))
            context.timers = len(self._places.kinds)
            self._places.add("events")
            self._places.add("clocks")
        context.close(self._places.kinds, self._places.initial)
        self._contexts.append(context)
        return context

    def _declared_at(self, place: int) -> tuple[int, Declared]:
        first = max(at for at in self._places.declared if at <= place)
        return first, self._places.declared[first]

    def _pop(self, values: list[Any], time: int, single: list[int], sets: list[int]) -> None:
        due = set()
        for place in single:
            if values[place] == time:
                values[place] = NONE
                due.add(place)
        for place in sets:
            if values[place] and time in values[place]:
                values[place].discard(time)
                due.add(place)
        self.now.due = due
        self.now.time_us = time

    def _call(self, call: Callable[[], TriggerResult]) -> TriggerResult:
        with calling(self._uid):
            result = call()
            if not isinstance(result, TriggerResult):
                raise TypeError(
                    f"a trigger must return a TriggerResult, for example TriggerResult.FIRE, not {result!r}"
                )
        return result


def _least(values: list[Any], single: list[int], sets: list[int]) -> int:
    least = NONE
    for place in single:
        time = values[place]
        if time != NONE and (time < least or least == NONE):
            least = time
    for place in sets:
        if values[place]:
            time = min(values[place])
            least = time if least == NONE else min(least, time)
    return least


def _counted(trigger: Trigger) -> tuple[int, TriggerResult] | None:
    if isinstance(trigger, CountRows):
        return trigger.rows, TriggerResult.FIRE
    if isinstance(trigger, Purging) and isinstance(trigger.parts[0], CountRows):
        return trigger.parts[0].rows, TriggerResult.FIRE_AND_PURGE
    return None


def _all(trigger: Trigger) -> Iterator[Trigger]:
    yield trigger
    for part in trigger.parts if isinstance(trigger, BuiltIn) else ():
        yield from _all(part)
