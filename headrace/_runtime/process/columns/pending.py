"""The timers of one time domain while an epoch runs, for functions on columns: those that are due come together.

What is set after the time that the epoch has reached is written at once, and found again if time moves on in this
epoch. What is set at or before it waits in memory for the next call of `take`, together with what is due.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.plain_keys import number_by_hash, number_keys
from headrace._runtime.process.columns.keys import Keys
from headrace._runtime.process.timing.timers import Due, Timers, in_order
from headrace._runtime.state.columns import plain
from headrace.watermarks import NO_WATERMARK

__all__ = ["Pending"]

Integers = npt.NDArray[np.int64]


class Pending:
    """One time domain of one epoch."""

    def __init__(self, timers: Timers, keys: pa.Schema) -> None:
        self._timers = timers
        self._schema = keys
        #: The time that the epoch has reached, and that from which on nobody has looked for due timers.
        self._reached = self._looked = NO_WATERMARK
        #: Set for a time that was reached already.
        self._ready: list[Due] = []

    def move(self, before: int, reached: int) -> None:
        """Time moves; what becomes due by that comes with the next `take`."""
        self._looked, self._reached = before, reached

    def set(self, keys: Keys, places: Integers | None, times: Integers) -> None:
        """Timers of keys."""
        chosen = np.arange(len(keys)) if places is None else places
        past = times <= self._reached
        if past.any():
            self._ready.append((keys.columns(chosen[past]), times[past]))
            chosen, times = chosen[~past], times[~past]
        self._timers.put(keys, chosen, times, self._reached)

    def delete(self, keys: Keys, places: Integers | None, times: Integers) -> None:
        """Take timers of keys away, where there are such. Those that a call was given are over."""
        chosen = np.arange(len(keys)) if places is None else places
        self._timers.delete(keys, chosen, times)
        if self._ready:
            columns, ready = _joined(self._ready)
            kept = _others((columns, ready), (keys.columns(chosen), times))
            self._ready = [([c.take(plain(kept)) for c in columns], ready[kept])]

    def take(self) -> tuple[Keys, Integers] | None:
        """All that are due, each once and in order of time: their keys, and times; None if there is none."""
        found = self._ready
        if self._looked < self._reached:
            found = [*found, *self._timers.due(self._looked, self._reached)]
        self._ready, self._looked = [], self._reached
        if not any(len(times) for _, times in found):
            return None
        columns, times = _joined(found)
        # Where they lie depends on restarts; the order in which they come must not.
        numbers, distinct, _ = number_by_hash(columns)
        numbers, times = in_order(numbers, times)
        return Keys.of_distinct(self._schema, distinct, numbers), times

    def end(self) -> None:
        """The epoch is over: what time has passed is dropped."""
        self._timers.forget(self._reached)


def _joined(parts: Sequence[Due]) -> Due:
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(column) for column in zip(*(c for c, _ in parts), strict=True)]
    return columns, np.concatenate([times for _, times in parts])


def _others(timers: Due, gone: Due) -> Integers:
    """The places of the timers that are not among others."""
    columns, times = _joined([timers, gone])
    numbers, _ = number_keys([*columns, pa.array(times)])
    many = len(timers[1])
    return np.flatnonzero(~np.isin(numbers[:many], numbers[many:]))
