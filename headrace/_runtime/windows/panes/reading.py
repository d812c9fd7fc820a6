"""What is in a window: its tables put together by key, for all of its keys or for some.

A window of one table is read straight from the state. Otherwise the keys of its tables are numbered, and
each table is merged into scratch columns: the cost is the rows of these tables, whatever else exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Fold, Slots
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.state import Table
from headrace._runtime.windows.panes.contents import move
from headrace._runtime.windows.scratch import Scratch

__all__ = ["EMIT_ROWS", "Piece", "pieces", "read_all", "read_some"]

#: Result rows in a batch at most.
EMIT_ROWS = 131_072

Hashes = npt.NDArray[np.uint64]


class Piece(NamedTuple):
    """Some distinct keys of a window with what the aggregates say of them."""

    hashes: Hashes
    keys: list[pa.Array]
    values: list[pa.Array]


def read_all(folds: Sequence[Fold], tables: Sequence[Table]) -> Iterator[Piece]:
    """All keys of these tables."""
    if len(tables) == 1:
        (table,) = tables
        for slots in pieces(table.live()):
            yield Piece(table.hashes(slots), table.keys(slots), _values(folds, table, slots))
        return
    live = [table.live() for table in tables]
    read = [(t.hashes(slots), t.keys(slots)) for t, slots in zip(tables, live, strict=True)]
    hashes = np.concatenate([part[0] for part in read])
    keys = [pa.concat_arrays(column) for column in zip(*(part[1] for part in read), strict=True)]
    numbers, firsts = number_keys(keys)
    scratch = Scratch(folds, len(firsts))
    place = 0
    for table, slots in zip(tables, live, strict=True):
        move(folds, scratch, numbers[place : place + len(slots)], table, slots)
        place += len(slots)
    for part in pieces(np.arange(len(firsts))):
        rows = firsts[part]
        taken = [key.take(pa.array(rows)) for key in keys]
        yield Piece(hashes[rows], taken, _values(folds, scratch, part))


def read_some(
    folds: Sequence[Fold], tables: Sequence[Table], hashes: Hashes, keys: Sequence[pa.Array]
) -> tuple[Slots, Piece]:
    """Of these distinct keys those that are in the tables: their places among the keys, and what is there."""
    found = [table.find(hashes, keys) for table in tables]
    there = np.zeros(len(hashes), np.bool_)
    for slots in found:
        there |= slots >= 0
    places = np.flatnonzero(there)
    if len(places) < len(hashes):
        hashes, keys = hashes[places], [key.take(pa.array(places)) for key in keys]
        found = [slots[places] for slots in found]
    if len(tables) == 1:
        return places, Piece(hashes, list(keys), _values(folds, tables[0], found[0]))
    scratch = Scratch(folds, len(hashes))
    for table, slots in zip(tables, found, strict=True):
        here = np.flatnonzero(slots >= 0)
        move(folds, scratch, here, table, slots[here])
    return places, Piece(hashes, list(keys), _values(folds, scratch, np.arange(len(hashes))))


def _values(folds: Sequence[Fold], source: Columns, slots: Slots) -> list[pa.Array]:
    return [fold.result(source, slots) for fold in folds]


def pieces(slots: Slots) -> Iterator[Slots]:
    """So many at a time that each makes one batch of results."""
    for start in range(0, len(slots), EMIT_ROWS):
        yield slots[start : start + EMIT_ROWS]
