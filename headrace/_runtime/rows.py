"""Rows on their way through a chain: columns, event timestamps, and where each row came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Origin", "Rows"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows came from, as messages say it, and the offset of each."""

    source: str
    partition: str
    offsets: npt.NDArray[np.int64]
    #: The source partition as epochs know it: all files of a source are one.
    lane: str = ""

    def at(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Origin:
        """That of the rows at these places."""
        return replace(self, offsets=self.offsets[places])


@dataclass(frozen=True, slots=True)
class Rows:
    """A record batch with one timestamp (microseconds since 1970, UTC) a row.

    `timestamps` is None behind a source without a watermark strategy. `origin` is None behind a shuffle
    and behind a step that changes the number of rows in a way we cannot follow.
    """

    batch: pa.RecordBatch
    timestamps: npt.NDArray[np.int64] | None
    origin: Origin | None = None

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def take(self, indices: npt.NDArray[np.int64]) -> Rows:
        """The rows at these places, repeated or reordered as asked."""
        return Rows(
            self.batch.take(pa.array(indices)),
            None if self.timestamps is None else self.timestamps[indices],
            None if self.origin is None else self.origin.at(indices),
        )

    def filter(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """The rows where the mask is true."""
        if mask.all():
            return self
        return Rows(
            self.batch.filter(pa.array(mask)),
            None if self.timestamps is None else self.timestamps[mask],
            None if self.origin is None else self.origin.at(mask),
        )

    def with_batch(self, batch: pa.RecordBatch) -> Rows:
        """Other columns for the same rows."""
        return Rows(batch, self.timestamps, self.origin)

    def descend(self, batch: pa.RecordBatch, parents: npt.NDArray[np.int64] | None) -> Rows:
        """Other rows, made of those at these places; of each in turn where no places are said."""
        if parents is None:
            return self.with_batch(batch)
        came = self.origin
        return Rows(
            batch,
            None if self.timestamps is None else self.timestamps[parents],
            None if came is None else came.at(parents),
        )
