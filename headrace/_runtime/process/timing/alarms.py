"""The timers of one time domain while an epoch runs: those that are due, those that are set, and their order.

A timer that is set at or before the time that the epoch has reached is ready and fires in this epoch; any other
is written when the epoch settles. Per key and time there is one. `fire` goes on in order of time, whatever handlers
set and delete on the way.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.process.cursor import Journal
from headrace._runtime.process.timing.timers import Timers, changes, in_order
from headrace._runtime.process.touched import Touched
from headrace.errors import UserCodeError
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["Alarms"]

Integers = npt.NDArray[np.int64]

#: Timers for each key that may set one another when the input has ended.
_LONGEST_CHAIN = 10_000
#: (time, code)
Pairs: TypeAlias = set[tuple[int, int]]


class Alarms:
    """One time domain of one epoch."""

    def __init__(self, timers: Timers, touched: Touched, journal: Journal) -> None:
        self._timers = timers
        self._touched = touched
        self._journal = journal
        #: The time that the epoch has reached.
        self._reached = NO_WATERMARK
        # Due, in order; those before `_at` are done. `_due_set` is made when somebody asks.
        self._times: list[int] = []
        self._codes: list[int] = []
        self._at = 0
        self._due_set: Pairs | None = None
        self._cancelled: Pairs = set()
        # Ready: a heap, and those in it that were not deleted again.
        self._heap: list[tuple[int, int]] = []
        self._ready: Pairs = set()
        #: How many that were set on the way have fired behind the end of the input.
        self._chained = 0
        # For later, in the order in which it was asked for: keys, times, and which of these are to be deleted.
        self._later_codes = array("q")
        self._later_times = array("q")
        self._deleted: list[int] = []

    def move(self, before: int, reached: int) -> None:
        """Time moves: the timers of state that become due are found, and their keys touched."""
        self._reached = reached
        found = list(self._timers.due(before, reached)) if reached > before else []
        if found:
            self._take_up(found)
        self._catch_up()

    def set(self, code: int, time_us: int) -> None:
        """A timer of a key."""
        if time_us > self._reached:
            self._later_codes.append(code)
            self._later_times.append(time_us)
            if self._journal is not None:
                self._journal.append((self._unask,))
            return
        pair = (time_us, code)
        if pair in self._cancelled:
            self._forget(self._cancelled, pair)
        elif pair not in self._ready and not self._is_due(pair):
            heappush(self._heap, pair)
            self._remember(self._ready, pair)

    def delete(self, code: int, time_us: int) -> None:
        """Take a timer of a key away, if there is one."""
        if time_us > self._reached:
            self._deleted.append(len(self._later_times))
            self._later_codes.append(code)
            self._later_times.append(time_us)
            if self._journal is not None:
                self._journal.append((self._unask,))
            return
        pair = (time_us, code)
        if pair in self._ready:
            self._forget(self._ready, pair)
        elif self._is_due(pair):
            self._remember(self._cancelled, pair)

    def fire(self, call: Callable[[int, int], Any], up_to: int = END_OF_TIME) -> int:
        """Call with (code, time) for all up to a time, those that are set on the way too; how many there were."""
        fired = 0
        times, codes, heap = self._times, self._codes, self._heap
        start, stop = self._at, bisect_right(times, up_to)
        for place in range(start, stop):
            time, code = times[place], codes[place]
            if heap and heap[0] < (time, code):
                fired += self._fire_ready(call, (time, code))
            self._at = place + 1
            if self._cancelled and (time, code) in self._cancelled:
                self._cancelled.discard((time, code))
            else:
                fired += 1
                call(code, time)
        return fired + self._fire_ready(call, (up_to, len(self._touched)))

    @property
    def next(self) -> int:
        """The time of the first one that can fire now; the end of time if there is none."""
        due = self._times[self._at] if self._at < len(self._times) else END_OF_TIME
        return min(due, self._heap[0][0]) if self._heap else due

    def write(self) -> None:
        """Put what was asked for into state, and drop what time has passed."""
        if self._later_times:
            codes, times, wanted = self._last_wish()
            self._timers.delete(self._touched, codes[~wanted], times[~wanted])
            self._timers.put(self._touched, codes[wanted], times[wanted], self._reached)
        self._timers.forget(self._reached)

    def _take_up(self, found: Sequence[tuple[list[pa.Array], Integers]]) -> None:
        keys = [pa.concat_arrays(column) for column in zip(*(k for k, _ in found), strict=True)]
        times = np.concatenate([t for _, t in found])
        # Set at two moments, a timer may have been found at two levels; it is one.
        codes, times = in_order(self._touched.codes_by_hash(keys), times)
        self._times, self._codes = times.tolist(), codes.tolist()
        self._at, self._due_set = 0, None

    def _catch_up(self) -> None:
        """What early rows asked for is not for later any more if time has come to it."""
        asked = list(zip(self._later_codes, self._later_times, strict=True))
        deleted = set(self._deleted)
        self._later_codes, self._later_times, self._deleted = array("q"), array("q"), []
        for place, (code, time_us) in enumerate(asked):
            (self.delete if place in deleted else self.set)(code, time_us)

    def _fire_ready(self, call: Callable[[int, int], Any], end: tuple[int, int]) -> int:
        heap, ready, fired = self._heap, self._ready, 0
        while heap and heap[0] <= end:
            pair = heappop(heap)
            if pair in ready:
                ready.discard(pair)
                fired += 1
                call(pair[1], pair[0])
                if self._reached == END_OF_TIME:
                    self._count_chain()
        return fired

    def _count_chain(self) -> None:
        """Where all time has come, a timer that always sets the next one would never end."""
        self._chained += 1
        if self._chained > _LONGEST_CHAIN * (1 + len(self._touched)):
            raise UserCodeError(
                "The input has ended, so every timer fires at once, and on_timer goes on setting the next one. Set none"
                " when ctx.watermark is the last instant there is: ctx.watermark.year == 9999."
            )

    def _unask(self) -> None:
        """Take back what was asked for last."""
        self._later_codes.pop()
        self._later_times.pop()
        if self._deleted and self._deleted[-1] == len(self._later_times):
            self._deleted.pop()

    def _is_due(self, pair: tuple[int, int]) -> bool:
        if self._at >= len(self._times):
            return False
        if self._due_set is None:
            self._due_set = set(zip(self._times, self._codes, strict=True))
        if pair not in self._due_set:
            return False
        # What has fired already can be set anew.
        start, stop = bisect_left(self._times, pair[0]), bisect_right(self._times, pair[0])
        return bisect_left(self._codes, pair[1], start, stop) >= self._at

    def _remember(self, pairs: Pairs, pair: tuple[int, int]) -> None:
        pairs.add(pair)
        if self._journal is not None:
            self._journal.append((pairs.discard, pair))

    def _forget(self, pairs: Pairs, pair: tuple[int, int]) -> None:
        pairs.discard(pair)
        if self._journal is not None:
            self._journal.append((pairs.add, pair))

    def _last_wish(self) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
        """For each key and time what was asked for last."""
        codes = np.array(self._later_codes, np.int64)
        times = np.array(self._later_times, np.int64)
        wanted = np.ones(len(codes), np.bool_)
        if not self._deleted:
            return codes, times, wanted
        wanted[self._deleted] = False
        # Backwards, the first of a pair is what was asked for last.
        order = np.lexsort((-np.arange(len(codes)), times, codes))
        kept = order[changes(codes[order], times[order])]
        return codes[kept], times[kept], wanted[kept]
