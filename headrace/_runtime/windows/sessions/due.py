"""When something happens to a key: an index by time that is not moved when sessions grow.

An entry says: look at this key when time reaches `at`. A session that grows leaves its entry alone; when that comes
up, the key is looked at, and gets another entry for what it then waits for. The head of a key has the `at` of its
valid entry, others are stale and skipped.

Entries are kept by slices of time, wide in the far future and narrow near by, so that there are some hundred of
them whatever the times:

    now |--|--|----|----|--------|--------|----------------|----------------|---> time

Of a slice that time has reached those entries are taken whose time has come; the others stay for some epochs, or
move to a narrower slice if they are still far away. So what is far away costs nothing, and nothing is removed one by
one: a slice goes as a whole when all its times have passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.sessions.intervals import Integers, distinct, openings
from headrace._runtime.windows.sessions.layout import AT, DUE
from headrace._runtime.windows.sessions.store import SessionTable

__all__ = ["Due", "slice_starts"]

Hashes = npt.NDArray[np.uint64]

#: A slice is at most 1 / 2**3 as wide as it is far away, and at least half of what time moves in an epoch.
_FAR_BITS = 3
_NEAR_BITS = 1
#: Entries of a slice that time has reached stay in it if they are due within so many epochs.
_EPOCHS = 6
#: All move if more than one of so many is not.
_SHARE = 4
#: Before this there is no time yet.
_NO_TIME = -(2**62)
_NONE = np.empty(0, np.int64)


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

    def take(self, before: int, now: int) -> Integers:
        """The heads of keys to be looked at because time moved from `before` to `now`, in order."""
        starts = (
            [start for start in self._state.buckets(DUE) if start <= now] if now > before else []
        )
        step = 0 if before < _NO_TIME else now - before
        reached = [self._state.table(DUE, start) for start in starts]
        times = [np.asarray(table.get(AT, table.live())) for table in reached]
        heads = [
            self._valid(table, table.live()[(at > before) & (at <= now)])[0]
            for table, at in zip(reached, times, strict=True)
        ]
        left = [int(np.count_nonzero(at > now)) for at in times]
        far = sum(int(np.count_nonzero(at > now + _EPOCHS * step)) for at in times)
        if far * _SHARE > sum(left):
            for table, at in zip(reached, times, strict=True):
                self._move(table, table.live()[at > now], now, step)
            left = [0] * len(left)
        passed = list(takewhile(lambda pair: not pair[1], zip(starts, left, strict=True)))
        if passed:
            self._state.drop_before(DUE, passed[-1][0] + 1)
        return distinct(np.concatenate(heads)) if heads else _NONE

    def next(self, now: int) -> tuple[int, int] | None:
        """The earliest time behind `now` of the next slice, and how many entries it has; None if there are none."""
        for start in self._state.buckets(DUE):
            table = self._state.table(DUE, start)
            at = np.asarray(table.get(AT, table.live()))
            at = at[at > now]
            if at.size:
                return int(at.min()), at.size
        return None

    def _valid(self, table: Table, slots: Integers) -> tuple[Integers, Integers]:
        """The heads of the keys of entries, and the entries, without those that are stale."""
        heads = self._sessions.find_heads(table.hashes(slots), table.keys(slots))
        valid = (heads >= 0) & (self._sessions.rows.get(AT, heads) == table.get(AT, slots))
        return heads[valid], slots[valid]

    def _move(self, table: Table, slots: Integers, now: int, step: int) -> None:
        _, slots = self._valid(table, slots)
        at = np.asarray(table.get(AT, slots))
        self._enter(table.hashes(slots), table.keys(slots), at, now, step)

    def _enter(
        self, hashes: Hashes, keys: Sequence[pa.Array], at: Integers, now: int, step: int
    ) -> None:
        if not len(at):
            return
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
