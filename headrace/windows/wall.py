"""The wall clock of a time zone, for whole arrays: what it shows, and when it first shows a time.

A clock that is set back shows times twice. Here it never goes back: it stands at the latest time it has shown until
that time comes again. So each time on the wall has one instant, the first at which the clock there shows it or
a later one, and the two functions below are inverse to each other where the clock neither stands nor jumps:

    shown(t) >= w   if and only if   t >= first_shown(w)

    Berlin, 26 October 2025:  01:59  02:00 ... 02:59 | stands for an hour | 03:00
    Berlin, 30 March 2025:    01:59 | 03:00            first_shown(02:30) is the instant of the jump

Both are made of the few changes of the zone's offset around the times asked for, which are looked up once a
process; nothing is done row by row. Outside of the years that `datetime` has, the nearest offset holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

__all__ = ["Wall", "wall_of"]

Integers = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US = 1_000_000
_DAY_US = 24 * 3600 * _SECOND_US
#: Changes are looked up for about a year at a time: 2**45 us.
_BLOCK_BITS = 45
#: Further apart no two clocks on earth are, nor was a clock ever set by more.
_REACH_US = 2 * _DAY_US
#: No zone changed its offset and changed it back in less.
_SAMPLE_US = _DAY_US // 4
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) + _REACH_US
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) - _REACH_US


@dataclass(frozen=True)
class _Block:
    """Stretches of one offset each: since when, the offset, and the latest time shown before."""

    since: Integers
    offsets: Integers
    peaks: Integers


class Wall:
    """The clock of one zone. Times are int64 microseconds since 1970, in UTC and on the wall."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._blocks: dict[int, _Block] = {}

    def shown(self, instants: Integers) -> Integers:
        """The latest time that the clock has shown at each instant."""
        walls = np.empty_like(instants)
        for block, places in self._by_block(instants):
            times = instants[places]
            at = np.searchsorted(block.since, times, side="right") - 1
            walls[places] = np.maximum(times + block.offsets[at], block.peaks[at])
        return walls

    def first_shown(self, walls: Integers) -> Integers:
        """The first instant at which the clock shows each time or a later one."""
        instants = np.empty_like(walls)
        for block, places in self._by_block(walls):
            times = walls[places]
            # The stretch before the first one whose predecessors have all shown less.
            at = np.searchsorted(block.peaks, times, side="left") - 1
            instants[places] = np.maximum(times - block.offsets[at], block.since[at])
        return instants

    def shown_at(self, instant: int) -> int:
        """`shown` of one instant, which may be any integer."""
        inside = min(max(instant, _FIRST_US), _LAST_US)
        return int(self.shown(np.array([inside]))[0]) + instant - inside

    def first_shown_at(self, wall: int) -> int:
        """`first_shown` of one time, which may be any integer."""
        inside = min(max(wall, _FIRST_US), _LAST_US)
        return int(self.first_shown(np.array([inside]))[0]) + wall - inside

    def _by_block(self, times: Integers) -> list[tuple[_Block, slice | npt.NDArray[np.bool_]]]:
        if not len(times):
            return []
        low, high = int(times.min()) >> _BLOCK_BITS, int(times.max()) >> _BLOCK_BITS
        if low == high:
            return [(self._block(low), slice(None))]
        numbers = times >> _BLOCK_BITS
        return [(self._block(int(number)), numbers == number) for number in np.unique(numbers)]

    def _block(self, number: int) -> _Block:
        if number not in self._blocks:
            start = number << _BLOCK_BITS
            self._blocks[number] = self._looked_up(start, start + (1 << _BLOCK_BITS))
        return self._blocks[number]

    def _looked_up(self, start: int, end: int) -> _Block:
        """The stretches that matter for instants or times on the wall in [start, end)."""
        first, last = (
            min(max(t, _FIRST_US), _LAST_US) for t in (start - _REACH_US, end + _REACH_US)
        )
        since, offsets = [_FAR_BEHIND], [self._offset(first)]
        for sample in range(first + _SAMPLE_US, last + _SAMPLE_US, _SAMPLE_US):
            if self._offset(min(sample, last)) != offsets[-1]:
                since.append(self._change(sample - _SAMPLE_US, min(sample, last)))
                offsets.append(self._offset(since[-1]))
        tops = [later - 1 + offset for later, offset in zip(since[1:], offsets, strict=False)]
        peaks = np.maximum.accumulate(np.array([_FAR_BEHIND, *tops], np.int64))
        return _Block(np.array(since, np.int64), np.array(offsets, np.int64), peaks)

    def _change(self, low: int, high: int) -> int:
        """The first instant at which the offset is no longer that of `low`."""
        before = self._offset(low)
        low, high = low // _SECOND_US, -(-high // _SECOND_US)
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle * _SECOND_US) == before:
                low = middle
            else:
                high = middle
        return high * _SECOND_US

    def _offset(self, instant: int) -> int:
        moment = (_EPOCH + timedelta(microseconds=instant)).astimezone(self._zone)
        offset = moment.utcoffset()
        assert offset is not None
        return offset // timedelta(microseconds=1)


#: Before everything that can be asked for, with room to subtract from it.
_FAR_BEHIND = -(2**62)


@cache
def wall_of(zone: str) -> Wall:
    """The clock of a zone; one for all."""
    return Wall(zone)
