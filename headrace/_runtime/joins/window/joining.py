"""The results of one window: pairs of its rows, and rows that are by themselves, with the bounds of the window beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import WindowJoin
from headrace._runtime.joins.results import joined_rows
from headrace._runtime.joins.sides import Columns
from headrace._runtime.joins.window.meeting import Meeting
from headrace._runtime.rows import Rows
from headrace._runtime.windows.results import shown_bounds

__all__ = ["Joining"]

Integers = npt.NDArray[np.int64]
#: The instants at which a window begins and ends.
Span = tuple[int, int]


class Joining:
    """Makes the results of one step."""

    def __init__(self, node: WindowJoin) -> None:
        self._node = node
        self._preserved = [side for side in (0, 1) if node.preserves(side)]
        #: Columns of the right that the left has not got.
        self._apart = [
            name for column in node.columns for side, name in column.origins[:1] if side == 1
        ]

    def results(
        self,
        span: Span,
        rows: Sequence[pa.RecordBatch],
        keys: Sequence[Sequence[pa.Array]],
        old: Sequence[int] = (0, 0),
    ) -> Iterator[Rows]:
        """What follows from the rows of both sides behind the first, old ones, whose results were made before."""
        meeting = Meeting(keys, old)
        for side in self._preserved:
            yield from self._some(span, side, rows, meeting.no_longer_alone(side), "-D")
        if self._node.how == "semi":
            yield from self._some(span, 0, rows, meeting.accompanied(0), "+I")
        elif self._node.how != "anti":
            for left, right in meeting.pairs():
                yield self._made(span, self._paired(rows, left, right), len(left))
        for side in self._preserved:
            yield from self._some(span, side, rows, meeting.alone(side), "+I")

    def alone(self, span: Span, side: int, rows: pa.RecordBatch) -> Rows:
        """Rows of one side that cannot have a partner."""
        return self._made(span, {side: _columns(rows)}, rows.num_rows)

    def _some(
        self, span: Span, side: int, rows: Sequence[pa.RecordBatch], places: Integers, change: str
    ) -> Iterator[Rows]:
        if len(places):
            taken = _columns(rows[side].take(pa.array(places)))
            yield self._made(span, {side: taken}, len(places), change)

    def _paired(
        self, rows: Sequence[pa.RecordBatch], left: Integers, right: Integers
    ) -> dict[int, Columns]:
        mine = _columns(rows[0].take(pa.array(left)))
        others = _columns(rows[1].select(self._apart).take(pa.array(right)))
        # Keys that stand once are equal: those of the left are both.
        return {0: mine, 1: {**mine, **others}}

    def _made(
        self, span: Span, sides: Mapping[int, Columns], count: int, change: str = "+I"
    ) -> Rows:
        added = [pa.array(shown_bounds(bound, count)) for bound in span]
        if self._node.emits_changes:
            added.append(pa.repeat(change, count))
        stamps = np.full(count, span[1] - 1, np.int64)
        return joined_rows(self._node, sides, stamps, count, added)


def _columns(rows: pa.RecordBatch) -> Columns:
    return dict(zip(rows.schema.names, rows.columns, strict=True))
