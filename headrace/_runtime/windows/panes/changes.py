"""Which keys of which fired windows changed in this epoch: what must fire again.

Nothing is remembered for rows that are on time, so they cost nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.plain_keys import number_keys
from headrace.windows import Window

__all__ = ["Changes"]

Hashes = npt.NDArray[np.uint64]


class Changes:
    """Keys by the start of the window."""

    def __init__(self, window: Window, lateness_us: int) -> None:
        self._size_us = window.size_us
        self._slide_us = window.slide_us
        self._lateness_us = lateness_us
        self._changed: dict[int, list[tuple[Hashes, Sequence[pa.Array]]]] = {}

    def add(self, pane: int, watermark: int, hashes: Hashes, keys: Sequence[pa.Array]) -> None:
        """Rows of these keys were merged into a pane at this watermark."""
        if pane + self._slide_us - 1 > watermark or not self._lateness_us:
            return
        for start in range(pane - self._size_us + self._slide_us, pane + 1, self._slide_us):
            last = start + self._size_us - 1
            if last <= watermark < last + self._lateness_us:
                self._changed.setdefault(start, []).append((hashes, keys))

    def take(self, until: int) -> Iterator[tuple[int, Hashes, list[pa.Array]]]:
        """(start, hashes, distinct keys) of windows that start at `until` or before, in order of time."""
        for start in sorted(start for start in self._changed if start <= until):
            parts = self._changed.pop(start)
            hashes = np.concatenate([part[0] for part in parts])
            columns = zip(*(part[1] for part in parts), strict=True)
            keys = [pa.concat_arrays(column) for column in columns]
            if len(parts) == 1:
                yield start, hashes, keys
                continue
            _, firsts = number_keys(keys)
            rows = pa.array(firsts)
            yield start, hashes[firsts], [key.take(rows) for key in keys]
