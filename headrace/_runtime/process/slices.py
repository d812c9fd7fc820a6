"""Things to come, kept in slices of time so that only those that time passes are looked at.

What lies near is in slices of a second, what lies far in longer ones: a level holds at most `_WIDTH` slices or so, each
a bucket of the level's own table, and is dropped as a whole when time has left it.

    now              +64 s                    +68 min                  +3 days
     |-- seconds --|-- slices of 64 s --|-- slices of 68 min --| ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from headrace._runtime.state import ShardState, Table
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["LEVELS", "Slices", "grouped"]

Integers = npt.NDArray[np.int64]

_WIDTH = 64
LEVELS = 5
#: Microseconds in a slice of each level: a second, a minute, an hour, three days, two hundred days.
_SLICES = [1_000_000 * _WIDTH**level for level in range(LEVELS)]


class Slices:
    """The buckets of one kind of thing."""

    def __init__(self, name: str, state: ShardState) -> None:
        self._names = [f"{name}:{level}" for level in range(LEVELS)]
        self._state = state

    def are_gone(self) -> bool:
        """Whether there is none."""
        return not any(self._state.buckets(name) for name in self._names)

    def until(self, reached: int) -> Iterator[Table]:
        """Those in which something may have come by this time."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            for bucket in self._state.buckets(name):
                if bucket <= reached // slice_us:
                    yield self._state.table(name, bucket)

    def levels(self) -> Iterator[Iterator[Table]]:
        """All, level by level, each from the next slice on."""
        for name in self._names:
            yield (self._state.table(name, bucket) for bucket in self._state.buckets(name))

    def of(self, times: Integers) -> Iterator[tuple[Table, Integers]]:
        """Those in which things of these times may be, and the places of the times in each."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            live = set(self._state.buckets(name))
            for bucket, places in grouped(times // slice_us, np.arange(len(times))):
                if bucket in live:
                    yield self._state.table(name, bucket), places

    def choose(self, times: Integers, now: int) -> Iterator[tuple[Table, Integers]]:
        """Where to put things of these times, all after `now`, and the places of the times in each."""
        # Before the first watermark nothing is near; then the nearest stands for the present.
        origin = int(times.min()) if now == NO_WATERMARK else now
        levels = np.zeros(len(times), np.int64)
        for level in range(1, LEVELS):
            # Counted in slices and not in time, so that a level has no more buckets than that.
            slice_us = _SLICES[level - 1]
            levels[times // slice_us - origin // slice_us > _WIDTH] = level
        for level in np.unique(levels).tolist():
            chosen = np.flatnonzero(levels == level)
            for bucket, places in grouped(times[chosen] // _SLICES[level], chosen):
                yield self._state.table(self._names[level], bucket), places

    def forget(self, reached: int) -> None:
        """Drop those that time has left."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            horizon = reached // slice_us + (reached == END_OF_TIME)
            live = self._state.buckets(name)
            if live and live[0] < horizon:
                self._state.drop_before(name, horizon)


def grouped(numbers: Integers, places: Integers) -> Iterator[tuple[int, Integers]]:
    """The places of each number."""
    order = np.argsort(numbers, kind="stable")
    numbers, places = numbers[order], places[order]
    edges = np.flatnonzero(np.diff(numbers)) + 1
    starts: Sequence[int] = np.concatenate([[0], edges]).tolist()
    for group, start in zip(np.split(places, edges), starts, strict=True):
        yield int(numbers[start]), group
