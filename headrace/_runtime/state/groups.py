"""The members of each group of a table: which slots share all key columns but the last.

A second index finds a group by the hash of its own key. Its members are a *run*: neighbouring places in one
pool of slot numbers, with room for more. A run that is full moves to the end of the pool with twice the room,
and a member that leaves gives its place to the last, so that

- the members of any number of groups are one gather, however many there are: a linked list would take as
  many dependent steps as the longest group has members;
- how many members a group has is known without reading them;
- joining and leaving cost what joins and leaves, not what the group holds, but for the moves, which double.

Runs left behind are given back when the pool is full and is laid out anew. A group's key is that of the slot in
its first place; a group whose last member left keeps that slot there, dead. Should the table forget the key
of a dead slot, the group is not found any more: it is empty, and goes when the table renumbers its slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._runtime.ordering import stable_order
from headrace._runtime.state.arrays import Arrays, Block
from headrace._runtime.state.index import ABSENT, Hashes, Same, Slots, claim, look_up, rebuild

__all__ = ["Groups"]

_FIRST = 256
_USED, _END = 0, 1
_NUMBER = np.dtype(np.int32)
_DTYPES: dict[str, np.dtype[Any]] = {
    # By group: `start` and `room` of its run in the pool, and how much of it is in use.
    "cells": _NUMBER,
    "hash": np.dtype(np.uint64),
    "start": np.dtype(np.int64),
    "room": _NUMBER,
    "count": _NUMBER,
    # By slot: its group, and its place in the group's run.
    "group": _NUMBER,
    "place": _NUMBER,
    "pool": _NUMBER,
}
_BY_GROUP = ("hash", "start", "room", "count")
_BY_SLOT = ("group", "place")


class Groups:
    """The groups of one table. `name` is the buffer of a replica; without it there are none yet."""

    def __init__(self, arrays: Arrays, name: str | None = None) -> None:
        self._arrays = arrays
        if name is None:
            self.block = self._new_block(0, 0, 0)
        else:
            self.block = Block(arrays, _DTYPES, name=name)

    def _new_block(self, groups: int, slots: int, places: int) -> Block:
        """Room for so many of each, and for a third more places in the pool."""
        groups = _roomy(groups)
        sizes = dict.fromkeys(_BY_GROUP, groups) | dict.fromkeys(_BY_SLOT, _roomy(slots))
        sizes |= {"cells": 2 * groups, "pool": _roomy(places + places // 3)}
        return Block.create(self._arrays, _DTYPES, sizes)

    def members(
        self, hashes: Hashes, same: Same, *, at_most: int | None = None
    ) -> tuple[Slots, Slots]:
        """The slots of distinct groups, one group behind the other, and how many each has.

        `same(rows, slots)` tells whether the groups of rows are those of slots. Groups with more members than
        `at_most` are counted, but their slots are left out.
        """
        starts, counts = self.runs(hashes, same)
        read = counts if at_most is None else np.where(counts <= at_most, counts, 0)
        return self.slots_at(_ranges(starts, read)), counts

    def runs(self, hashes: Hashes, same: Same) -> tuple[Slots, Slots]:
        """Where the run of each row's group starts, and how many members it has; rows may share groups."""
        groups = self.find(hashes, same)
        counts = np.where(groups >= 0, self.block["count"][groups], 0).astype(np.int64)
        return self.block["start"][groups], counts

    def slots_at(self, places: Slots) -> Slots:
        """The members at these places of runs."""
        slots: Slots = self.block["pool"][places].astype(np.int64)
        return slots

    def find(self, hashes: Hashes, same: Same) -> Slots:
        """The number of each group, `ABSENT` where there is none; it holds until the table is renumbered."""

        def same_group(rows: Slots, groups: Slots) -> npt.NDArray[np.bool_]:
            first = self.block["pool"][self.block["start"][groups]]
            return same(rows, first.astype(np.int64))

        return look_up(self.block["cells"], self.block["hash"], hashes, same_group)

    def join(self, slots: Slots, hashes: Hashes, same: Same) -> None:
        """Slots that are in no group join theirs; `same` compares groups as in `members`."""
        if not slots.size:
            return
        groups = self._claim(hashes, same, slots)
        order = stable_order(groups)
        slots, groups = slots[order], groups[order]
        distinct, added = _distinct(groups)
        self._make_room(distinct, added)
        self._reserve(_BY_SLOT, int(slots.max()) + 1)
        block = self.block
        places = _ranges(block["count"][distinct].astype(np.int64), added)
        block["pool"][block["start"][groups] + places] = slots
        block["group"][slots] = groups
        block["place"][slots] = places
        block["count"][distinct] += added.astype(np.int32)

    def leave(self, slots: Slots) -> None:
        """Distinct members leave their groups; the last ones of each run move to the places set free."""
        block = self.block
        slots = slots[np.argsort(block["group"][slots], kind="stable")]
        groups, places = block["group"][slots], block["place"][slots].copy()
        distinct, gone = _distinct(groups)
        left = block["count"][distinct] - gone
        tails = block["pool"][_ranges(block["start"][distinct] + left, gone)]
        block["place"][slots] = ABSENT
        stay = tails[block["place"][tails] >= 0]
        free = places < np.repeat(left, gone)
        block["pool"][block["start"][groups[free]] + places[free]] = stay
        block["place"][stay] = places[free]
        block["count"][distinct] = left

    def renumber(self, live: Slots) -> None:
        """The slot `live[i]` gets the number i; groups without members go."""
        old, kept = self.block, np.flatnonzero(self.block["count"][: self._used])
        numbers = np.empty(len(old["group"]), dtype=np.int32)
        numbers[live] = np.arange(live.size, dtype=np.int32)
        counts = old["count"][kept].astype(np.int64)
        slots = numbers[old["pool"][_ranges(old["start"][kept], counts)]]
        rooms, places = _powers(counts), _ranges(np.zeros(kept.size, np.int64), counts)
        self.block = new = self._new_block(kept.size, live.size, int(rooms.sum()))
        new["hash"][: kept.size] = old["hash"][kept]
        new["start"][: kept.size] = np.cumsum(rooms) - rooms
        new["room"][: kept.size], new["count"][: kept.size] = rooms, counts
        new["group"][slots] = groups = np.repeat(np.arange(kept.size), counts)
        new["place"][slots] = places
        new["pool"][new["start"][groups] + places] = slots
        new.counters[_USED], new.counters[_END] = kept.size, int(rooms.sum())
        rebuild(new["cells"], new["hash"][: kept.size])
        old.release()

    @property
    def _used(self) -> int:
        return int(self.block.counters[_USED])

    def _claim(self, hashes: Hashes, same: Same, slots: Slots) -> Slots:
        """The group of each row, new ones with their first slot; rows may share groups, groups a hash."""
        groups = self.find(hashes, same)
        rest = np.flatnonzero(groups == ABSENT)
        while rest.size:
            # These are different groups, and none of them is known.
            first = rest[_of_different(hashes[rest])]
            self._begin(hashes[first], slots[first])
            groups[rest] = self.find(hashes[rest], lambda rows, at, own=rest: same(own[rows], at))  # type: ignore[misc]
            rest = rest[groups[rest] == ABSENT]
        return groups

    def _begin(self, hashes: Hashes, slots: Slots) -> None:
        """New groups, each with a run of one place and the slot that tells its key."""
        used, count = self._used, len(hashes)
        self._reserve(_BY_GROUP, used + count)
        start = self._extend(count)
        block = self.block
        numbers, fresh = claim(block["cells"], block["hash"], used, hashes, _none_is_same)
        assert fresh.size == count
        block["pool"][start : start + count] = slots
        block["start"][numbers] = np.arange(start, start + count)
        block["room"][numbers] = 1
        block["count"][numbers] = 0
        block.counters[_USED] = used + count

    def _make_room(self, groups: Slots, added: Slots) -> None:
        """Move the runs that are too small for what is added."""
        block = self.block
        rooms = _powers(block["count"][groups] + added)
        if block.counters[_END] + rooms.sum() > len(block["pool"]):
            # First of all: this takes away room that a run does not use yet.
            self._lay_out(int(rooms.sum()))
        full = np.flatnonzero(rooms > block["room"][groups])
        rooms, groups = rooms[full], groups[full]
        starts = self._extend(int(rooms.sum())) + np.cumsum(rooms) - rooms
        counts = block["count"][groups].astype(np.int64)
        content = block["pool"][_ranges(block["start"][groups], counts)]
        block["pool"][_ranges(starts, counts)] = content
        block["start"][groups], block["room"][groups] = starts, rooms

    def _extend(self, places: int) -> int:
        """Where so many unused places begin in the pool."""
        if self.block.counters[_END] + places > len(self.block["pool"]):
            self._lay_out(places)
        end = int(self.block.counters[_END])
        self.block.counters[_END] = end + places
        return end

    def _lay_out(self, places: int) -> None:
        """Close the gaps of the pool; then so many places are free, and a third of what is in use at least."""
        block, used = self.block, slice(self._used)
        # The first place of an empty group still tells its key.
        counts = np.maximum(block["count"][used], 1).astype(np.int64)
        content = block["pool"][_ranges(block["start"][used], counts)]
        rooms = _powers(counts)
        end = int(rooms.sum())
        starts = np.cumsum(rooms) - rooms
        self._reserve(("pool",), end + end // 3 + places)
        block["pool"][_ranges(starts, counts)] = content
        block["start"][used], block["room"][used] = starts, rooms
        block.counters[_END] = end

    def _reserve(self, fields: tuple[str, ...], size: int) -> None:
        """Let these arrays have so many elements at least; cells stay twice the groups."""
        room = len(self.block[fields[0]])
        if size <= room:
            return
        sizes = dict.fromkeys(fields, _roomy(size))
        if fields is not _BY_GROUP:
            self.block.grow(sizes)
            return
        self.block.grow(sizes | {"cells": 2 * sizes["hash"]}, blank=frozenset({"cells"}))
        rebuild(self.block["cells"], self.block["hash"][: self._used])


def _of_different(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Some rows of different hashes, most of those that there are: of the rows that fall in one place the last."""
    places = (hashes & np.uint64(_roomy(2 * len(hashes)) - 1)).view(np.int64)
    rows = np.arange(len(hashes), dtype=np.int32)
    last = np.empty(_roomy(2 * len(hashes)), np.int32)
    last[places] = rows
    found: npt.NDArray[np.bool_] = last[places] == rows
    return found


def _distinct(groups: npt.NDArray[Any]) -> tuple[Slots, Slots]:
    """The different ones of sorted numbers, and how often each is there."""
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    return groups[first].astype(np.int64), np.diff(first, append=len(groups))


def _ranges(starts: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Slots:
    """The numbers of several ranges, one behind the other."""
    shifts = starts - (np.cumsum(counts) - counts)
    numbers: Slots = np.repeat(shifts, counts)
    numbers += np.arange(len(numbers))
    return numbers


def _powers(sizes: npt.NDArray[Any]) -> Slots:
    """The least power of two that holds each size."""
    exponents = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    powers: Slots = np.left_shift(np.int64(1), exponents)
    return powers


def _roomy(size: int) -> int:
    return max(_FIRST, 1 << (size - 1).bit_length())


def _none_is_same(rows: Slots, slots: Slots) -> npt.NDArray[np.bool_]:
    del slots
    return np.zeros(len(rows), dtype=np.bool_)
