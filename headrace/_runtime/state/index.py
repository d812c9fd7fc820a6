"""The key index: open addressing over plain arrays, probed for a whole batch at once.

`cells` has a power of two of int32 cells, at least twice as many as there are slots; a cell holds slot + 1,
0 is empty. `stored` holds the hash of every slot. A probe looks at one cell for every unresolved row of a
batch, in rounds; its step grows by one each round, so it visits every cell and does not cluster. The cost of
a row does not depend on how many keys there are, but for the caches it misses.

Hashes only find candidates: `same(rows, slots)` tells whether they are the same key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ABSENT", "Hashes", "Same", "Slots", "claim", "distinct", "look_up", "rebuild"]

Slots: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Cells: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Same: TypeAlias = Callable[[Slots, Slots], Mask]

ABSENT = -1


def look_up(cells: Cells, stored: Hashes, hashes: Hashes, same: Same) -> Slots:
    """The slot of each row, or `ABSENT`."""
    slots = np.full(len(hashes), ABSENT, dtype=np.int64)
    rows = np.arange(len(hashes))
    places = _places(cells, hashes)
    step = 0
    while rows.size:
        found = cells[places].astype(np.int64)
        found -= 1
        open_rows = np.flatnonzero(found >= 0)
        if open_rows.size < rows.size:
            rows, places, found = rows[open_rows], places[open_rows], found[open_rows]
        matched = _matches(stored, hashes, rows, found, same)
        slots[rows[matched]] = found[matched]
        step += 1
        rest = np.flatnonzero(~matched)
        rows = rows[rest]
        places = (places[rest] + step) & (len(cells) - 1)
    return slots


def claim(
    cells: Cells, stored: Hashes, used: int, hashes: Hashes, same: Same
) -> tuple[Slots, Slots]:
    """The slot of each row, taking new slots from `used` on; also the rows that are new, by slot.

    The keys of the rows are distinct. The hashes of new slots are stored, their keys are the caller's, and
    nobody compares them before: rows of equal hash probe in step, so none looks at a cell that another took.
    """
    slots = np.empty(len(hashes), dtype=np.int64)
    fresh: list[Slots] = []
    rows = np.arange(len(hashes))
    places = _places(cells, hashes)
    step = 0
    while rows.size:
        found = cells[places].astype(np.int64)
        found -= 1
        matched = _matches(stored, hashes, rows, found, same)
        slots[rows[matched]] = found[matched]
        waiting = ~matched
        empty = np.flatnonzero(found < 0)
        if empty.size:
            won = empty[_win(cells, places[empty])]
            winners = rows[won]
            new = np.arange(used, used + won.size)
            cells[places[won]] = new + 1
            stored[used : used + won.size] = hashes[winners]
            slots[winners] = new
            fresh.append(winners)
            used += won.size
            waiting[won] = False
        step += 1
        rest = np.flatnonzero(waiting)
        rows = rows[rest]
        places = (places[rest] + step) & (len(cells) - 1)
    return slots, np.concatenate(fresh) if fresh else np.empty(0, dtype=np.int64)


def rebuild(cells: Cells, stored: Hashes) -> None:
    """Fill empty cells with the slots of `stored`, all of different keys."""
    rows = np.arange(len(stored))
    places = _places(cells, stored)
    step = 0
    while rows.size:
        empty = np.flatnonzero(cells[places] == 0)
        won = empty[_win(cells, places[empty])]
        cells[places[won]] = rows[won] + 1
        waiting = np.ones(rows.size, dtype=np.bool_)
        waiting[won] = False
        step += 1
        rest = np.flatnonzero(waiting)
        rows = rows[rest]
        places = (places[rest] + step) & (len(cells) - 1)


def distinct(numbers: Slots) -> Slots:
    """Each number once, in order. `np.unique` hashes them, which takes twenty times as long as to sort them."""
    ordered = np.sort(numbers)
    first = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: Slots = ordered[first]
    return found


def _places(cells: Cells, hashes: Hashes) -> Slots:
    return (hashes & np.uint64(len(cells) - 1)).view(np.int64)


def _win(cells: Cells, places: Slots) -> Mask:
    """Of the rows that want the same empty cell one wins: whose number stays when all write."""
    numbers = np.arange(1, places.size + 1, dtype=np.int32)
    cells[places] = numbers
    won: Mask = cells[places] == numbers
    return won


def _matches(stored: Hashes, hashes: Hashes, rows: Slots, found: Slots, same: Same) -> Mask:
    """Which rows have their own key in the slot found. An empty cell (-1) reads the last hash: harmless."""
    matched: Mask = stored[found] == (hashes if rows.size == hashes.size else hashes[rows])
    matched &= found >= 0
    candidates = np.flatnonzero(matched)
    if candidates.size:
        matched[candidates] = same(rows[candidates], found[candidates])
    return matched
