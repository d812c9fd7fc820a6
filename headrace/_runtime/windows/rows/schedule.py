"""Cells by the time at which something is to be done about them, so that none is looked at before.

Times are cut into slices, and slices lie around a wheel of buckets: whoever moves time on looks at the buckets
between, whatever else exists. One wheel for event time, one for the clock. An entry holds the time and, apart from
it, the next timer: the other reason to look at a cell is that its window is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowProcess
from headrace._runtime.operator import Outlook
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.rows.layout import DUE
from headrace.triggers.builtin import NONE
from headrace.triggers.trigger import Trigger
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["CLOCK_WHEEL", "EVENT_WHEEL", "Schedule"]

Integers = npt.NDArray[np.int64]

_BUCKETS = 256
#: The first bucket of each wheel.
EVENT_WHEEL = 0
CLOCK_WHEEL = _BUCKETS

_SECOND_US = 1_000_000
#: Slices in the length of a window. Only cells of the slice that time is in are looked at in vain.
_SLICES = 64


class Schedule:
    """Both wheels of one shard."""

    def __init__(self, node: WindowProcess, state: ShardState) -> None:
        self._state = state
        self._slice_us = max(1, min(_lengths(node), default=_SECOND_US) // _SLICES)

    def due(
        self, wheel: int, before: int, reached: int
    ) -> Iterator[tuple[npt.NDArray[np.uint64], list[pa.Array]]]:
        """Hashes and keys of the cells whose time is not behind `reached`; up to `before` all was done."""
        for bucket in self._between(wheel, before, reached):
            table = self._state.table(DUE, bucket)
            slots = table.live()
            slots = slots[table.values("time")[slots] <= reached]
            if len(slots):
                yield table.hashes(slots), table.keys(slots)

    def move(
        self, wheel: int, cells: Table, slots: Integers, old: Integers, new: Integers,
        timers: Integers,
    ) -> None:  # fmt: skip
        """The cells in these slots are due at other times than before; `NONE` is never."""
        was, will = self._buckets(wheel, old), self._buckets(wheel, new)
        for bucket, places in _grouped(was, (old != NONE) & ((was != will) | (new == NONE))):
            table = self._state.table(DUE, bucket)
            there = slots[places]
            table.remove(table.find(cells.hashes(there), cells.keys(there)))
        for bucket, places in _grouped(will, new != NONE):
            table = self._state.table(DUE, bucket)
            there = slots[places]
            found, _ = table.upsert(cells.hashes(there), cells.keys(there))
            table.values("time")[found] = new[places]
            table.values("timer")[found] = timers[places]
            table.touch(found)

    def outlook(self) -> Outlook:
        """The next timers; what happens at the end of time is nothing to wait for."""
        fires_at, keys, due = None, 0, None
        for bucket in self._state.buckets(DUE):
            table = self._state.table(DUE, bucket)
            timers = table.values("timer")[table.live()]
            timers = timers[(timers != NONE) & (timers != END_OF_TIME)]
            if not len(timers):
                continue
            least = int(timers.min())
            if bucket >= CLOCK_WHEEL:
                due = least if due is None else min(due, least)
            elif fires_at is None or least < fires_at:
                fires_at, keys = least, int((timers == least).sum())
            elif least == fires_at:
                keys += int((timers == least).sum())
        return Outlook(fires_at, keys, due)

    def _between(self, wheel: int, before: int, reached: int) -> list[int]:
        live = [b for b in self._state.buckets(DUE) if wheel <= b < wheel + _BUCKETS]
        first, last = before // self._slice_us, reached // self._slice_us
        if before == NO_WATERMARK or last - first >= _BUCKETS:
            return live
        passed = {wheel + number % _BUCKETS for number in range(first, last + 1)}
        return [bucket for bucket in live if bucket in passed]

    def _buckets(self, wheel: int, times: Integers) -> Integers:
        return wheel + times // self._slice_us % _BUCKETS


def _grouped(buckets: Integers, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, Integers]]:
    """The chosen places, bucket by bucket."""
    places = np.flatnonzero(chosen)
    if not len(places):
        return
    first = int(buckets[places[0]])
    if (buckets[places] == first).all():
        yield first, places
        return
    places = places[np.argsort(buckets[places], kind="stable")]
    edges = np.flatnonzero(np.diff(buckets[places])) + 1
    for group in np.split(places, edges):
        yield int(buckets[group[0]]), group


def _lengths(node: WindowProcess) -> list[int]:
    """How far apart times may be that matter: windows, gaps, intervals."""
    found = [getattr(node.window, name, None) for name in ("slide_us", "gap_us")]
    return [length for length in [*found, *_intervals(node.trigger)] if length]


def _intervals(trigger: Trigger | None) -> Sequence[int | None]:
    names = ("every_us", "early_every_us", "late_every_us")
    own = [getattr(trigger, name, None) for name in names]
    return [*own, *(i for part in getattr(trigger, "parts", ()) for i in _intervals(part))]
