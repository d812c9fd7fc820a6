"""Early results, the one on time, and late corrections.

early(every=timedelta(seconds=1)).late(each=True)

rows       r   r r            r          r
time       |....|....|....|....|end......|.....
firings         E    E         T         L         E early, if something changed; T on time, always; L late
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.triggers.builtin import NONE, BuiltIn, Inside, Slot, multiple_behind
from headrace.triggers.counted import number_of_rows
from headrace.triggers.trigger import TriggerResult
from headrace.windows.assigner import TimeDomain, check_time

__all__ = ["EarlyLate", "early", "late_part"]

_END, _NEXT, _SEEN, _SINCE = 0, 1, 2, 3


@dataclass(frozen=True)
class EarlyLate(BuiltIn):
    """Early firings by time or number, one on time, late ones once an epoch, by time or by number.

    Both parts that go by time go by `early_time`. Slots: the timer of the end (none behind it), that of the next
    multiple, the rows since the last firing, and when the first of them came.
    """

    early_every_us: int | None = None
    early_time: TimeDomain = "processing"
    early_count: int | None = None
    late_each: bool = True
    late_every_us: int | None = None
    late_count: int | None = None

    @property
    def kept(self) -> tuple[Slot, ...]:
        """The second timer is of the time that was chosen."""
        timer = Slot("next", "event" if self.early_time == "event" else "clock", NONE)
        return (
            Slot("end", "event", NONE),
            timer,
            Slot("seen"),
            Slot("since"),
        )

    def late(
        self, *, each: bool = False, every: timedelta | None = None, count: int | None = None
    ) -> EarlyLate:
        """When late rows fire the window again: `each` epoch (so it is without this), every so often, by number.

        The last two also fire when the window closes, if there are rows that no firing has shown.
        """
        return replace(self, **late_part(each, every, count))

    def start(self, context: Inside) -> None:
        """Wait for the end, if it is still to come."""
        last = context.end_us - 1
        context.set(_END, last if context.event_us < last else NONE)
        self._shown(context)

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        """Count it; the first one since the last firing starts the waiting."""
        seen = context.get(_SEEN) + 1
        context.set(_SEEN, seen)
        if seen == 1:
            context.set(_SINCE, self._time(context))
            self._arm(context)
        early = context.event_us < context.end_us - 1
        wanted = self.early_count if early else self.late_count
        return TriggerResult.CONTINUE if wanted is None or seen < wanted else self._shown(context)

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """The end, or a multiple of event time."""
        last = context.end_us - 1
        if context.time_us == last:
            context.set(_END, NONE)
            return self._shown(context)
        if context.get(_END) != NONE and context.watermark_us >= last:
            return TriggerResult.CONTINUE
        return self._at_multiple(context, context.watermark_us)

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        """A multiple of the clock."""
        return self._at_multiple(context, context.clock_us)

    def on_settle(self, context: Inside, *, closing: bool) -> TriggerResult:
        """Late rows of this epoch together, or those that nothing has shown so far."""
        if context.get(_END) != NONE or not context.get(_SEEN) or not (self.late_each or closing):
            return TriggerResult.CONTINUE
        return self._shown(context)

    def on_merge(self, window: Any, context: Any) -> None:
        """All rows count, and the first of them."""
        self.start(context)
        seen, since = context.of_parts(_SEEN), context.of_parts(_SINCE)
        if any(seen):
            context.set(_SEEN, sum(seen))
            context.set(_SINCE, min(s for s, rows in zip(since, seen, strict=True) if rows))
            self._arm(context)

    @property
    def name(self) -> str:
        """As it is written."""
        early = _text(self.early_every_us, self.early_count)
        late = "each=True" if self.late_each else _text(self.late_every_us, self.late_count)
        if self.early_every_us is None and self.early_count is None:
            return f"event_time().late({late})"
        time = "" if self.early_time == "processing" else ', time="event"'
        return f"early({early}{time}).late({late})"

    def _time(self, context: Inside) -> int:
        return context.event_us if self.early_time == "event" else context.clock_us

    def _arm(self, context: Inside) -> None:
        every = self._every(context)
        if every is not None:
            context.set(_NEXT, multiple_behind(context.get(_SINCE), every))

    def _every(self, context: Inside) -> int | None:
        return self.late_every_us if context.get(_END) == NONE else self.early_every_us

    def _at_multiple(self, context: Inside, reached: int) -> TriggerResult:
        every = self._every(context)
        if every is None or not context.get(_SEEN):
            return TriggerResult.CONTINUE
        last = reached // every * every
        if context.time_us < last:
            # Time jumped over several: fire once, as of the last.
            context.set(_NEXT, last)
            return TriggerResult.CONTINUE
        return self._shown(context)

    def _shown(self, context: Inside) -> TriggerResult:
        context.set(_SEEN, 0)
        context.set(_NEXT, NONE)
        return TriggerResult.FIRE


def early(
    *, every: timedelta | None = None, count: int | None = None, time: TimeDomain = "processing"
) -> EarlyLate:
    """Fire before the window's end too: whenever time passes a multiple of `every`, or at every `count` rows.

    By time, only what changed since its last firing fires. On time it always fires; `late` says what happens then.

    >>> early(every=timedelta(seconds=1)).late(count=1).name
    'early(every=0:00:01).late(count=1)'
    """
    check_time(time)
    if (every is None) == (count is None):
        raise BuildError("triggers.early takes every=timedelta(...) or count=rows, one of them.")
    return EarlyLate(
        early_every_us=None if every is None else to_us(every, "The interval of early"),
        early_time=time,
        early_count=None if count is None else number_of_rows(count, "early(count=...)"),
    )


def late_part(each: bool, every: timedelta | None, count: int | None) -> dict[str, Any]:
    """The late fields of `EarlyLate`, checked."""
    if [each is True, every is not None, count is not None].count(True) != 1:
        raise BuildError(
            "late takes each=True, every=timedelta(...) or count=rows, one of them; without late(...) it is"
            " each=True."
        )
    return {
        "late_each": bool(each),
        "late_every_us": None if every is None else to_us(every, "The interval of late"),
        "late_count": None if count is None else number_of_rows(count, "late(count=...)"),
    }


def _text(every_us: int | None, count: int | None) -> str:
    return f"count={count}" if every_us is None else f"every={timedelta(microseconds=every_us)}"
