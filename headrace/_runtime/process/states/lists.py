"""Lists of keys, an item a row of its own under its number: `hr.state.List`.

Items are added behind the last without reading any: their numbers are given when the epoch settles, and how many
there are is known without them. When somebody asks for a list, the short ones of all keys that the epoch has touched
are read at once, a long one by itself. Numbers only tell the order: where items expire they have gaps.

What is kept for an item is its value in stored form or, if the state has a TTL, when it was touched and the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._runtime.process.cursor import Cursor, Journal
from headrace._runtime.process.states.grouped import (
    SMALL,
    Grouped,
    Integers,
    refusal_of_none,
)
from headrace._runtime.process.states.lifetime import Lifetime
from headrace._runtime.process.states.shapes import attacher, detacher
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState
from headrace.errors import UserCodeError
from headrace.state import StateSpec

__all__ = ["ListHandle", "Lists"]


class ListHandle:
    """What a function sees of a list; it outlives epochs, and each gives it other items."""

    __slots__ = ("_at", "_attach", "_detach", "_life", "_lists", "_no_none")

    def __init__(self, spec: StateSpec, uid: str, cursor: Cursor) -> None:
        self._at = cursor
        self._detach = detacher(spec.type, spec.name, uid, spec.codec)
        self._no_none = refusal_of_none(spec, uid, "leave it out")
        self._attach = attacher(spec.annotation, spec.type, spec.codec)
        self._life = None if spec.ttl is None else Lifetime(spec.ttl, cursor)
        self._lists: Lists

    def serve(self, lists: Lists) -> None:
        """From now on it is a view of this."""
        self._lists = lists

    def get(self) -> list[Any]:
        """All items; a list of the caller's own."""
        found = self._lists.items(self._at.code)
        if self._life is not None:
            found = self._living(self._life, found)
        return found if self._attach is None else list(map(self._attach, found))

    def add(self, value: Any) -> None:
        """One more item. The others are not read."""
        kept = self._detach(value)
        if kept is None and self._no_none is not None:
            raise UserCodeError(self._no_none)
        if self._life is not None:
            kept = (self._life.now(), kept)
        self._lists.add(self._at.code, kept)

    def add_all(self, values: Iterable[Any]) -> None:
        """Several more items, or none of them if one does not fit."""
        for kept in self._kept(values):
            self._lists.add(self._at.code, kept)

    def update(self, values: Iterable[Any]) -> None:
        """These items instead of those that are there."""
        self._lists.replace(self._at.code, self._kept(values))

    def clear(self) -> None:
        """Take all away."""
        self._lists.replace(self._at.code, [])

    def _kept(self, values: Iterable[Any]) -> list[Any]:
        kept = [self._detach(value) for value in values]
        if self._no_none is not None and None in kept:
            raise UserCodeError(self._no_none)
        if self._life is None:
            return kept
        now = self._life.now()
        return [(now, value) for value in kept]

    def _living(self, life: Lifetime, found: list[Any]) -> list[Any]:
        """The values of the items that have not expired; reading may touch them."""
        living = [(time, value) for time, value in found if life.is_alive(time)]
        if life.by_reading and found:
            now = life.now()
            read = [(max(now, time), value) for time, value in living]
            self._lists.replace(self._at.code, read)
        return [value for _, value in living]


