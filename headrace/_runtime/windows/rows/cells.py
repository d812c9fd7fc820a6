"""Cells: one window of one key, as an object while an epoch looks at it and as a row of a table between epochs.

A cell is read when a row or a time touches it and written once, when the epoch settles. It is known by its slot
in the table, which stays the same for an epoch. Accumulators are not read: they are merged in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.operator import Outlook
from headrace._runtime.state import ShardState
from headrace._runtime.windows.rows.layout import CELLS, Layout
from headrace._runtime.windows.rows.schedule import CLOCK_WHEEL, EVENT_WHEEL, Schedule
from headrace._runtime.windows.rows.shown import Shown
from headrace._runtime.windows.rows.stored import NOTHING, Stored
from headrace._runtime.windows.rows.tree import Tree
from headrace.triggers.builtin import NONE
from headrace.watermarks import END_OF_TIME

__all__ = ["Cell", "Cells"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Cell:
    """One window of one key."""

    __slots__ = (
        "clock_at",
        "event_at",
        "event_timer",
        "firings",
        "fresh",
        "gone",
        "greatest",
        "key",
        "last",
        "past",
        "rows",
        "run",
        "segment",
        "shown",
        "slot",
        "start",
        "state",
        "stored",
        "values",
    )

    def __init__(self, slot: int, start: int, last: int, values: list[Any]) -> None:
        self.slot = slot
        self.start = start
        self.last = last
        #: What the trigger remembers.
        self.values = values
        #: How many rows are in it, and their greatest timestamp.
        self.rows = 0
        self.greatest = NONE
        self.firings = 0
        #: It has fired at its end or behind it.
        self.past = False
        self.gone = False
        self.key: Any = None
        #: What the function keeps for the window.
        self.state: list[Any] = []
        #: Results that stand, as places among those that were shown.
        self.shown: list[int] = []
        # Where it stands in the schedule
        self.event_at = self.event_timer = self.clock_at = NONE
        # Accumulators: the run and the segment of rows that is being filled, see `folded`
        self.run = -1
        self.segment = -1
        # Rows: those in state and those of this epoch, see `contents`
        self.stored = NOTHING
        self.fresh: list[int] = []


class Cells:
    """The cells of one shard."""

    def __init__(self, layout: Layout, tree: Tree, state: ShardState, shown: Shown | None) -> None:
        # Configuration
        self._layout = layout
        self._tree = tree
        self._columns = tree.stored
        self._lateness_us = layout.node.lateness_us
        self._counts = layout.counts
        self._width = 0 if layout.state is None else len(layout.state)
        # Checkpointed
        self.table = state.table(CELLS, 0)
        self._schedule = Schedule(layout.node, state)
        # Of this epoch
        self.live: dict[int, Cell] = {}
        self._shown = shown

    def touch(
        self, hashes: Hashes, keys: Sequence[pa.Array], starts: Integers, lasts: Integers
    ) -> tuple[list[Cell], list[Cell]]:
        """The cells of these distinct keys and windows; and those of them that are new."""
        slots, is_new = self.table.upsert(hashes, [*keys, pa.array(starts), pa.array(lasts)])
        self._read(slots[~is_new])
        fresh = []
        initial, keeps_rows = self._tree.fresh, self._layout.keeps_rows
        spans = zip(starts[is_new].tolist(), lasts[is_new].tolist(), strict=True)
        for slot, (start, last) in zip(slots[is_new].tolist(), spans, strict=True):
            cell = Cell(slot, start, last, initial())
            if self._width:
                cell.state = [None] * self._width
            if keeps_rows:
                cell.stored = Stored(slot, [[start, last, 0]])
            self.live[slot] = cell
            fresh.append(cell)
        live = self.live
        return [live[slot] for slot in slots.tolist()], fresh

    def due(self, wheel: int, before: int, reached: int) -> None:
        """Read the cells about which something is to be done."""
        for hashes, keys in self._schedule.due(wheel, before, reached):
            self._read(self.table.find(hashes, keys))

    def find(self, hashes: Hashes, keys: Sequence[pa.Array]) -> list[Cell]:
        """Cells that exist."""
        slots = self.table.find(hashes, keys)
        self._read(slots)
        return [self.live[slot] for slot in slots.tolist()]

    def closes_at(self, cell: Cell) -> int:
        """The watermark at which a window is over."""
        return (
            END_OF_TIME if self._layout.counts else min(cell.last + self._lateness_us, END_OF_TIME)
        )

    def key_values(self, cells: Sequence[Cell]) -> list[pa.Array]:
        """The key columns of these cells."""
        slots = np.array([cell.slot for cell in cells], np.int64)
        return self.table.keys(slots)[: len(self._layout.keys)]

    def write(self) -> None:
        """Put everything that was looked at back; cells that are gone leave."""
        cells = list(self.live.values())
        if not cells:
            return
        self._plan(cells)
        gone = [cell.slot for cell in cells if cell.gone]
        if gone:
            self.table.remove(np.array(gone, np.int64))
        kept = [cell for cell in cells if not cell.gone]
        if kept:
            self._write(kept)

    def outlook(self) -> Outlook:
        """What is waited for."""
        return self._schedule.outlook()

    def _read(self, slots: Integers) -> None:
        live = self.live
        wanted = np.array([slot for slot in slots.tolist() if slot not in live], np.int64)
        if not len(wanted):
            return
        read, table = self._tree.read, self.table
        columns = [read(place, table.get(spec.name, wanted)) for place, spec in self._columns]
        places = [place for place, _ in self._columns]
        starts, lasts = (bound.to_pylist() for bound in table.keys(wanted)[-2:])
        cells = []
        whole = places == list(range(len(self._tree.fresh())))
        found = zip(*columns, strict=True) if columns else repeat(())
        for slot, start, last, own in zip(wanted.tolist(), starts, lasts, found, strict=False):
            values = list(own)
            if not whole:
                values = self._tree.fresh()
                for place, value in zip(places, own, strict=True):
                    values[place] = value
            cells.append(Cell(slot, start, last, values))
        self._read_counters(cells, wanted)
        for cell in cells:
            self._remember_plan(cell)
            live[cell.slot] = cell

    def _read_counters(self, cells: list[Cell], slots: Integers) -> None:
        table = self.table
        names = ("#rows", "#firings", "#past")
        columns = [table.get(name, slots).tolist() for name in names]
        for cell, rows, firings, past in zip(cells, *columns, strict=True):
            cell.rows, cell.firings, cell.past = rows, firings, past
        if not self._layout.node.window.timed:
            for cell, greatest in zip(cells, table.get("#greatest", slots).tolist(), strict=True):
                cell.greatest = greatest
        if self._layout.keeps_rows:
            self._read_parts(cells, slots)
        if self._shown is not None:
            self._shown.read(cells, table.get("#shown", slots), self.key_values(cells))
        if self._layout.state is not None and self._width:
            own = self._layout.state
            states = [own.read(i, table.get(s.name, slots)) for i, s in enumerate(own.specs)]
            for number, cell in enumerate(cells):
                cell.state = [state[number] for state in states]

    def _read_parts(self, cells: list[Cell], slots: Integers) -> None:
        if self._layout.merging:
            lists: Any = self.table.get("#parts", slots)
            for cell, parts in zip(cells, lists.to_pylist(), strict=True):
                found = [[part["start"], part["last"], part["segments"]] for part in parts]
                cell.stored = Stored(cell.slot, found)
            return
        for cell, count in zip(cells, self.table.get("#segments", slots).tolist(), strict=True):
            cell.stored = Stored(cell.slot, [[cell.start, cell.last, count]])

    # Times

    def _times(self, cell: Cell) -> tuple[int, int, int]:
        """When to look at it, by event time; its next timers of event time and of the clock."""
        if cell.gone:
            return NONE, NONE, NONE
        over = self.closes_at(cell)
        if not self._tree.has_timers:
            return over, NONE, NONE
        timer = self._tree.next_event(cell.values)
        if timer > over:
            timer = NONE
        clock = self._tree.next_clock(cell.values) if self._tree.has_clock else NONE
        return over if timer == NONE else min(timer, over), timer, clock

    def _remember_plan(self, cell: Cell) -> None:
        cell.event_at, cell.event_timer, cell.clock_at = self._times(cell)

    def _plan(self, cells: list[Cell]) -> None:
        moved, events, timers, clocks = [], [], [], []
        for cell in cells:
            at, timer, clock = self._times(cell)
            if at != cell.event_at or timer != cell.event_timer or clock != cell.clock_at:
                moved.append(cell)
                events.append(at)
                timers.append(timer)
                clocks.append(clock)
        if not moved:
            return
        slots = _numbers(cell.slot for cell in moved)
        was = _numbers(cell.event_at for cell in moved)
        new, next_timers = _numbers(events), _numbers(timers)
        self._schedule.move(EVENT_WHEEL, self.table, slots, was, new, next_timers)
        if self._tree.has_clock:
            was, new = _numbers(cell.clock_at for cell in moved), _numbers(clocks)
            self._schedule.move(CLOCK_WHEEL, self.table, slots, was, new, new)

    # Writing

    def _write(self, cells: list[Cell]) -> None:
        slots, table = _numbers(cell.slot for cell in cells), self.table
        for place, spec in self._columns:
            table.put(spec.name, slots, self._tree.write(place, [c.values[place] for c in cells]))
        table.put("#rows", slots, _numbers(cell.rows for cell in cells))
        table.put("#firings", slots, _numbers(cell.firings for cell in cells))
        table.put("#past", slots, np.array([cell.past for cell in cells], np.bool_))
        if not self._layout.node.window.timed:
            table.put("#greatest", slots, _numbers(cell.greatest for cell in cells))
        if self._layout.keeps_rows:
            self._write_parts(cells, slots)
        if self._shown is not None:
            table.put("#shown", slots, self._shown.write(cells))
        if self._layout.state is not None:
            for number, spec in enumerate(self._layout.state.specs):
                objects = [cell.state[number] for cell in cells]
                table.put(spec.name, slots, self._layout.state.write(number, objects))

    def _write_parts(self, cells: list[Cell], slots: Integers) -> None:
        if not self._layout.merging:
            self.table.put("#segments", slots, _numbers(cell.stored.segments for cell in cells))
            return
        names = ("start", "last", "segments")
        parts = [
            [dict(zip(names, part, strict=True)) for part in cell.stored.parts] for cell in cells
        ]
        kind = next(spec.type for spec in self.table.spec.values if spec.name == "#parts")
        self.table.put("#parts", slots, pa.array(parts, kind))


def _numbers(values: Iterable[int]) -> Integers:
    return np.fromiter(values, np.int64)
