"""Rows of a batch cut into panes by the number of rows that their key had before, and folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._runtime.aggregates.fold import Columns, Flush, Fold, Slots
from headrace._runtime.operator import HASH
from headrace._runtime.ordering import places_within, starts_of
from headrace._runtime.plain_keys import key_columns, number_keys
from headrace._runtime.state import Table
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.windows.counts.layout import ROWS
from headrace._runtime.windows.folding import fold_groups

__all__ = ["Arrived", "FoldedPanes", "merge_parts"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Arrived:
    """The distinct keys of a batch, where each is counted, and its rows before the batch and behind it."""

    codes: Integers
    hashes: npt.NDArray[np.uint64]
    keys: list[pa.Array]
    slots: Slots
    before: Integers
    after: Integers

    @classmethod
    def count(cls, batch: pa.RecordBatch, names: Sequence[str], table: Table) -> Arrived:
        """Count the rows of a batch in the table."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        keys = key_columns(names, columns, batch.num_rows)
        codes, firsts = number_keys(keys)
        places = pa.array(firsts)
        distinct = [key.take(places) for key in keys]
        hashes = batch.column(HASH).to_numpy()[firsts]
        slots, _ = table.upsert(hashes, distinct)
        rows = table.values(ROWS)
        before = rows[slots]
        after = before + np.bincount(codes, minlength=len(firsts))
        rows[slots] = after
        table.touch(slots)
        return cls(codes, hashes, distinct, slots, before, after)

    def keys_at(self, owners: Integers) -> list[pa.Array]:
        """The keys with these numbers."""
        places = pa.array(owners)
        return [key.take(places) for key in self.keys]


@dataclass(frozen=True)
class FoldedPanes:
    """The panes of a batch: of which key, which of its panes, and the parts of every fold."""

    owners: Integers
    numbers: Integers
    parts: list[pa.Array]

    @classmethod
    def of(
        cls, batch: pa.RecordBatch, arrived: Arrived, size: int, folds: Sequence[Fold]
    ) -> FoldedPanes:
        """Fold a batch by key and pane of `size` rows."""
        first = arrived.before // size
        spans = (arrived.after - 1) // size - first + 1
        starts = starts_of(spans)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        timestamps = pc.fill_null(columns[TIMESTAMP], 0).to_numpy()
        groups = _groups(arrived, size, spans, starts)
        (found,), parts = fold_groups(Flush(columns, timestamps), [pa.array(groups)], folds)
        owners = np.repeat(np.arange(len(spans)), spans)
        numbers = np.arange(len(owners)) + (first - starts)[owners]
        places = found.to_numpy()
        return cls(owners[places], numbers[places], parts)

    def at(self, places: npt.NDArray[np.bool_]) -> FoldedPanes:
        """Those where the mask is true."""
        if places.all():
            return self
        rows = pa.array(np.flatnonzero(places))
        parts = [part.take(rows) for part in self.parts]
        return FoldedPanes(self.owners[places], self.numbers[places], parts)


def merge_parts(
    folds: Sequence[Fold], into: Columns, slots: Slots, parts: Sequence[pa.Array]
) -> None:
    """Merge the parts of all folds, one behind the other."""
    place = 0
    for fold in folds:
        fold.merge(into, slots, parts[place : place + len(fold.parts)])
        place += len(fold.parts)


def _groups(arrived: Arrived, size: int, spans: Integers, starts: Integers) -> Integers:
    """A number for each row: that of its key's first pane in the batch, and so on."""
    groups = starts[arrived.codes]
    cut = spans > 1
    if not cut.any():
        return groups
    # Only where a key's rows are cut their order matters.
    rows = np.flatnonzero(cut[arrived.codes])
    codes = arrived.codes[rows]
    places = places_within(codes, np.where(cut, arrived.after - arrived.before, 0))
    places += (arrived.before % size)[codes]
    groups[rows] += places // size
    return groups
