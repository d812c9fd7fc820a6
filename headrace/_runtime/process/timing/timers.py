"""Timers of one time domain: by key and time, in slices of time (`slices`).

Firing writes nothing. What is not after the present has fired: a timer that is there although its time has passed
is over, and its slice is dropped as a whole when time has left it. Only `delete` removes a single one. Set at two
moments, one timer may lie at two levels; it is one when it fires, and both go when it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.process.timing.slices import LEVELS, Slices
from headrace._runtime.state import ShardState, TableSpec
from headrace.keys import extend_hashes

__all__ = ["Due", "Numbered", "Timers", "changes", "in_order", "timer_tables"]

Integers = npt.NDArray[np.int64]

_TIME = pa.field("__time", pa.int64())
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
    return tuple(TableSpec(f"{name}:{level}", both) for level in range(LEVELS))


class Timers:
    """The timers of one shard in one time domain."""

    def __init__(self, name: str, state: ShardState) -> None:
        self._slices = Slices(name, state)

    def due(self, before: int, reached: int) -> Iterator[Due]:
        """Keys and times of those that become due; some may come twice."""
        for table in self._slices.until(reached):
            slots = table.live()
            times = table.key(-1, slots).to_numpy()
            chosen = (times > before) & (times <= reached)
            if chosen.any():
                slots = slots[chosen]
                columns = range(len(table.key_columns) - 1)
                yield [table.key(place, slots) for place in columns], times[chosen]

    def forget(self, reached: int) -> None:
        """Drop the slices that time has left."""
        self._slices.forget(reached)

    def put(self, touched: Numbered, codes: Integers, times: Integers, now: int) -> None:
        """Set timers, all after `now`; those of one key and time are one."""
        if not len(codes):
            return
        codes, times = in_order(codes, times)
        hashes = extend_hashes(touched.hashes(codes), [pa.array(times)])
        columns = [*touched.columns(codes), pa.array(times)]
        for table, start, stop in self._slices.choose(times, now):
            keys = [column.slice(start, stop - start) for column in columns]
            table.upsert(hashes[start:stop], keys)

    def delete(self, touched: Numbered, codes: Integers, times: Integers) -> None:
        """Take timers away, where they are."""
        if not len(codes):
            return
        codes, times = in_order(codes, times)
        hashes = extend_hashes(touched.hashes(codes), [pa.array(times)])
        columns = [*touched.columns(codes), pa.array(times)]
        for table, start, stop in self._slices.of(times):
            keys = [column.slice(start, stop - start) for column in columns]
            slots = table.find(hashes[start:stop], keys)
            table.remove(slots[slots >= 0])

    def next(self, reached: int) -> tuple[int | None, int]:
        """The time of the next one, and how many there are then."""
        least, many = None, 0
        for tables in self._slices.levels():
            for table in tables:
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
