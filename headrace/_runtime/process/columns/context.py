"""What a function on columns is told: keys, times, timers, other outputs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._runtime.process.columns.instants import as_micros
from headrace._runtime.process.columns.keys import Keys, as_places
from headrace._runtime.process.columns.pending import Pending
from headrace._runtime.process.columns.results import BatchResults
from headrace._runtime.process.context import instant
from headrace.watermarks import NO_WATERMARK

__all__ = ["BatchContext", "TimerColumns"]

Integers = npt.NDArray[np.int64]


class BatchContext:
    """One object for all calls of an epoch."""

    def __init__(self, uid: str, timers: TimerColumns, results: BatchResults, keys: Keys) -> None:
        self.uid = uid
        self.shard = 0
        self.metrics: Any = None
        self.timers = timers
        #: Give out a batch whose rows have timestamps of their own.
        self.emit = results.emit
        #: Give a batch to a side output.
        self.output = results.output
        #: All keys of the call, each once.
        self.keys = keys
        #: One for each row or timer, in microseconds; None if rows have none.
        self.timestamps: Integers | None = None
        #: In `on_timers` the domain of the timers, "event" or "processing".
        self.time_domain: str | None = None
        self._watermark = NO_WATERMARK
        self._clock = 0

    def begin(self, keys: Keys, timestamps: Integers | None, domain: str | None) -> None:
        """A call begins."""
        self.keys, self.timestamps, self.time_domain = keys, timestamps, domain
        self.timers.keys = keys

    def reach(self, watermark: int, clock: int) -> None:
        """Time has come to this."""
        self._watermark, self._clock = watermark, clock

    def now(self, domain: str) -> int:
        """The watermark or the clock, in microseconds."""
        return self._watermark if domain == "event" else self._clock

    @property
    def slots(self) -> Integers:
        """For each row or timer the place of its key among `keys`."""
        return self.keys.slots

    @property
    def key_timestamps(self) -> Integers | None:
        """For each key the greatest timestamp of its rows or timers; None if rows have none."""
        if self.timestamps is None:
            return None
        greatest = np.full(len(self.keys), NO_WATERMARK, np.int64)
        np.maximum.at(greatest, self.slots, self.timestamps)
        return greatest

    @property
    def watermark(self) -> datetime | None:
        """That of the step; None before the first."""
        return None if self._watermark == NO_WATERMARK else instant(self._watermark)

    @property
    def clock(self) -> datetime:
        """That of the epoch."""
        return instant(self._clock)


class TimerColumns:
    """Timers of many keys. Those of one key and instant are one.

    Places are `ctx.keys`, or an array of numbers of keys as in `ctx.slots`; for each there is an instant: numpy
    datetime64, whole microseconds, Arrow timestamps, or one datetime for all.
    """

    def __init__(self, event: Pending, clock: Pending, uid: str, keys: Keys) -> None:
        self._event = event
        self._clock = clock
        self._uid = uid
        #: Those of the call.
        self.keys = keys

    def register_event_time(self, places: Any, when: Any) -> None:
        """Call `on_timers` when the watermark has reached these; for those that it has, behind this call's rows."""
        self._event.set(*self._asked(places, when))

    def register_processing_time(self, places: Any, when: Any) -> None:
        """Call `on_timers` when the clock has reached these, though no row may come."""
        self._clock.set(*self._asked(places, when))

    def delete_event_time(self, places: Any, when: Any) -> None:
        """Take these timers away, where there are such and no call has been given them."""
        self._event.delete(*self._asked(places, when))

    def delete_processing_time(self, places: Any, when: Any) -> None:
        """Take these timers away, where there are such and no call has been given them."""
        self._clock.delete(*self._asked(places, when))

    def _asked(self, places: Any, when: Any) -> tuple[Keys, Integers | None, Integers]:
        chosen = as_places(places, self.keys, self._uid)
        many = len(self.keys) if chosen is None else len(chosen)
        return self.keys, chosen, as_micros(when, many, self._uid)
