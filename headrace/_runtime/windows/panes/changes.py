"""Which keys of which fired windows changed in this epoch: what must fire again.

Nothing is remembered for rows that are on time, so they cost nothing here. A step that withdraws its results also
remembers what each of these windows said before its first change in the epoch; as late firings follow in
the same epoch, that is never a matter of state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Slots
from headrace._runtime.state import MemoryArrays, Table, TableSpec
from headrace._runtime.windows.panes.reading import Piece

__all__ = ["Changed", "Changes", "Recall"]

Hashes = npt.NDArray[np.uint64]
#: What some keys of a window say now: which of the keys are there, and their values.
Recall = Callable[[int, Hashes, Sequence[pa.Array]], tuple[Slots, Piece]]


class Changed(NamedTuple):
    """Distinct keys of the window that ends at `end`, and those of them that had a result, with it."""

    end: int
    hashes: Hashes
    keys: list[pa.Array]
    before: list[Piece]


class Changes:
    """Keys by the end of the window."""

    def __init__(self, keys: pa.Schema, recall: Recall | None) -> None:
        self._spec = TableSpec("changed", keys)
        self._recall = recall
        self._changed: dict[int, Table] = {}
        self._before: dict[int, list[Piece]] = {}

    def add(self, end: int, hashes: Hashes, keys: Sequence[pa.Array]) -> None:
        """Rows of these distinct keys are about to change a window that has fired."""
        if end not in self._changed:
            self._changed[end] = Table(self._spec, MemoryArrays())
            self._before[end] = []
        _, is_new = self._changed[end].upsert(hashes, keys)
        if self._recall is None or not is_new.any():
            return
        new = np.flatnonzero(is_new)
        if len(new) < len(hashes):
            hashes, keys = hashes[new], [key.take(pa.array(new)) for key in keys]
        _, piece = self._recall(end, hashes, keys)
        if len(piece.hashes):
            self._before[end].append(piece)

    def take(self, until: int) -> Iterator[Changed]:
        """The windows that end at `until` or before, in order of their ends."""
        for end in sorted(end for end in self._changed if end <= until):
            table = self._changed.pop(end)
            live = table.live()
            yield Changed(end, table.hashes(live), table.keys(live), self._before.pop(end))
