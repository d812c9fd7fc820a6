"""Which kept rows have the key of a new one and lie in its interval, a bounded number of pairs at a time.

The rows of a key are looked at one by one where there are few. Where there are many, they are put in order of time, and
the ends of each interval are searched among them: the cost is that of the pairs and of the kept rows of the keys that have new
ones, about a tenth of a microsecond each, but never of rows times rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.joins.matching import PAIRS
from headrace._runtime.ordering import ranges, stable_order
from headrace._runtime.state import Table

__all__ = ["NewRows", "near_pairs"]

Integers = npt.NDArray[np.int64]
Pairs = Iterator[tuple[Integers, Integers]]

#: Looks at each kept row, from where on it pays to put them in order of time.
_MANY = 8


@dataclass(frozen=True)
class NewRows:
    """Rows that look for partners: their keys, and from when to when those lie."""

    hashes: npt.NDArray[np.uint64]
    keys: Sequence[pa.Array]
    first: Integers
    last: Integers

    def __getitem__(self, part: slice) -> NewRows:
        """Some of them."""
        keys = [column[part] for column in self.keys]
        return NewRows(self.hashes[part], keys, self.first[part], self.last[part])


def near_pairs(rows: NewRows, table: Table, times: Integers) -> Pairs:
    """(place of the new row, slot of the kept one) of every pair; `times` are those of the slots."""
    starts, sizes = table.runs(rows.hashes, rows.keys)
    found = np.flatnonzero(sizes)
    starts, sizes = starts[found], sizes[found]
    first, last = rows.first[found], rows.last[found]
    _, one_of = np.unique(starts, return_index=True)
    if sizes.sum() > _MANY * sizes[one_of].sum():
        slots, starts, sizes = _in_time(table, times, starts, sizes, first, last)
        for which, at in _portions(starts, sizes):
            yield found[which], slots[at]
        return
    for which, at in _portions(starts, sizes):
        slots = table.slots_at(at)
        near = np.flatnonzero((times[slots] >= first[which]) & (times[slots] <= last[which]))
        if len(near):
            yield found[which[near]], slots[near]


def _in_time(
    table: Table,
    times: Integers,
    starts: Integers,
    sizes: Integers,
    first: Integers,
    last: Integers,
) -> tuple[Integers, Integers, Integers]:
    """The slots of all runs by key and time, and where in them the partners of each row start and how many they are."""
    runs, one_of, codes = np.unique(starts, return_index=True, return_inverse=True)
    members = sizes[one_of]
    slots = table.slots_at(ranges(runs, members))
    by_time = stable_order(times[slots])
    ordered = times[slots[by_time]]
    of_run = np.repeat(np.arange(len(runs)), members)[by_time]
    order = stable_order(of_run)
    # A run's number and a place in time are one number, in order; between two of them lie the partners.
    places = of_run[order] * (len(slots) + 1) + order
    low = codes * (len(slots) + 1) + np.searchsorted(ordered, first, side="left")
    high = codes * (len(slots) + 1) + np.searchsorted(ordered, last, side="right")
    begins = np.searchsorted(places, low)
    return slots[by_time[order]], begins, np.searchsorted(places, high) - begins


def _portions(starts: Integers, sizes: Integers) -> Pairs:
    """Ranges of these starts and sizes, in portions: the number of each one's range, and the place it stands for."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, PAIRS):
        end = min(begin + PAIRS, total)
        part = slice(
            int(np.searchsorted(ends, begin, side="right")),
            int(np.searchsorted(ends, end, side="left")) + 1,
        )
        # Of the first and the last range perhaps not all.
        before = ends[part] - sizes[part]
        skipped = np.maximum(begin - before, 0)
        mine = np.minimum(ends[part], end) - before - skipped
        which = np.repeat(np.arange(part.start, part.stop), mine)
        yield which, ranges(starts[part] + skipped, mine)
