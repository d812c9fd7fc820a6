"""Which kept rows have the keys of some others: pairs of places, a bounded number of them at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.joins.sides import Side
from headrace._runtime.operator import HASH
from headrace._runtime.ordering import ranges, starts_of
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.state import Table
from headrace.keys import hash_keys

__all__ = ["PAIRS", "Probe", "expand", "portions"]

#: Pairs made at once, but for a row that has more partners.
PAIRS = 262_144

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Probe:
    """Rows by key: the number of each row's key, and the distinct keys."""

    codes: Integers
    keys: list[pa.Array]
    hashes: Hashes

    @classmethod
    def of(cls, keys: Sequence[pa.Array]) -> Probe:
        """The probe of rows with these key columns, in stored form."""
        codes, firsts = number_keys(keys)
        distinct = [column.take(pa.array(firsts)) for column in keys]
        return cls(codes, distinct, hash_keys(distinct))

    @classmethod
    def of_sides(
        cls, batches: Mapping[int, pa.RecordBatch], sides: Sequence[Side]
    ) -> tuple[Probe, dict[int, Integers]]:
        """The probe of sent rows of several inputs, and the numbers of the keys of each input's rows."""
        keys = [sides[number].key_columns(batch) for number, batch in batches.items()]
        columns = [pa.concat_arrays(parts) for parts in zip(*keys, strict=True)]
        codes, firsts = number_keys(columns)
        hashes = np.concatenate([batch.column(HASH).to_numpy() for batch in batches.values()])
        distinct = [column.take(pa.array(firsts)) for column in columns]
        edges = np.cumsum([batch.num_rows for batch in batches.values()])[:-1]
        parts = dict(zip(batches, np.split(codes, edges), strict=True))
        return cls(codes, distinct, hashes[firsts]), parts

    def part(self, codes: Integers) -> tuple[Probe, Integers]:
        """The distinct keys among these, and the number of each one's key among them."""
        present = np.zeros(len(self.hashes), np.bool_)
        present[codes] = True
        if present.all():
            return self, codes
        numbers = np.flatnonzero(present)
        local = (np.cumsum(present) - 1)[codes]
        return Probe(np.empty(0, np.int64), self.keys_of(numbers), self.hashes[numbers]), local

    def keys_of(self, codes: Integers) -> list[pa.Array]:
        """The keys of these numbers."""
        places = pa.array(codes)
        return [column.take(places) for column in self.keys]

    def members(self, table: Table) -> tuple[Integers, Integers]:
        """The slots of all rows with these keys, one key behind the other, and how many each key has."""
        return table.members(self.hashes, self.keys)

    def pairs(self, table: Table) -> Iterator[tuple[Integers, Integers]]:
        """(place of the probing row, slot of the kept row) of every pair, in the order of the places."""
        slots, counts = self.members(table)
        if not len(slots):
            return
        starts, sizes = starts_of(counts)[self.codes], counts[self.codes]
        for part in portions(sizes):
            places, at = expand(starts[part], sizes[part])
            yield places + part.start, slots[at]


def expand(starts: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """For ranges of these starts and sizes, the number of each one's range and the place it stands for."""
    return np.repeat(np.arange(len(sizes)), sizes), ranges(starts, sizes)


def portions(sizes: Integers, at_once: int = PAIRS) -> Iterator[slice]:
    """Slices of rows that make about so many pairs each; rows that make none are in none where that is all."""
    total = np.cumsum(sizes)
    if not len(total) or not total[-1]:
        return
    edges = [0]
    while edges[-1] < len(sizes):
        before = int(total[edges[-1] - 1]) if edges[-1] else 0
        end = int(np.searchsorted(total, before + at_once, side="right"))
        edges.append(max(end, edges[-1] + 1))
        yield slice(edges[-2], edges[-1])
