"""When something happens to a key: an index by time that is not moved when sessions grow.

An entry says: look at this key when time reaches `at`. A session that grows leaves its entry alone; when that comes
up, the key is looked at, and gets another entry for what it then waits for. The head of a key has the `at` of its
valid entry, others are stale and skipped.

Entries are kept by slices of time, wide in the far future and narrow near by, so that there are some hundred of
them whatever the times:

    now |--|--|----|----|--------|--------|----------------|----------------|---> time

When time reaches the beginning of a slice, those of its entries that are not due yet move to narrower ones.
An entry moves a few times in its life; what is far away costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState
from headrace._runtime.windows.sessions.intervals import Integers, distinct, openings
from headrace._runtime.windows.sessions.layout import AT, DUE
from headrace._runtime.windows.sessions.store import SessionTable
from headrace.watermarks import END_OF_TIME

__all__ = ["Due", "slice_starts"]

Hashes = npt.NDArray[np.uint64]

#: A slice is at most 1 / 2**3 as wide as it is far away.
_FAR_BITS = 3
#: And at least 1 / 2**3 of what time moves in an epoch.
_NEAR_BITS = 3
#: Before this there is no time yet.
_NO_TIME = -(2**62)


class Due:
    """The entries of one shard."""

    def __init__(self, state: ShardState, sessions: SessionTable) -> None:
        self._state = state
        self._sessions = sessions

    def add(self, heads: Integers, at: Integers, now: int, step: int) -> None:
        """Look at the keys with these distinct heads then, which is behind `now`; not when it was said before."""
        if not heads.size:
            return
        rows = self._sessions.rows
        rows.put(AT, heads, at)
        self._enter(rows.hashes(heads), self._sessions.keys(heads), at, now, step)

    def take(self, now: int, step: int) -> Integers:
        """The heads of keys to be looked at now, in order. Slices that came up are gone afterwards."""
        reached = [start for start in self._state.buckets(DUE) if start <= now]
        if not reached:
            return np.empty(0, np.int64)
        due, waiting = [], []
        for start in reached:
            table = self._state.table(DUE, start)
            slots = table.live()
            hashes, keys, at = table.hashes(slots), table.keys(slots), table.get(AT, slots)
            heads = self._sessions.find_heads(hashes, keys)
            valid = (heads >= 0) & (self._sessions.rows.get(AT, heads) == at)
            due.append(heads[valid & (at <= now)])
            rest = np.flatnonzero(valid & (at > now))
            if rest.size:
                waiting.append((hashes[rest], [k.take(pa.array(rest)) for k in keys], at[rest]))
        self._state.drop_before(DUE, min(now + 1, END_OF_TIME))
        for hashes, keys, at in waiting:
            self._enter(hashes, keys, at, now, step)
        return distinct(np.concatenate(due))

    def next(self) -> tuple[int, int] | None:
        """The earliest time of the next slice, and how many entries it has; None if there are none."""
        starts = self._state.buckets(DUE)
        if not starts:
            return None
        table = self._state.table(DUE, starts[0])
        return int(np.min(table.get(AT, table.live()))), table.size

    def _enter(
        self, hashes: Hashes, keys: Sequence[pa.Array], at: Integers, now: int, step: int
    ) -> None:
        if now < _NO_TIME:
            now = min([int(at.min()), *self._state.buckets(DUE)[:1]]) - 1
        starts = slice_starts(at, now, step)
        order = np.argsort(starts, kind="stable")
        edges = [*openings(starts[order]).tolist(), len(order)]
        for first, last in pairwise(edges):
            rows = order[first:last]
            table = self._state.table(DUE, int(starts[rows[0]]))
            places = pa.array(rows)
            slots, _ = table.upsert(hashes[rows], [key.take(places) for key in keys])
            # An entry of the same key is stale, since this one is valid.
            table.put(AT, slots, at[rows])


def slice_starts(at: Integers, now: int, step: int) -> Integers:
    """The beginning of the slice of each time: behind `now`, and not behind the time."""
    _, exponents = np.frexp((at - now).astype(np.float64))
    near = max(0, step.bit_length() - 1 - _NEAR_BITS)
    bits = np.maximum(exponents.astype(np.int64) - 1 - _FAR_BITS, near)
    starts: Integers = np.maximum((at >> bits) << bits, now + 1)
    return starts
