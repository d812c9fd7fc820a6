"""The half of the step before the shuffle: rows without a key or a gap leave, all others are sent as they are.

Late rows are told apart behind the shuffle, with the windows that only that side knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headrace._graph.nodes import ERRORS, WindowProcess
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import Unfolded
from headrace._runtime.windows.rows.layout import END, Layout
from headrace._runtime.windows.sessions.gaps import split_ends

__all__ = ["RowsFeeder"]


class RowsFeeder(Feeder):
    """Sends the rows of one task for one step, in order of arrival."""

    def __init__(self, node: WindowProcess) -> None:
        self._node = node
        layout = Layout(node)
        self._merging = layout.merging
        self._unfolded = Unfolded(node.keys, layout.sent)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those that cannot be used."""
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
        if dead is not None:
            yield ERRORS, dead
        if self._merging:
            sessions: Any = self._node
            rows, ends, dead = split_ends(rows, sessions)
            if dead is not None:
                yield ERRORS, dead
            rows = rows.with_batch(rows.batch.append_column(END, pa.array(ends)))
        self._unfolded.add(rows)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What was fed."""
        yield from self._unfolded.take()
