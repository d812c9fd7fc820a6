"""Cells that are accumulators: rows are folded once, and merged in the order in which cells fired.

While rows go through the trigger one by one, only numbers are written down. The rows of a cell between two
firings are a *segment*; segments that are added up are a *run*, which a purge ends:

    rows       r  r  F  r  r  F  r  P  r  r      F fires, P fires and empties the window
    segments   0  0     1  1     2     3  3
    runs       0  0     0  0     0     1  1      F shows 0; 0+1; P shows 0+1+2; then 3 is left

All segments are folded by one grouping, then merged into their runs (`runs`). The first run of a cell starts with
what is in state, and the last one is what stays there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Columns, Flush
from headrace._runtime.windows.folding import fold_groups
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.firing import Firing
from headrace._runtime.windows.rows.layout import Layout
from headrace._runtime.windows.rows.runs import Runs
from headrace._runtime.windows.scratch import Scratch

__all__ = ["Folded"]

Integers = npt.NDArray[np.int64]


class Folded:
    """The accumulators of one shard."""

    def __init__(self, layout: Layout, cells: Cells) -> None:
        self._folds = layout.folds
        self._specs = layout.accumulators
        self._cells = cells
        self._forget()

    def _forget(self) -> None:
        #: Of each run: its cell, whether it starts empty, and its segments so far.
        self._run_cells: list[Cell] = []
        self._run_empty: list[bool] = []
        self._run_sizes: list[int] = []
        #: Of each segment: its run, its place there, its first row.
        self._segment_runs: list[int] = []
        self._segment_places: list[int] = []
        self._segment_firsts: list[int] = []
        #: Of each row: its segment.
        self._segments: list[int] = []
        #: The next row is one of a segment that is open: what `add` does, without a look at the cell.
        self.more = self._segments.append

    # While rows go through the trigger

    def add(self, cell: Cell) -> None:
        """The next row is one of this cell."""
        segment = cell.segment
        if segment < 0:
            if cell.run < 0:
                self._begin(cell, empty=cell.slot < 0)
            segment = cell.segment = len(self._segment_runs)
            run = cell.run
            self._segment_runs.append(run)
            self._segment_places.append(self._run_sizes[run])
            self._segment_firsts.append(len(self._segments))
            self._run_sizes[run] += 1
        self._segments.append(segment)

    def fire(self, cell: Cell, firing: Firing) -> None:
        """What is in the cell now is shown."""
        if cell.run < 0:
            self._begin(cell, empty=False)
        cell.segment = -1
        firing.run, firing.position = cell.run, self._run_sizes[cell.run]

    def clear(self, cell: Cell) -> None:
        """The cell is empty now."""
        self._begin(cell, empty=True)

    def _begin(self, cell: Cell, *, empty: bool) -> None:
        cell.run = len(self._run_cells)
        cell.segment = -1
        self._run_cells.append(cell)
        self._run_empty.append(empty)
        self._run_sizes.append(0)

    # Behind it

    def evaluate(
        self, flush: Flush | None, numbers: Integers | None, firings: Sequence[Firing]
    ) -> list[pa.Array]:
        """The aggregates of these firings. `flush` holds the rows, `numbers` their order of arrival."""
        if not self._segments and not any(self._run_empty):
            slots = np.array([firing.cell.slot for firing in firings], np.int64)
            values = self._results(self._cells.table, slots)
        else:
            values = self._evaluate(flush, numbers, firings)
        for cell in self._run_cells:
            cell.run = cell.segment = -1
        self._forget()
        return values

    def _evaluate(
        self, flush: Flush | None, numbers: Integers | None, firings: Sequence[Firing]
    ) -> list[pa.Array]:
        scratch = self._loaded()
        parts = self._parts(flush, numbers) if flush is not None and self._segments else []
        runs = np.array(self._segment_runs, np.int64)
        places = np.array(self._segment_places, np.int64)
        fired = np.array([firing.run for firing in firings], np.int64)
        positions = np.array([firing.position for firing in firings], np.int64)
        values = Runs(self._folds, scratch, runs, places, parts).add_up(fired, positions)
        self._store(scratch)
        return values

    def _loaded(self) -> Scratch:
        """A place for every run; the first of a cell has what lies in state."""
        scratch = Scratch(self._folds, len(self._run_cells))
        old = np.flatnonzero(~np.array(self._run_empty, np.bool_))
        slots = np.array([self._run_cells[run].slot for run in old], np.int64)
        for spec in self._specs:
            scratch.put(spec.name, old, self._cells.table.get(spec.name, slots))
        return scratch

    def _parts(self, flush: Flush, numbers: Integers | None) -> list[list[pa.Array]]:
        """For every fold its parts, by segment."""
        groups = pa.array(np.array(self._segments, np.int64))
        (found,), folded = fold_groups(flush, [groups], self._folds)
        order = pa.array(np.argsort(found.to_numpy()))
        parts = []
        for fold in self._folds:
            own: Sequence[pa.Array] = [part.take(order) for part in folded[: len(fold.parts)]]
            folded = folded[len(fold.parts) :]
            if fold.keeps_arrival:
                assert numbers is not None
                own = fold.arrive(own, numbers[np.array(self._segment_firsts, np.int64)])
            parts.append(list(own))
        return parts

    def _store(self, scratch: Scratch) -> None:
        """The last run of each cell is what stays."""
        last = {id(cell): run for run, cell in enumerate(self._run_cells) if cell.slot >= 0}
        runs = np.array(list(last.values()), np.int64)
        if len(runs):
            slots = np.array([self._run_cells[run].slot for run in runs], np.int64)
            for spec in self._specs:
                self._cells.table.put(spec.name, slots, scratch.get(spec.name, runs))

    def _results(self, source: Columns, slots: Integers) -> list[pa.Array]:
        return [fold.result(source, slots) for fold in self._folds]

    # Windows that grow together

    def join(self, into: Sequence[Cell], parts: Sequence[Sequence[Cell]]) -> None:
        """The accumulators of several cells become those of new ones. No row is on its way."""
        table = self._cells.table
        for number in range(max(map(len, parts), default=0)):
            pairs = [
                (a, own[number]) for a, own in zip(into, parts, strict=True) if len(own) > number
            ]
            to = np.array([cell.slot for cell, _ in pairs], np.int64)
            slots = np.array([cell.slot for _, cell in pairs], np.int64)
            for fold in self._folds:
                fold.merge(table, to, fold.export(table, slots))
            table.touch(to)
