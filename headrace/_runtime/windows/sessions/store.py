"""The table of sessions: rows by key and number.

    key a    number 0                    one session, as nearly all keys have
    key b    number 0, 1, 3              three; `more` of number 0 says that 3 is the highest, 2 is free
    key c    number 0 (hollow), 1        the session with number 0 is over, the other is not

Number 0 of a key is its *head*: found by the key alone, it leads to the others. A session keeps its number, and
so its slot, for as long as it lives; looking at a key costs as much as it has numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.sessions.intervals import Integers, Mask, openings
from headrace._runtime.windows.sessions.layout import AT, END, HOLLOW, MORE, SESSIONS
from headrace.keys import extend_hashes

__all__ = ["Held", "SessionTable", "free_numbers"]

Hashes = npt.NDArray[np.uint64]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Held:
    """The sessions of some keys."""

    #: Slots of number 0 of each key, in order.
    heads: Integers
    #: Of each session: the place of its key in `heads`, its number, its slot.
    owners: Integers
    numbers: Integers
    slots: Integers
    #: Numbers below the highest of their key that are free, in order of key and number.
    free_owners: Integers
    free: Integers


class SessionTable:
    """The sessions of one shard."""

    def __init__(self, state: ShardState) -> None:
        self._state = state

    @property
    def rows(self) -> Table:
        """The table itself."""
        return self._state.table(SESSIONS, 0)

    @property
    def is_empty(self) -> bool:
        """Whether there is no session."""
        return not self._state.buckets(SESSIONS)

    def keys(self, slots: Integers) -> list[pa.Array]:
        """The key columns of sessions."""
        return self.rows.keys(slots)[:-1]

    def find_heads(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Integers:
        """The slot of number 0 of each key, -1 where the key has no session."""
        return self.rows.find(hashes, [*keys, _numbers(np.zeros(len(hashes), np.int64))])

    def held_by(self, heads: Integers) -> Held:
        """All sessions of the keys with these heads, which are distinct and in order."""
        hollow = self.rows.get(END, heads) == HOLLOW
        own = np.flatnonzero(~hollow)
        more = np.asarray(self.rows.get(MORE, heads), np.int64)
        many = np.flatnonzero(more)
        if not many.size:
            return Held(heads, own, np.zeros(own.size, np.int64), heads[own], _NONE, _NONE)
        owners = np.repeat(many, more[many])
        numbers = np.arange(owners.size) - np.repeat(np.cumsum(more[many]) - more[many], more[many])
        numbers += 1
        found = self._find(heads[owners], numbers)
        there = found >= 0
        free_owners = np.concatenate([np.flatnonzero(hollow), owners[~there]])
        free = np.concatenate([np.zeros(len(heads) - own.size, np.int64), numbers[~there]])
        order = np.lexsort((free, free_owners))
        return Held(
            heads,
            np.concatenate([own, owners[there]]),
            np.concatenate([np.zeros(own.size, np.int64), numbers[there]]),
            np.concatenate([heads[own], found[there]]),
            free_owners[order],
            free[order],
        )

    def open(
        self, owners: Integers, known: Mask, hashes: Hashes, keys: Sequence[pa.Array], held: Held
    ) -> tuple[Integers, Integers]:
        """New sessions: the slots of them and of the heads of their keys.

        `owners` tell the keys apart, in order: slots of heads where the key is `known`, else greater numbers.
        """
        used = np.zeros(len(owners), np.int64)
        used[known] = np.asarray(self.rows.get(MORE, owners[known]), np.int64) + 1
        numbers = free_numbers(owners, used, held.heads[held.free_owners], held.free)
        slots, _ = self.rows.upsert(_numbered(hashes, numbers), [*keys, _numbers(numbers)])
        firsts = openings(owners)
        # The first new session of an unknown key has number 0.
        heads = np.repeat(slots[firsts], np.diff(firsts, append=len(owners)))
        heads[known] = owners[known]
        further = numbers > 0
        if further.any():
            np.maximum.at(self.rows.values(MORE), heads[further], numbers[further].astype(np.int32))
            self.rows.touch(heads[further])
        return slots, heads

    def close(self, held: Held, over: Mask) -> None:
        """Remove sessions of these keys; a key without sessions goes with the last."""
        further = held.numbers > 0
        self.rows.remove(held.slots[over & further])
        more = np.zeros(len(held.heads), np.int32)
        left = np.flatnonzero(~over & further)
        np.maximum.at(more, held.owners[left], held.numbers[left].astype(np.int32))
        has_own = np.zeros(len(held.heads), np.bool_)
        has_own[held.owners[~over & ~further]] = True
        self.rows.remove(held.heads[~has_own & (more == 0)])
        changed = (has_own | (more > 0)) & (self.rows.get(MORE, held.heads) != more)
        self.rows.put(MORE, held.heads[changed], more[changed])
        self._hollow(held.heads[~has_own & (more > 0)])

    def _hollow(self, heads: Integers) -> None:
        """The sessions of these heads are over, others of their keys are not."""
        heads = heads[self.rows.get(END, heads) != HOLLOW]
        if not heads.size:
            return
        hashes, keys = self.rows.hashes(heads), self.rows.keys(heads)
        kept = [(name, self.rows.get(name, heads)) for name in (MORE, AT)]
        # A row that comes back has its initial values.
        self.rows.remove(heads)
        heads, _ = self.rows.upsert(hashes, keys)
        for name, values in kept:
            self.rows.put(name, heads, values)

    def _find(self, heads: Integers, numbers: Integers) -> Integers:
        hashes = _numbered(self.rows.hashes(heads), numbers)
        return self.rows.find(hashes, [*self.keys(heads), _numbers(numbers)])


def free_numbers(
    owners: Integers, used: Integers, free_owners: Integers, free: Integers
) -> Integers:
    """A number for each new session: the least that are free, then those from `used` on.

    Owners are in order; so are the free numbers, by owner and number.
    """
    firsts = openings(owners)
    ranks = np.arange(len(owners)) - np.repeat(firsts, np.diff(firsts, append=len(owners)))
    if not free.size:
        return used + ranks
    low = np.searchsorted(free_owners, owners, side="left")
    count = np.searchsorted(free_owners, owners, side="right") - low
    inside = ranks < count
    numbers = used + ranks - count
    numbers[inside] = free[(low + ranks)[inside]]
    return numbers


def _numbered(hashes: Hashes, numbers: Integers) -> Hashes:
    """The hashes of sessions: number 0 has that of the key."""
    further = np.flatnonzero(numbers)
    if not further.size:
        return hashes
    made = hashes.copy()
    made[further] = extend_hashes(hashes[further], [pa.array(numbers[further])])
    return made


def _numbers(numbers: Integers) -> pa.Array:
    return pa.array(numbers.astype(np.int32))
