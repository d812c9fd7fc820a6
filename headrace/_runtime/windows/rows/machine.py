"""The rules of an epoch for cells: rows go in, timers run, windows close; whatever fires is written down.

Nothing here reads or writes state, and nothing is computed: `Folded` or `Contents` remember which rows a firing shows,
and the operator has many of them computed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from headrace._graph.nodes import WindowProcess
from headrace._runtime.usercode import calling
from headrace._runtime.windows.results import EARLY, LATE_PANE, ON_TIME, OWN
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.contents import Contents
from headrace._runtime.windows.rows.context import instant, time_window
from headrace._runtime.windows.rows.firing import Firing
from headrace._runtime.windows.rows.folded import Folded
from headrace._runtime.windows.rows.layout import Layout
from headrace._runtime.windows.rows.tree import Tree
from headrace.evictors import Evictor, TimedRow
from headrace.triggers.builtin import NONE
from headrace.triggers.trigger import TriggerResult

__all__ = ["Machine"]

_CONTINUE = TriggerResult.CONTINUE


class Machine:
    """The trigger of one step on the cells of one shard."""

    def __init__(
        self, layout: Layout, tree: Tree, cells: Cells, contents: Folded | Contents
    ) -> None:
        # Configuration
        self._node: WindowProcess = layout.node
        self._layout = layout
        self._tree = tree
        self._now = tree.now
        self._timed = layout.node.window.timed
        self._discards = layout.node.accumulation == "discarding"
        self._retracts = layout.shown is not None
        # Of this epoch
        self._cells = cells
        self._contents = contents
        self._before = NONE
        self._ticking = False
        self.firings: list[Firing] = []

    def move(self, watermark: int, clock: int, before: int | None = None) -> None:
        """What follows is judged by these times. With `before` it is the tick that moves time on from there."""
        now = self._now
        now.watermark_us = now.event_us = watermark
        now.clock_us = clock
        self._ticking = before is not None
        self._before = watermark if before is None else before

    # Rows

    def start(self, cells: Iterable[Cell]) -> None:
        """These cells are new."""
        for cell in cells:
            self._look_at(cell)
            self._tree.start()

    def add(
        self, cells: Sequence[Cell], timestamps: Sequence[int | None], shown: Sequence[Any]
    ) -> None:
        """Rows in order of arrival: the cell, the timestamp, and for users' triggers the row of each."""
        if self._tree.counts_to is not None:
            self._count(cells, timestamps, *self._tree.counts_to)
        else:
            self._ask(cells, timestamps, shown)

    def _count(
        self, cells: Sequence[Cell], timestamps: Sequence[int | None], rows: int,
        verdict: TriggerResult,
    ) -> None:  # fmt: skip
        """What `CountRows` does, without a call for each row."""
        add, more, timed = self._contents.add, self._contents.more, self._timed
        for place, cell in enumerate(cells):
            cell.rows += 1
            if cell.segment >= 0:
                more(cell.segment)
            else:
                add(cell)
            if not timed:
                _see(cell, timestamps[place])
            values = cell.values
            values[0] += 1
            # Counters of merged windows are added up, and may be beyond it.
            if values[0] >= rows:
                values[0] = 0
                self._do(cell, verdict)

    def _ask(
        self, cells: Sequence[Cell], timestamps: Sequence[int | None], shown: Sequence[Any]
    ) -> None:
        now, on_element, add = self._now, self._tree.on_element, self._contents.add
        written, timed = self._tree.written, self._timed
        row: Any = None
        timestamp: Any = None
        for place, cell in enumerate(cells):
            ts = timestamps[place]
            cell.rows += 1
            add(cell)
            if not timed:
                _see(cell, ts)
            now.values = cell.values
            now.start_us = cell.start
            now.end_us = cell.last + 1
            now.timestamp_us = ts or 0
            if written:
                row, timestamp = shown[place], None if ts is None else instant(ts)
            verdict = on_element(row, timestamp)
            if verdict is not _CONTINUE:
                self._do(cell, verdict)

    # Time

    def run_timers(self) -> None:
        """All timers that are due: those of event time in their order, then those of the clock."""
        now, tree = self._now, self._tree
        if not tree.has_timers:
            return
        self._run(
            now.watermark_us, tree.next_event, tree.pop_event, tree.on_event_time, clock=False
        )
        if tree.has_clock:
            self._run(
                now.clock_us, tree.next_clock, tree.pop_clock, tree.on_processing_time, clock=True
            )

    def _run(self, reached: int, following: Any, pop: Any, call: Any, *, clock: bool) -> None:
        def due(cell: Cell) -> int:
            if cell.gone:
                return NONE
            time: int = following(cell.values)
            is_due = time <= reached and (clock or time <= self._cells.closes_at(cell))
            return time if is_due else NONE

        now = self._now
        live = self._cells.live
        found = ((due(cell), cell) for cell in live.values())
        # Of one key, windows are looked at in their order: what a function keeps for a key may depend on it.
        waiting = [(time, cell.start, cell.last, cell.slot) for time, cell in found if time != NONE]
        heapify(waiting)
        while waiting:
            time, *_, slot = heappop(waiting)
            cell = live[slot]
            self._look_at(cell)
            pop(cell.values, time)
            now.event_us = now.watermark_us if clock else time
            verdict = call()
            if verdict is not _CONTINUE:
                self._do(cell, verdict)
            if (following_time := due(cell)) != NONE:
                heappush(waiting, (following_time, cell.start, cell.last, slot))
        now.event_us = now.watermark_us

    def settle(self, cells: Iterable[Cell], *, closing: bool) -> None:
        """Whatever waits to be shown."""
        for cell in cells if self._tree.settles else ():
            self._look_at(cell)
            verdict = self._tree.settle(closing=closing)
            if verdict is not _CONTINUE:
                self._do(cell, verdict)

    def live(self) -> list[Cell]:
        """The cells that this epoch looks at, in the order of their windows."""
        live = [cell for cell in self._cells.live.values() if not cell.gone]
        return sorted(live, key=_span)

    def over(self) -> list[Cell]:
        """Those whose windows are over."""
        watermark, closes_at = self._now.watermark_us, self._cells.closes_at
        return [cell for cell in self.live() if closes_at(cell) <= watermark]

    def close(self, cells: Sequence[Cell]) -> list[Firing]:
        """These cells leave; as many firings that never were, for functions that clear their state."""
        for cell in cells:
            self._look_at(cell)
            self._tree.clear()
            if isinstance(self._contents, Contents):
                self._contents.clear(cell)
            cell.gone = True
        return [self._firing(cell, "", 0) for cell in cells]

    def join(self, cell: Cell, parts: Sequence[Cell]) -> None:
        """A new cell goes on with what these began."""
        cell.rows = sum(part.rows for part in parts)
        cell.greatest = max(part.greatest for part in parts)
        cell.firings = max(part.firings for part in parts)
        cell.past = any(part.past for part in parts)
        cell.shown = [place for part in parts for place in part.shown]
        cell.state = parts[0].state
        self._look_at(cell)
        self._tree.merge([part.values for part in parts])
        for part in parts:
            part.gone = True

    # Firing

    def own(self, cells: Iterable[Cell]) -> None:
        """Show the rows of cells that are none: too late for all others, they are alone."""
        for cell in cells:
            self._fire(cell, OWN)

    def _do(self, cell: Cell, verdict: TriggerResult) -> None:
        if verdict is not TriggerResult.PURGE and cell.rows:
            self._fire(cell, self._pane(cell))
        if verdict is TriggerResult.PURGE or verdict is TriggerResult.FIRE_AND_PURGE:
            # What was shown of these rows stands: it is never taken back.
            cell.shown = []
            self._empty(cell)

    def _pane(self, cell: Cell) -> str:
        if self._layout.counts:
            return ON_TIME
        if self._now.event_us < cell.last or self._now.watermark_us < cell.last:
            return EARLY
        passes = self._ticking and self._before < cell.last
        return ON_TIME if passes and not cell.past else LATE_PANE

    def _fire(self, cell: Cell, pane: str) -> None:
        evictor, contents = self._layout.evictor, self._contents
        shown: list[int] = []
        if evictor is not None and isinstance(contents, Contents):
            contents.read([cell.stored])
            shown = self._evict(
                cell, evictor, contents.places(cell.stored, cell.fresh), evictor.evict_before
            )
            if not shown:
                self._empty(cell)
                return
        number = max(1, cell.firings) if pane == LATE_PANE else cell.firings
        firing = self._firing(cell, pane, number)
        cell.firings, cell.past = number + 1, cell.past or pane != EARLY
        if self._retracts:
            firing.withdraws, cell.shown = cell.shown, [-1 - len(self.firings)]
        if isinstance(contents, Folded):
            contents.fire(cell, firing)
        elif evictor is None:
            firing.stored, firing.fresh = cell.stored, list(cell.fresh)
        else:
            firing.fresh = shown
            if not self._timed:
                firing.stamp = contents.latest(shown, firing.stamp)
            left = self._evict(cell, evictor, shown, evictor.evict_after)
            contents.replace(cell, list(left))
            cell.rows = len(left)
        self.firings.append(firing)
        if self._discards:
            self._empty(cell)

    def _firing(self, cell: Cell, pane: str, number: int) -> Firing:
        now = self._now
        firing = Firing(cell, pane, number, now.watermark_us, now.clock_us)
        if not self._timed:
            firing.stamp = now.clock_us if cell.greatest == NONE else cell.greatest
        return firing

    def _evict(self, cell: Cell, evictor: Evictor, places: list[int], evict: Any) -> list[int]:
        """The rows that stay, in order of arrival."""
        method = evict.__name__
        if getattr(type(evictor), method) is getattr(Evictor, method):
            return places
        assert isinstance(self._contents, Contents)
        rows = self._contents.objects(places)
        moments = self._contents.timestamps(places)
        timed = [TimedRow(row, moment) for row, moment in zip(rows, moments, strict=True)]
        with calling(self._node.uid):
            kept = {id(row.row) for row in evict(timed, time_window(cell.start, cell.last))}
        return [place for place, row in zip(places, rows, strict=True) if id(row) in kept]

    def _empty(self, cell: Cell) -> None:
        cell.rows = 0
        cell.greatest = NONE
        self._contents.clear(cell)

    def _look_at(self, cell: Cell) -> None:
        now = self._now
        now.values = cell.values
        now.start_us = cell.start
        now.end_us = cell.last + 1


def _see(cell: Cell, timestamp: int | None) -> None:
    if timestamp is not None and timestamp > cell.greatest:
        cell.greatest = timestamp


def _span(cell: Cell) -> tuple[int, int]:
    return cell.start, cell.last
