"""Result rows of sessions, straight from their table or from the columns of late runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import SessionAggregate
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.rows import Rows
from headrace._runtime.windows.results import LATE_PANE, ON_TIME, OWN, result_rows
from headrace._runtime.windows.sessions.combining import combine
from headrace._runtime.windows.sessions.intervals import Integers, merge_intervals
from headrace._runtime.windows.sessions.layout import END, FIRED, START, Layout
from headrace._runtime.windows.sessions.runs import Runs
from headrace._runtime.windows.sessions.store import SessionTable

__all__ = ["EMIT_ROWS", "Firing"]

#: Result rows in a batch at most.
EMIT_ROWS = 131_072

_PANES = pa.array([ON_TIME, LATE_PANE])


class Firing:
    """Makes result rows of one session step."""

    def __init__(self, node: SessionAggregate, layout: Layout, sessions: SessionTable) -> None:
        self._node = node
        self._layout = layout
        self._sessions = sessions

    def at_end(self, slots: Integers) -> Iterator[Rows]:
        """Sessions whose end time passed: on time, unless they fired before."""
        for part in _pieces(slots):
            firings = self._sessions.rows.get(FIRED, part)
            yield self._rows(part, np.asarray(firings))

    def again(self, slots: Integers) -> Iterator[Rows]:
        """Sessions that changed behind their end."""
        for part in _pieces(slots):
            firings = self._sessions.rows.get(FIRED, part)
            yield self._rows(part, np.maximum(firings, 1))

    def own(self, runs: Runs) -> Iterator[Rows]:
        """Late runs as sessions of their own."""
        numbers, _ = number_keys(runs.keys)
        spans = merge_intervals(numbers, runs.starts, runs.ends)
        whole = combine(self._layout.folds, runs.parts, spans.of)
        for part in _pieces(np.arange(len(spans.starts))):
            places = pa.array(spans.firsts[part])
            yield result_rows(
                self._node,
                [key.take(places) for key in runs.keys],
                [fold.result(whole.columns, whole.slots[part]) for fold in self._layout.folds],
                starts=spans.starts[part],
                ends=spans.ends[part],
                panes=OWN,
                firings=0,
            )

    def _rows(self, slots: Integers, firings: Integers) -> Rows:
        table = self._sessions.rows
        rows = result_rows(
            self._node,
            self._sessions.keys(slots),
            [fold.result(table, slots) for fold in self._layout.folds],
            starts=np.asarray(table.get(START, slots)),
            ends=np.asarray(table.get(END, slots)),
            panes=_PANES.take(pa.array((firings > 0).astype(np.int8))),
            firings=firings,
        )
        table.put(FIRED, slots, firings + 1)
        return rows


def _pieces(slots: Integers) -> Iterator[Integers]:
    for start in range(0, len(slots), EMIT_ROWS):
        yield slots[start : start + EMIT_ROWS]