class Lists:
    """One list state of all keys that an epoch touches."""

    def __init__(
        self, spec: StateSpec, state: ShardState, touched: Touched, journal: Journal, uid: str
    ) -> None:
        self._ttl = spec.ttl
        self._touched = touched
        self._journal = journal
        self._rows = Grouped(spec, state, touched, uid)
        # By code: what was added in this epoch.
        self._added: list[list[Any] | None] = []
        # The short lists that were read, one behind the other, and where that of each code begins.
        self._starts: list[int] = [0]
        self._stored: list[Any] = []
        # By code the lists that are not among these; None is a long one that was not read.
        self._alone: dict[int, list[Any] | None] = {}
        # What `write` has to do: lists that grew, and those that were emptied first.
        self._grown: dict[int, None] = {}
        self._cleared: dict[int, None] = {}

    def load(self, first: int) -> None:
        """Keys from this code on are new in the epoch."""
        self._added += [None] * (len(self._touched) - first)

    def items(self, code: int) -> list[Any]:
        """What is kept for the items of a key."""
        added = self._added[code] or []
        if code in self._cleared:
            return added.copy()
        self._read()
        return self._stored_of(code) + added

    def add(self, code: int, kept: Any) -> None:
        """One more item."""
        added = self._added[code]
        if added is None:
            added = self._added[code] = []
            self._grown[code] = None
        added.append(kept)
        if self._journal is not None:
            self._journal.append((added.pop,))

    def replace(self, code: int, kept: list[Any]) -> None:
        """These items instead of all others."""
        if self._journal is not None:
            was = code in self._cleared
            self._journal.append((self._undo_replace, code, self._added[code], was))
        self._added[code] = kept
        self._grown[code] = None
        self._cleared[code] = None

    def aged(self, domain: str) -> Iterable[int]:
        """The codes of the keys of which something that lives by this time was touched in the epoch."""
        return self._grown if self._ttl is not None and self._ttl.time == domain else ()

    def expire(self, domain: str, codes: list[int], now: int) -> list[int]:
        """Take away what has expired of these keys; for each, when something will have the next time, or 0.

        It looks at all their items, as columns, and not only at those that have expired.
        """
        if self._ttl is None or self._ttl.time != domain:
            return [0] * len(codes)
        for code in codes:
            self._forget_expired(code, now - self._ttl.ttl_us)
        return self._with_added(codes, self._rows.expire(np.array(codes), now).tolist(), now)

    def renew(self, domain: str, codes: list[int], now: int) -> list[int]:
        """As `expire`, of what was touched in the epoch alone: a look at the rest is planned, and it may be much."""
        nexts = [0] * len(codes)
        if self._ttl is None or self._ttl.time != domain:
            return nexts
        return self._with_added(codes, nexts, now)

    def _with_added(self, codes: list[int], nexts: list[int], now: int) -> list[int]:
        assert self._ttl is not None
        ttl_us = self._ttl.ttl_us
        for place, code in enumerate(codes):
            if added := self._added[code]:
                added[:] = [kept for kept in added if kept[0] + ttl_us > now]
                for time, _ in added:
                    nexts[place] = min(nexts[place] or time + ttl_us, time + ttl_us)
        return nexts

    def write(self) -> None:
        """Put what changed into the table; once, at the end of the epoch."""
        self._rows.remove_all(np.array(list(self._cleared), np.int64))
        grown = [(code, added) for code in self._grown if (added := self._added[code])]
        if not grown:
            return
        codes = np.array([code for code, _ in grown], np.int64)
        sizes = np.array([len(added) for _, added in grown])
        shifts = self._next_numbers(codes) - (np.cumsum(sizes) - sizes)
        numbers = np.repeat(shifts, sizes) + np.arange(sizes.sum())
        objects = [kept for _, added in grown for kept in added]
        self._rows.write(np.repeat(codes, sizes), pa.array(numbers), objects)

    def _next_numbers(self, codes: Integers) -> Integers:
        """The number of the next item of each list."""
        if self._ttl is None:
            return self._rows.members(codes, at_most=0)[1]
        slots, counts = self._rows.members(codes)
        following = np.zeros(len(codes), np.int64)
        if len(slots):
            there = np.flatnonzero(counts)
            starts = (np.cumsum(counts) - counts)[there]
            following[there] = np.maximum.reduceat(self._rows.names(slots).to_numpy(), starts) + 1
        return following

    def _read(self) -> None:
        """Read the short lists of all keys that were touched since the last time, and find the long ones."""
        if len(self._starts) > len(self._touched):
            return
        codes = np.arange(len(self._starts) - 1, len(self._touched))
        slots, counts = self._rows.members(codes, at_most=SMALL)
        self._alone |= dict.fromkeys(codes[counts > SMALL].tolist())
        read = np.where(counts > SMALL, 0, counts)
        self._starts += (self._starts[-1] + np.cumsum(read)).tolist()
        if len(slots):
            self._stored += self._in_order(slots, np.repeat(codes, read))

    def _stored_of(self, code: int) -> list[Any]:
        """The items that are in the table, of a key whose list was read or found to be long."""
        if code not in self._alone:
            return self._stored[self._starts[code] : self._starts[code + 1]]
        found = self._alone[code]
        if found is None:
            slots, _ = self._rows.members(np.array([code]))
            found = self._alone[code] = self._in_order(slots, np.zeros(len(slots), np.int64))
        return found

    def _in_order(self, slots: Integers, owners: Integers) -> list[Any]:
        """What is kept for the items in these slots, those of each key by number."""
        numbers = self._rows.names(slots).to_numpy()
        return self._rows.objects(slots[np.lexsort((numbers, owners))])

    def _forget_expired(self, code: int, last: int) -> None:
        """Drop what was read and was touched then or before."""
        was_read = code < len(self._starts) - 1 and self._alone.get(code, self) is not None
        if was_read and code not in self._cleared:
            self._alone[code] = [kept for kept in self._stored_of(code) if kept[0] > last]

    def _undo_replace(self, code: int, added: list[Any] | None, was: bool) -> None:
        self._added[code] = added
        if not was:
            del self._cleared[code]
