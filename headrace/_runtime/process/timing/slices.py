"""Things to come, kept in slices of time so that only those that time passes are looked at.

What lies near is in slices of a second, what lies far in longer ones: a level holds at most `_WIDTH` slices or so, each
a bucket of the level's own table, and is dropped as a whole when time has left it.

    now              +64 s                    +68 min                  +3 days
     |-- seconds --|-- slices of 64 s --|-- slices of 68 min --| ...
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from headrace._runtime.state import ShardState, Table
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["LEVELS", "Slices"]

Integers = npt.NDArray[np.int64]
#: A table, and the start and stop of what belongs there.
Run = tuple[Table, int, int]

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

    def of(self, times: Integers) -> Iterator[Run]:
        """Those in which things of these times, which are in order, may be, with the start and stop of each."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            live = set(self._state.buckets(name))
            for bucket, start, stop in _runs(times // slice_us):
                if bucket in live:
                    yield self._state.table(name, bucket), start, stop

    def choose(self, times: Integers, now: int) -> Iterator[Run]:
        """Where to put things of these times, which are in order and after `now`, with the start and stop of each."""
        # Before the first watermark nothing is near; then the nearest stands for the present.
        origin = int(times[0]) if now == NO_WATERMARK else now
        start = 0
        for level, (name, slice_us) in enumerate(zip(self._names, _SLICES, strict=True)):
            # Counted in slices and not in time, so that a level has no more buckets than that.
            beyond = (origin // slice_us + _WIDTH + 1) * slice_us
            last = level == LEVELS - 1 or beyond > int(times[-1])
            stop = len(times) if last else int(np.searchsorted(times, beyond))
            for bucket, first, end in _runs(times[start:stop] // slice_us):
                yield self._state.table(name, bucket), start + first, start + end
            if last:
                return
            start = stop

    def forget(self, reached: int) -> None:
        """Drop those that time has left."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            horizon = reached // slice_us + (reached == END_OF_TIME)
            live = self._state.buckets(name)
            if live and live[0] < horizon:
                self._state.drop_before(name, horizon)


def _runs(buckets: Integers) -> Iterator[tuple[int, int, int]]:
    """Each bucket with its start and stop; they are in order."""
    if len(buckets):
        edges = (np.flatnonzero(buckets[1:] != buckets[:-1]) + 1).tolist()
        starts = [0, *edges]
        yield from zip(buckets[starts].tolist(), starts, [*edges, len(buckets)], strict=True)
