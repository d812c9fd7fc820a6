"""The half of a window join before the shuffle: rows without a key and late ones leave, all others know their pane.

A sent row has the start of its pane where others have their timestamp: nobody behind the shuffle asks for more. A row may be
in many windows; it is late only if the last of them is over. Of the right of a semi or anti join nothing is sent but
which keys there are in which pane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.joins.feeder import KeysAlike
from headrace._runtime.joins.sides import Side
from headrace._runtime.joins.window.store import only_keys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import TIMESTAMP, Unfolded
from headrace.errors import EngineError
from headrace.watermarks import NO_WATERMARK

__all__ = ["WindowJoinFeeder"]


class WindowJoinFeeder(Feeder):
    """Sends the rows of one task for one input."""

    def __init__(self, node: WindowJoin, side: int) -> None:
        self._node = node
        self._number = side
        self._side = Side.of(node, side)
        self._only_keys = only_keys(node, side)
        self._alike = KeysAlike(node, side)
        sent = self._side.keys if self._only_keys else self._side.sent
        self._unfolded = Unfolded(self._side.key_names, sent)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key, if they need a partner, and late ones."""
        if not self._node.preserves(self._number):
            rows, dead = split_null_keys(rows, self._node.uid, self._side.key_names)
            if dead is not None:
                yield ERRORS, dead
        if rows.timestamps is None:
            raise EngineError(f"Rows without timestamps reached the join '{self._node.uid}'.")
        panes = self._node.window.pane_starts(rows.timestamps)
        window = self._node.window
        horizon = window.first_open(window.passed(watermark - self._node.lateness_us))
        if horizon > NO_WATERMARK and len(panes) and panes.min() < horizon:
            late = panes < horizon
            yield (LATE_RIGHT if self._number else LATE), rows.filter(late)
            rows, panes = rows.filter(~late), panes[~late]
        self._unfolded.add(Rows(self._alike(rows.batch), panes))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        for batch in self._unfolded.take():
            yield self._distinct(batch) if self._only_keys else batch

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys."""
        return self._unfolded.heavy

    def _distinct(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Each key of a pane once."""
        keys = [*self._side.key_columns(batch), batch.column(TIMESTAMP)]
        _, firsts = number_keys(keys)
        return batch if len(firsts) == batch.num_rows else batch.take(pa.array(firsts))
