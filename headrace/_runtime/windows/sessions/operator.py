"""The half of a session step behind the shuffle: sessions by key, merged as rows come, fired as time passes.

    W promises that no more rows with a timestamp <= W come. Session [s, e):

        W < e-1                  it is open and may grow
        e-1 <= W                 it has fired (`firing` 0)
        W < e-1+lateness         rows may change it: `settle` fires it again, once an epoch; if it grows beyond W
                                 it is open again, and fires when W passes its new end
        e-1+lateness <= W        it is over and gone

The rows of a phase (those before the tick, judged by the watermark before; the others, judged by the new one) are
merged all together with the sessions there are. What then is a session of its own and over was late.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import LATE, MAIN, SessionAggregate
from headrace._runtime.arrivals import PLACE_BITS, Arrivals
from headrace._runtime.operator import KeyedOperator, Moment, Outlook, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.windows.sessions.absorbing import Absorber
from headrace._runtime.windows.sessions.due import Due
from headrace._runtime.windows.sessions.firing import Firing
from headrace._runtime.windows.sessions.intervals import Integers
from headrace._runtime.windows.sessions.layout import END, LONGEST_US, Layout, session_tables
from headrace._runtime.windows.sessions.runs import Runs, late_rows
from headrace._runtime.windows.sessions.store import Held, SessionTable
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["SessionOperator", "session_tables"]

_NONE = np.empty(0, np.int64)
#: Room for the number of a batch in its phase.
_PHASE_BITS = 24


class SessionOperator(KeyedOperator):
    """The sessions of one shard."""

    def __init__(self, node: SessionAggregate, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._layout = Layout.of(node)
        self._lateness_us = min(node.lateness_us, LONGEST_US)
        # Checkpointed
        self._sessions = SessionTable(state)
        self._due = Due(state, self._sessions)
        self._arrivals = Arrivals(state)
        self._absorber = Absorber(
            self._layout, node.lateness_us, self._sessions, self._due, self._arrivals
        )
        self._firing = Firing(node, self._layout, self._sessions)
        # Of this epoch
        self._batches: list[pa.RecordBatch] = []
        self._watermark = NO_WATERMARK
        self._step = 0
        self._waiting = _NONE
        self._last_firings: list[Rows] = []
        self._own: list[Runs] = []

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Keep a fed batch until those of its phase are all there."""
        if batch.num_rows:
            self._batches.append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """Fire the sessions that end behind `before` and not behind `watermark`."""
        before, self._watermark = moment.before, moment.watermark
        self._step = 0 if before == NO_WATERMARK else moment.watermark - before
        yield from self._absorb(before)
        now = _instant(self._watermark)
        due = self._due.take(_instant(before), now)
        if not due.size:
            return
        held = self._sessions.held_by(due)
        ends = np.asarray(self._sessions.rows.get(END, held.slots))
        for rows in self._firing.at_end(held.slots[(ends > _instant(before)) & (ends <= now)]):
            yield MAIN, rows
        self._close(held, ends, now)

    def settle(self) -> Outputs:
        """Merge what came since, then fire again what changed behind its end."""
        yield from self._absorb(self._watermark)
        for rows in [*self._last_firings, *self._firing.again(self._waiting)]:
            yield MAIN, rows
        if self._own:
            for rows in self._firing.own(Runs.joined(self._own)):
                yield MAIN, rows
        if self._layout.keeps_arrival and self._sessions.is_empty:
            self._arrivals.forget()
        self._waiting, self._last_firings, self._own = _NONE, [], []

    def outlook(self) -> Outlook:
        """The next time at which it looks at keys: nothing fires before."""
        next_slice = self._due.next(_instant(self._watermark))
        if next_slice is None:
            return Outlook()
        at, keys = next_slice
        return Outlook(at - 1, keys, at if self._node.window.time == "processing" else None)

    def _absorb(self, watermark: int) -> Outputs:
        batches, self._batches = self._batches, []
        if not batches:
            return
        runs = Runs.of(self._layout, batches)
        done = self._absorber.absorb(runs, watermark, self._step)
        if self._waiting.size:
            self._waiting = self._waiting[~np.isin(self._waiting, done.changed)]
        self._waiting = np.concatenate([self._waiting, done.waiting])
        if not done.late.any():
            return
        if self._layout.late is None:
            late = runs.take(np.flatnonzero(done.late))
            # They never touch state, so their order of arrival counts from the beginning of the epoch.
            numbers = late.batches + (len(self._own) << _PHASE_BITS)
            parts = late.arrived(self._layout, numbers << PLACE_BITS)
            self._own.append(replace(late, parts=parts))
            return
        for rows in late_rows(batches, done.late, self._node.input_schema):
            yield LATE, rows

    def _close(self, held: Held, ends: Integers, now: int) -> None:
        """Sessions that are over leave; if rows before the tick changed one behind its end, it fires once more."""
        over = ends + self._lateness_us <= now
        if self._waiting.size:
            last = np.isin(self._waiting, held.slots[over])
            self._last_firings = list(self._firing.again(self._waiting[last]))
            self._waiting = self._waiting[~last]
        self._sessions.close(held, over)
        at = np.where(ends > now, ends, ends + self._lateness_us)
        nexts = np.full(len(held.heads), END_OF_TIME)
        np.minimum.at(nexts, held.owners[~over], at[~over])
        left = nexts < END_OF_TIME
        self._due.add(held.heads[left], nexts[left], now, self._step)


def _instant(watermark: int) -> int:
    """What ends here or before has ended by this watermark."""
    return min(watermark + 1, END_OF_TIME)
