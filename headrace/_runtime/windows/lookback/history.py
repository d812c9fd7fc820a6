"""What rows that are out leave for those that look back on them: lists by key and slice, in order of time.

Rows go out in order of time, so what is added to a list is never before what it holds, and all rows of one
timestamp are added at once. A slice that no row to come can see is dropped whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Slots
from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.state import ShardState, Table
from headrace._runtime.windows.lookback.layout import COUNT, HISTORY, ITEMS, Layout

__all__ = ["Found", "History"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Found:
    """One slice: where it has each of some keys (-1: nowhere), and how many rows of it."""

    number: int
    table: Table
    slots: Slots
    counts: Integers

    def of(self, keys: slice) -> Found:
        """The same for some of the keys."""
        return Found(self.number, self.table, self.slots[keys], self.counts[keys])

    def items(self, keys: slice) -> list[pa.Array]:
        """The rows of these keys, key by key, as columns."""
        slots = self.slots[keys]
        return list(self.table.items(ITEMS, slots[slots >= 0]).flatten())


class History:
    """The slices of one shard."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._size_us = layout.size_us
        self._slice_us = layout.slice_us
        self._names = layout.kept.names
        self._list = pa.list_(pa.struct(list(layout.kept)))
        self._state = state
        self._notes: dict[int, list[tuple[Integers, Integers, Sequence[pa.Array]]]] = {}

    def slices(self, timestamps: Integers) -> Integers:
        """The slice of each timestamp."""
        return timestamps // self._slice_us

    def find(self, earliest: int, hashes: Hashes, keys: Sequence[pa.Array]) -> list[Found]:
        """The slices, in order, that a row of this time can see."""
        first = (earliest - self._size_us) // self._slice_us
        found = []
        for number in self._state.buckets(HISTORY):
            if number >= first:
                table = self._state.table(HISTORY, number)
                slots = table.find(hashes, keys)
                counts = np.where(slots >= 0, table.values(COUNT)[slots], 0)
                found.append(Found(number, table, slots, counts))
        return found

    def note(
        self, number: int, keys: Integers, sizes: Integers, columns: Sequence[pa.Array]
    ) -> None:
        """Some keys, by their places, shall have lists of these sizes in a slice, filled from the columns."""
        self._notes.setdefault(number, []).append((keys, sizes, columns))

    def write(self, hashes: Hashes, keys: Sequence[pa.Array]) -> None:
        """Write what was noted of these keys: once for a slice, since tables that grow are copied."""
        notes, self._notes = self._notes, {}
        for number, parts in notes.items():
            places, sizes = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            columns = zip(*(part[2] for part in parts), strict=True)
            joined = [pa.concat_arrays(arrays) for arrays in columns]
            items = pa.StructArray.from_arrays(joined, names=self._names)
            rows = pa.array(places)
            table = self._state.table(HISTORY, number)
            slots, _ = table.upsert(hashes[places], [key.take(rows) for key in keys])
            table.put(COUNT, slots, sizes)
            table.put(ITEMS, slots, lists_of(items, sizes, self._list))

    def first_needed(self, watermark: int) -> int:
        """The first slice that a row behind the watermark can see."""
        return (watermark + 1 - self._size_us) // self._slice_us

    def drop(self, watermark: int) -> bool:
        """Drop the slices that nobody will see; whether none is left."""
        first = self.first_needed(watermark)
        slices = self._state.buckets(HISTORY)
        # A horizon that moves over nothing would be one more write an epoch.
        if slices and slices[0] < first:
            self._state.drop_before(HISTORY, first)
        return not slices or slices[-1] < first
