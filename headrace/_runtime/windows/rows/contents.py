"""Cells that keep their rows: those of each epoch are appended to state as one segment and never rewritten.

Rows that an epoch looks at lie in a pool, and a cell knows them by their places there. Segments are read only when
a cell fires. Where windows merge, the segments of all parts stay where they are; each row has the number of its
arrival then, by which they are put in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.columns import row_objects
from headrace._runtime.ordering import ranges
from headrace._runtime.state import ShardState
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.context import instant
from headrace._runtime.windows.rows.layout import ARRIVAL, CONTENTS, Layout
from headrace._runtime.windows.rows.stored import Stored
from headrace.keys import extend_hashes, hash_keys

__all__ = ["Contents"]

Integers = npt.NDArray[np.int64]


class Contents:
    """The rows of one shard."""

    def __init__(self, layout: Layout, cells: Cells, state: ShardState) -> None:
        self._layout = layout
        self._cells = cells
        self._state = state
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._objects: list[Any] = []
        self._incoming: Iterator[int] = iter(())
        self._removed: list[Stored] = []

    # The pool

    def pool(self, batch: pa.RecordBatch) -> int:
        """Rows come into the pool; the place of the first."""
        self._batches.append(batch)
        self._size += batch.num_rows
        return self._size - int(batch.num_rows)

    def batch(self, places: Sequence[int]) -> pa.RecordBatch:
        """These rows."""
        if not self._batches:
            return pa.RecordBatch.from_pylist([], schema=self._layout.kept)
        self._batches = [join_batches(self._batches)]
        return self._batches[0].take(pa.array(places, pa.int64()))

    def objects(self, places: Sequence[int]) -> list[Any]:
        """These rows as objects; the same object each time."""
        missing = range(len(self._objects), self._size)
        if missing:
            rows = self.batch(missing)
            self._objects += row_objects(rows.select(self._layout.columns.names))
        return [self._objects[place] for place in places]

    def timestamps(self, places: Sequence[int]) -> list[datetime]:
        """The timestamps of these rows."""
        return [instant(ts or 0) for ts in self.batch(places).column(TIMESTAMP).to_pylist()]

    def latest(self, places: Sequence[int], otherwise: int) -> int:
        """The greatest timestamp of these rows."""
        found = pc.max(self.batch(places).column(TIMESTAMP)).as_py()
        return otherwise if found is None else int(found)

    # What is in a cell

    def expect(self, batch: pa.RecordBatch, rows: Integers) -> None:
        """These rows of a batch are about to be added, in this order."""
        self._incoming = iter((self.pool(batch) + rows).tolist())

    def add(self, cell: Cell) -> None:
        """The next row is one of this cell."""
        cell.fresh.append(next(self._incoming))

    def more(self, segment: int) -> None:
        """Rows that are kept are in no segment."""
        raise AssertionError(segment)

    def read(self, wanted: Iterable[Stored]) -> None:
        """Read rows that lie in state."""
        stored = [each for each in {id(s): s for s in wanted}.values() if each.places is None]
        if not stored:
            return
        owners, keys, hashes = self._segments(stored)
        table = self._state.table(CONTENTS, 0)
        lists = table.get("rows", table.find(hashes, keys))
        assert isinstance(lists, pa.Array)
        items = lists.flatten()
        first = self.pool(pa.RecordBatch.from_arrays(items.flatten(), schema=self._layout.kept))
        sizes = np.diff(lists.offsets.to_numpy())
        ends = first + np.cumsum(sizes)
        for each in stored:
            each.places = []
        for owner, end, size in zip(owners.tolist(), ends.tolist(), sizes.tolist(), strict=True):
            places = stored[owner].places
            assert places is not None
            places.extend(range(end - size, end))

    def places(self, stored: Stored, fresh: Sequence[int]) -> list[int]:
        """All rows of a cell in order of arrival; those in state have been read."""
        assert stored.places is not None
        places = [*stored.places, *fresh]
        if self._layout.merging and places:
            numbers = self.batch(places).column(ARRIVAL).to_numpy()
            places = np.array(places, np.int64)[np.argsort(numbers, kind="stable")].tolist()
        return places

    def clear(self, cell: Cell) -> None:
        """The cell is empty now."""
        self.replace(cell, [])

    def replace(self, cell: Cell, places: list[int]) -> None:
        """The cell has these rows now."""
        self._removed.append(cell.stored)
        cell.stored = Stored(cell.slot, [[cell.start, cell.last, 0]])
        cell.fresh = places

    # State

    def write(self) -> None:
        """Remove what cells no longer have, append what they got."""
        removed = [stored for stored in self._removed if stored.slot >= 0 and stored.segments]
        if removed:
            _, keys, hashes = self._segments(removed)
            table = self._state.table(CONTENTS, 0)
            table.remove(table.find(hashes, keys))
        self._append([c for c in self._cells.live.values() if c.fresh and not c.gone])

    def _append(self, cells: Sequence[Cell]) -> None:
        if not cells:
            return
        bounds = []
        for cell in cells:
            part = cell.stored.parts[-1]
            bounds.append(tuple(part))
            part[2] += 1
        rows = self.batch([place for cell in cells for place in cell.fresh])
        fields = list(self._layout.kept)
        items = pa.StructArray.from_arrays(rows.columns, fields=fields)
        offsets = np.concatenate([[0], np.cumsum([len(cell.fresh) for cell in cells])])
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
        keys, hashes = self._keys([cell.slot for cell in cells], np.array(bounds, np.int64))
        table = self._state.table(CONTENTS, 0)
        slots, _ = table.upsert(hashes, keys)
        table.put("rows", slots, lists.cast(pa.list_(pa.struct(fields))))

    def _segments(
        self, stored: Sequence[Stored]
    ) -> tuple[Integers, list[pa.Array], npt.NDArray[np.uint64]]:
        """Every segment of these: whose it is, its key and its hash."""
        parts = [(n, *part) for n, each in enumerate(stored) for part in each.parts if part[2]]
        owners, starts, lasts, counts = np.array(parts, np.int64).reshape(-1, 4).T
        numbers = ranges(np.zeros(len(counts), np.int64), counts)
        spread = [np.repeat(column, counts) for column in (owners, starts, lasts)]
        slots = [stored[owner].slot for owner in spread[0].tolist()]
        keys, hashes = self._keys(slots, np.stack([*spread[1:], numbers], axis=1))
        return spread[0], keys, hashes

    def _keys(
        self, slots: Sequence[int], bounds: Integers
    ) -> tuple[list[pa.Array], npt.NDArray[np.uint64]]:
        width = len(self._layout.keys)
        keys = self._cells.table.keys(np.array(slots, np.int64))[:width]
        more = [pa.array(np.ascontiguousarray(column)) for column in bounds.T]
        return [*keys, *more], extend_hashes(hash_keys(keys), more)
