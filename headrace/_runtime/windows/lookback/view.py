"""The rows of some keys, of the history and due ones, in one row: key by key, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.ordering import ranges, starts_of
from headrace._runtime.windows.lookback.history import Found

__all__ = ["LOOKED_AT", "View", "chunks"]

#: Rows looked at at once, but for a key that has more of them.
LOOKED_AT = 524_288

_WORD = 2**63

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """Columns of rows, the first of them the timestamps."""

    columns: list[pa.Array]
    timestamps: Integers
    #: The key of each row, a number from 0, and the places of the due rows.
    owners: Integers
    due: Integers

    @classmethod
    def of(
        cls, which: slice, sizes: Integers, due: Sequence[pa.Array], found: Sequence[Found]
    ) -> View:
        """That of a slice of the keys, with so many due rows each, given as columns."""
        sources = [*(part.items(which) for part in found), due]
        # For each source the rows of each key, and where they start when sources stand one behind the other.
        counts = np.stack([*(part.counts[which] for part in found), sizes])
        starts = starts_of(counts.ravel()).reshape(counts.shape)
        order = pa.array(ranges(starts.T.ravel(), counts.T.ravel()))
        joined = [pa.concat_arrays(parts) for parts in zip(*sources, strict=True)]
        columns = [column.take(order) for column in joined]
        totals = counts.sum(axis=0)
        ends = np.cumsum(totals)
        owners = np.repeat(np.arange(len(totals)), totals)
        return cls(columns, columns[0].to_numpy(), owners, ranges(ends - sizes, sizes))

    def comparable(self, owners: Integers, times: Integers) -> tuple[Integers, Integers]:
        """(key, time) of all rows, and of those asked for, as words in order."""
        least = min(int(self.timestamps.min()), int(times.min()))
        span = max(int(self.timestamps.max()), int(times.max())) - least + 1
        if span * (int(self.owners[-1]) + 1) < _WORD:
            return self.owners * span + (self.timestamps - least), owners * span + (times - least)
        # Too long a time for one word: its places among the times there are will do.
        moments = np.unique(self.timestamps)
        ranks, wanted = np.searchsorted(moments, self.timestamps), np.searchsorted(moments, times)
        span = len(moments) + 1
        return self.owners * span + ranks, owners * span + wanted


def chunks(sizes: Integers, found: Sequence[Found]) -> Iterator[tuple[slice, slice]]:
    """Some keys at a time, and their due rows, which stand key by key."""
    totals = sum((part.counts for part in found), sizes)
    numbers = (np.cumsum(totals) - totals) // LOOKED_AT
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(sizes)]
    rows = np.concatenate([[0], np.cumsum(sizes)])
    for start, end in pairwise(edges):
        yield slice(start, end), slice(int(rows[start]), int(rows[end]))
