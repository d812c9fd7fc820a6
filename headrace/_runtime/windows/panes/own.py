"""Windows of late rows alone: made in one epoch, said once, and kept nowhere.

They are panes like all others, in a state that nobody writes down.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.panes.contents import Contents
from headrace._runtime.windows.panes.layout import Layout
from headrace._runtime.windows.panes.reading import Piece, read_all
from headrace.keys import KEY_GROUPS
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["OwnWindows"]


class OwnWindows:
    """Rows of this epoch that were too late for all their windows."""

    def __init__(self, node: WindowAggregate, layout: Layout) -> None:
        self._window = node.window
        self._layout = layout
        self._contents: Contents | None = None

    def add(self, pane: int, rows: pa.RecordBatch) -> None:
        """Fold late rows of one pane."""
        if self._contents is None:
            state = ShardState(
                self._layout.tables, MemoryChunkStore(), MemoryArrays(), range(KEY_GROUPS)
            )
            self._contents = Contents(self._window, self._layout, state)
        self._contents.add(pane, rows, NO_WATERMARK)

    def take(self) -> Iterator[tuple[int, Piece]]:
        """Each of their windows, by its end, with all its keys; nothing is left afterwards."""
        contents, self._contents = self._contents, None
        if contents is None:
            return
        for end in contents.ends(NO_WATERMARK, END_OF_TIME):
            for piece in read_all(self._layout.folds, contents.tables(end)):
                yield end, piece
