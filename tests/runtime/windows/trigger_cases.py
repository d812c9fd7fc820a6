"""Random triggers, also made of one another, and triggers, windows and functions as users write them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

import headrace as hr
from headrace import evictors, triggers
from headrace.triggers import Trigger, TriggerResult
from headrace.windows import WindowAssigner

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def us(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


class EveryOther(Trigger):
    """At every other row, three microseconds of event time behind a row, four of the clock behind it, and at the end."""

    seen: hr.state.Value[int]

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        seen = (context.state.seen.value() or 0) + 1
        context.state.seen.update(seen)
        context.register_event_time_timer(timestamp + us(3))
        context.register_processing_time_timer(context.clock + us(4))
        context.register_event_time_timer(window.end - us(1))
        return TriggerResult.CONTINUE if seen % 2 else TriggerResult.FIRE

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        if time == window.end - us(1):
            context.state.seen.clear()
            return TriggerResult.FIRE_AND_PURGE
        return TriggerResult.FIRE

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        if (context.state.seen.value() or 0) > 3:
            return TriggerResult.PURGE
        return TriggerResult.FIRE

    @property
    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, context: Any) -> None:
        context.register_event_time_timer(window.end - us(1))


class Ladder(WindowAssigner):
    """[4k, 4k + 4) for all rows, and [0, 9) or [20, 31) for those in it."""

    def assign(self, row: Any, timestamp: datetime) -> Iterator[tuple[datetime, datetime]]:
        at = (timestamp - EPOCH) // us(1)
        start = EPOCH + us(at // 4 * 4)
        yield start, start + us(4)
        for first, last in ((0, 9), (20, 31)):
            if first <= at < last:
                yield EPOCH + us(first), EPOCH + us(last)


SHOWN = {"key": str, "start": datetime, "pane": str, "firing": int, "rows": int, "calls": int}
MANY_ROWS = hr.OutputTag("many", {"key": str, "rows": int})


class Shown(hr.ProcessWindowFunction):
    """What a firing is told, how often this window has been called, and windows of more than three rows aside."""

    calls: hr.state.Value[int]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        count = rows[0].rows if hasattr(rows[0], "rows") else len(rows)
        calls = (context.window_state.calls.value() or 0) + 1
        context.window_state.calls.update(calls)
        if count > 3:
            yield MANY_ROWS, {"key": key, "rows": count}
        yield {
            "key": key,
            "start": context.window.start,
            "pane": context.pane,
            "firing": context.firing,
            "rows": count,
            "calls": calls,
        }

    def clear(self, context: Any) -> None:
        context.window_state.calls.clear()


_few = st.integers(1, 4)
_often = st.sampled_from([us(3), us(5), us(10)])
_times = st.sampled_from(["processing", "event"])


@st.composite
def early_late(draw: st.DrawFn) -> Trigger:
    """`early`, `late`, both."""
    if draw(st.booleans()):
        made = triggers.early(every=draw(_often), time=draw(_times))
    else:
        made = triggers.early(count=draw(_few))
    parts: list[dict[str, Any]] = [{"each": True}, {"every": draw(_often)}, {"count": draw(_few)}]
    return made.late(**draw(st.sampled_from(parts)))


@st.composite
def by_time(draw: st.DrawFn) -> Trigger:
    """Early firings at multiples of a time, late ones too or once an epoch: what needs no look at each row."""
    made = triggers.early(every=draw(_often), time=draw(_times))
    if draw(st.booleans()):
        return made
    return made.late(every=draw(_often))


leaves: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(triggers.event_time),
    st.builds(triggers.count, _few),
    early_late(),
    st.builds(triggers.continuous_event_time, _often),
    st.builds(triggers.continuous_processing_time, _often),
    st.builds(triggers.processing_time),
    st.builds(triggers.never),
    st.builds(EveryOther),
)


def _composed(parts: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    several = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda made: triggers.any_of(*made)),
        several.map(lambda made: triggers.all_of(*made)),
        several.map(lambda made: triggers.after_each(*made)),
        several.map(lambda made: triggers.repeatedly(triggers.after_each(*made))),
        parts.map(triggers.purging),
        st.tuples(parts, parts).map(lambda two: triggers.or_finally(*two)),
        st.tuples(parts, parts).map(lambda two: triggers.repeatedly(triggers.or_finally(*two))),
    )


any_trigger = st.recursive(leaves, _composed, max_leaves=4)
any_evictor = st.sampled_from(
    [
        evictors.count(1),
        evictors.count(2),
        evictors.count(2, after=True),
        evictors.time(us(3)),
        evictors.time(us(5), after=True),
    ]
)
