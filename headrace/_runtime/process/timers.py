"""Timers of one time domain: by key and time, in slices of time.

A timer lies in a bucket of the level that fits its distance from the present: near ones in slices of a second,
far ones in longer slices, at most `_WIDTH` or so buckets a level. Whoever moves time looks at the slices that it passes,
so the cost is that of the timers in them, whatever else is pending.

Firing writes nothing. What is not after the present has fired: a timer that is there although its time has passed
is over, and its slice is dropped as a whole when time has left it. Only `delete` removes a single one. Set at two
moments, one timer may lie at two levels; it is one when it fires, and both go when it is deleted.

    now                +1 s            +64 s                 +68 min
     |-- level 0: s --|-- level 1: 64 s slices --|-- level 2: 68 min slices --| ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState, TableSpec
from headrace.keys import extend_hashes
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["Due", "Numbered", "Timers", "changes", "in_order", "timer_tables"]

Integers = npt.NDArray[np.int64]

_TIME = pa.field("__time", pa.int64())
_WIDTH = 64
_LEVELS = 5
#: Microseconds in a slice of each level: a second, a minute, an hour, three days, two hundred days.
_SLICES = [1_000_000 * _WIDTH**level for level in range(_LEVELS)]
#: Bits of a number that is not negative.
_WORD = 63

#: Key columns and times.
Due = tuple[list[pa.Array], Integers]


class Numbered(Protocol):
    """Keys by their codes."""

    def hashes(self, codes: Integers, /) -> npt.NDArray[np.uint64]:
        """The hashes of these keys."""

    def columns(self, codes: Integers, /) -> list[pa.Array]:
        """The key columns of these keys."""


def timer_tables(name: str, keys: pa.Schema) -> tuple[TableSpec, ...]:
    """The tables of the timers with this name."""
    both = pa.schema([*keys, _TIME])
    return tuple(TableSpec(f"{name}:{level}", both) for level in range(_LEVELS))


class Timers:
    """The timers of one shard in one time domain."""

    def __init__(self, name: str, state: ShardState) -> None:
        self._names = [f"{name}:{level}" for level in range(_LEVELS)]
        self._state = state

    def due(self, before: int, reached: int) -> Iterator[Due]:
        """Keys and times of those that become due; some may come twice."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            last = reached // slice_us
            for bucket in self._state.buckets(name):
                if bucket > last:
                    break
                table = self._state.table(name, bucket)
                slots = table.live()
                times = table.key(-1, slots).to_numpy()
                chosen = (times > before) & (times <= reached)
                if chosen.any():
                    slots = slots[chosen]
                    columns = range(len(table.key_columns) - 1)
                    yield [table.key(place, slots) for place in columns], times[chosen]

    def forget(self, reached: int) -> None:
        """Drop the slices that time has left."""
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            horizon = reached // slice_us + (reached == END_OF_TIME)
            live = self._state.buckets(name)
            if live and live[0] < horizon:
                self._state.drop_before(name, horizon)

    def put(self, touched: Numbered, codes: Integers, times: Integers, now: int) -> None:
        """Set timers, all after `now`; those of one key and time are one."""
        if not len(codes):
            return
        codes, times = in_order(codes, times)
        hashes = extend_hashes(touched.hashes(codes), [pa.array(times)])
        columns = touched.columns(codes)
        for name, bucket, start, stop in _slices(self._names, times, now):
            keys = [column.slice(start, stop - start) for column in columns]
            moments = pa.array(times[start:stop])
            self._state.table(name, bucket).upsert(hashes[start:stop], [*keys, moments])

    def delete(self, touched: Numbered, codes: Integers, times: Integers) -> None:
        """Take timers away, where they are."""
        if not len(codes):
            return
        codes, times = in_order(codes, times)
        hashes = extend_hashes(touched.hashes(codes), [pa.array(times)])
        columns = [*touched.columns(codes), pa.array(times)]
        for name, slice_us in zip(self._names, _SLICES, strict=True):
            live = set(self._state.buckets(name))
            for bucket, start, stop in _runs(times // slice_us):
                if bucket in live:
                    table = self._state.table(name, bucket)
                    keys = [column.slice(start, stop - start) for column in columns]
                    slots = table.find(hashes[start:stop], keys)
                    table.remove(slots[slots >= 0])

    def next(self, reached: int) -> tuple[int | None, int]:
        """The time of the next one, and how many there are then."""
        least, many = None, 0
        for name in self._names:
            for bucket in self._state.buckets(name):
                table = self._state.table(name, bucket)
                times = table.key(-1, table.live()).to_numpy()
                times = times[times > reached]
                if not len(times):
                    continue
                first = int(times.min())
                if least is None or first < least:
                    least, many = first, int((times == first).sum())
                elif first == least:
                    many += int((times == first).sum())
                break
        return least, many


def changes(codes: Integers, times: Integers) -> npt.NDArray[np.bool_]:
    """In pairs that are in order, where another one begins."""
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
    return first


def in_order(codes: Integers, times: Integers) -> tuple[Integers, Integers]:
    """Each pair once, in order of time and then of code."""
    low, high, width = int(times.min()), int(times.max()), int(codes.max()).bit_length()
    if (high - low).bit_length() + width > _WORD:
        order = np.lexsort((codes, times))
        codes, times = codes[order], times[order]
        first = changes(codes, times)
        return codes[first], times[first]
    # A pair in one word: numbers are sorted much faster than pairs.
    pairs = ((times - low) << width) | codes
    pairs.sort()
    first = np.ones(len(pairs), np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
    if not first.all():
        pairs = pairs[first]
    return pairs & ((1 << width) - 1), (pairs >> width) + low


def _slices(names: Sequence[str], times: Integers, now: int) -> Iterator[tuple[str, int, int, int]]:
    """Table, bucket, start and stop of these times, which are in order."""
    # Before the first watermark nothing is near; then the nearest timer stands for the present.
    origin = int(times[0]) if now == NO_WATERMARK else now
    start = 0
    for level, (name, slice_us) in enumerate(zip(names, _SLICES, strict=True)):
        # In slices and not in time, so that a level has no more buckets than that.
        beyond = (origin // slice_us + _WIDTH + 1) * slice_us
        last = level == _LEVELS - 1 or beyond > int(times[-1])
        stop = len(times) if last else int(np.searchsorted(times, beyond))
        for bucket, first, end in _runs(times[start:stop] // slice_us):
            yield name, bucket, start + first, start + end
        if last:
            return
        start = stop


def _runs(buckets: Integers) -> Iterator[tuple[int, int, int]]:
    """Each bucket with its start and stop; they are in order."""
    if len(buckets):
        edges = (np.flatnonzero(buckets[1:] != buckets[:-1]) + 1).tolist()
        starts = [0, *edges]
        yield from zip(buckets[starts].tolist(), starts, [*edges, len(buckets)], strict=True)
