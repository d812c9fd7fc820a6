"""What a window says when it fires: its number, what it withdraws, and rows of the step's schema.

`firings` counts the firings of a key and window, but only of those that fired early or late: a key that is not
in it fired once, on time, or never. A step that withdraws its results says, before a key's second one,

    early, on time    what the early firing before said: it is kept in `shown` until the window has fired on time
    late              what the window said before the rows of this epoch changed it (`changes`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.windows.panes.contents import drop_before
from headrace._runtime.windows.panes.layout import (
    CORRECTED,
    FIRINGS,
    NUMBER,
    RESULT,
    SHOWN,
    Layout,
    early_every,
)  # fmt: skip
from headrace._runtime.windows.panes.reading import Piece
from headrace._runtime.windows.results import EARLY, LATE_PANE, ON_TIME, OWN, result_rows

__all__ = ["Firing"]

Integers = npt.NDArray[np.int64]


class Firing:
    """Makes result rows of one window step."""

    def __init__(self, node: WindowAggregate, layout: Layout, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._result = layout.result
        self._early = early_every(node) is not None
        self._retracting = node.accumulation == "retracting"
        # Checkpointed
        self._state = state

    def on_time(self, end: int, piece: Piece) -> Iterator[Rows]:
        """The window is at its end."""
        if not self._early or end not in self._state.buckets(FIRINGS):
            yield self._rows(end, piece, ON_TIME, 0, "+I")
            return
        counts = self._state.table(FIRINGS, end)
        slots = counts.find(piece.hashes, piece.keys)
        known = np.flatnonzero(slots >= 0)
        firings = np.zeros(len(slots), np.int64)
        firings[known] = counts.get(NUMBER, slots[known])
        counts.put(NUMBER, slots[known], firings[known] + 1)
        withdrawn, changes = self._withdraw_early(end, piece, firings)
        yield from withdrawn
        yield self._rows(end, piece, ON_TIME, firings, changes)

    def early(self, end: int, piece: Piece) -> Iterator[Rows]:
        """The window is not at its end."""
        counts = self._state.table(FIRINGS, end)
        slots, is_new = counts.upsert(piece.hashes, piece.keys)
        firings: Integers = np.where(is_new, 0, counts.get(NUMBER, slots))
        counts.put(NUMBER, slots, firings + 1)
        withdrawn, changes = self._withdraw_early(end, piece, firings)
        yield from withdrawn
        if self._retracting:
            shown = self._state.table(SHOWN, end)
            places, _ = shown.upsert(piece.hashes, piece.keys)
            shown.put(RESULT, places, self._as_one(piece.values))
        yield self._rows(end, piece, EARLY, firings, changes)

    def late(self, end: int, piece: Piece, before: Sequence[Piece]) -> Iterator[Rows]:
        """Rows came for the window behind its end. `before` are the results that they made wrong."""
        counts = self._state.table(FIRINGS, end)
        slots, _ = counts.upsert(piece.hashes, piece.keys)
        had = np.zeros(len(slots), np.bool_)
        for old in before:
            places = counts.find(old.hashes, old.keys)
            had |= np.isin(slots, places)
            corrected = counts.get(CORRECTED, places)
            panes = pc.if_else(pa.array(corrected), pa.scalar(LATE_PANE), pa.scalar(ON_TIME))
            yield self._rows(end, old, panes, counts.get(NUMBER, places) - 1, "-U")
        firings = counts.get(NUMBER, slots)
        counts.put(NUMBER, slots, firings + 1)
        counts.put(CORRECTED, slots, np.ones(len(slots), np.bool_))
        yield self._rows(end, piece, LATE_PANE, firings, _changes(had))

    def own(self, end: int, piece: Piece) -> Rows:
        """A window of late rows alone."""
        return self._rows(end, piece, OWN, 0, "+I")

    def drop(self, passed: int, over: int) -> None:
        """Forget windows that are over, and what was shown of those that are at their end."""
        drop_before(self._state, FIRINGS, over + 1)
        if self._early and self._retracting:
            drop_before(self._state, SHOWN, passed + 1)

    def _withdraw_early(
        self, end: int, piece: Piece, firings: Integers
    ) -> tuple[list[Rows], pa.Array | str]:
        """What early firings said of these keys, whose next firings have these numbers; the changes they are."""
        if not self._retracting or end not in self._state.buckets(SHOWN):
            return [], "+I"
        shown = self._state.table(SHOWN, end)
        slots = shown.find(piece.hashes, piece.keys)
        had = slots >= 0
        places = np.flatnonzero(had)
        if not len(places):
            return [], "+I"
        rows = pa.array(places)
        keys = [key.take(rows) for key in piece.keys]
        old = Piece(piece.hashes[places], keys, shown.arrow(RESULT, slots[places]).flatten())
        return [self._rows(end, old, EARLY, firings[places] - 1, "-U")], _changes(had)

    def _as_one(self, values: Sequence[pa.Array]) -> pa.StructArray:
        fields = list(self._result)
        cast = [v.cast(f.type) for v, f in zip(values, fields, strict=True)]
        return pa.StructArray.from_arrays(cast, fields=fields)

    def _rows(
        self, end: int, piece: Piece, panes: pa.Array | str, firings: Integers | int,
        changes: pa.Array | str,
    ) -> Rows:  # fmt: skip
        start, stop = self._node.window.span(end)
        return result_rows(
            self._node,
            piece.keys,
            piece.values,
            starts=start,
            ends=stop,
            panes=panes,
            firings=firings,
            changes=changes,
        )


def _changes(had: npt.NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(had), pa.scalar("+U"), pa.scalar("+I"))
