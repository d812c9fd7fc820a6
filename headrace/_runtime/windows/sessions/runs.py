"""The runs of one phase of an epoch: fed batches put together, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.rows import Rows
from headrace._runtime.windows.sessions.combining import Parts, take_parts
from headrace._runtime.windows.sessions.intervals import Integers, Mask
from headrace._runtime.windows.sessions.layout import ROWS, Layout

__all__ = ["Runs", "late_rows"]


@dataclass(frozen=True, slots=True)
class Runs:
    """Columns of runs."""

    keys: list[pa.Array]
    hashes: npt.NDArray[np.uint64]
    starts: Integers
    ends: Integers
    parts: Parts
    #: The number of the batch that each came in.
    batches: Integers

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, layout: Layout, batches: Sequence[pa.RecordBatch]) -> Runs:
        """All runs of these batches, of which there is at least one."""
        columns = [
            _joined([b.column(name) for b in batches]) for name in layout.fed.names if name != ROWS
        ]
        width = len(layout.keys)
        parts, place = [], width + 3
        for fold in layout.folds:
            parts.append(columns[place : place + len(fold.parts)])
            place += len(fold.parts)
        starts, ends, hashes = (column.to_numpy() for column in columns[width : width + 3])
        numbers = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
        return cls(columns[:width], hashes, starts, ends, parts, numbers)

    @classmethod
    def joined(cls, several: Sequence[Runs]) -> Runs:
        """All of these, one after the other."""
        if len(several) == 1:
            return several[0]
        return cls(
            [_joined(columns) for columns in zip(*(runs.keys for runs in several), strict=True)],
            np.concatenate([runs.hashes for runs in several]),
            np.concatenate([runs.starts for runs in several]),
            np.concatenate([runs.ends for runs in several]),
            [
                [_joined(columns) for columns in zip(*own, strict=True)]
                for own in zip(*(runs.parts for runs in several), strict=True)
            ],
            np.concatenate([runs.batches for runs in several]),
        )

    def take(self, rows: Integers) -> Runs:
        """The runs at these places."""
        places = pa.array(rows)
        return Runs(
            [key.take(places) for key in self.keys],
            self.hashes[rows],
            self.starts[rows],
            self.ends[rows],
            take_parts(self.parts, rows),
            self.batches[rows],
        )

    def arrived(self, layout: Layout, numbers: Integers) -> Parts:
        """The parts, where the order of arrival counts with these numbers added to the places of rows."""
        return [
            fold.arrive(own, numbers) if fold.keeps_arrival else own
            for fold, own in zip(layout.folds, self.parts, strict=True)
        ]


def late_rows(batches: Sequence[pa.RecordBatch], late: Mask, schema: pa.Schema) -> Iterator[Rows]:
    """The rows of late runs; the mask is over the runs of all batches."""
    first = 0
    for batch in batches:
        runs = np.flatnonzero(late[first : first + batch.num_rows])
        first += batch.num_rows
        if runs.size:
            *columns, timestamps = batch.column(ROWS).take(pa.array(runs)).flatten().flatten()
            yield Rows(pa.RecordBatch.from_arrays(columns, schema=schema), timestamps.to_numpy())


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
