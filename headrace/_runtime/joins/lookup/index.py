"""Rows by key: sorted by the hash of their key once, then found for any number of keys by columns alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.joins.lookup.found import Found, Integers
from headrace._runtime.ordering import stable_order
from headrace._runtime.plain_keys import number_by_hash, plain_key
from headrace.keys import hash_keys

__all__ = ["KeyIndex"]

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class KeyIndex:
    """The rows of a table, those of a key side by side in their old order."""

    rows: pa.RecordBatch
    #: The distinct keys as they are grouped, in the order of their hashes, and where the rows of each begin and end.
    keys: list[pa.Array]
    hashes: Hashes
    edges: Integers

    @classmethod
    def of(cls, rows: pa.RecordBatch, keys: Sequence[str]) -> KeyIndex:
        """The index of rows by these columns; rows with a null in them are left out."""
        rows = _without_nulls(rows, keys)
        numbers, distinct, hashes = number_by_hash([plain_key(rows.column(name)) for name in keys])
        order = stable_order(numbers)
        edges = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=len(hashes)))])
        return cls(rows.take(pa.array(order)), distinct, hashes, edges.astype(np.int64))

    def find(self, keys: Sequence[pa.Array]) -> Found:
        """The rows of keys, which are as `plain_key` makes them and without nulls."""
        places = self._places(keys)
        ends = np.where(places < 0, 0, places + 1)
        starts = np.maximum(places, 0)
        return Found(self.rows, self.edges[starts], self.edges[ends] - self.edges[starts])

    def _places(self, keys: Sequence[pa.Array]) -> Integers:
        """The place of each key among the distinct ones; -1 if it is not there."""
        hashes = hash_keys(keys)
        places = np.full(len(hashes), -1, np.int64)
        at = np.searchsorted(self.hashes, hashes)
        left = np.arange(len(hashes))
        while len(left):
            left = left[at[left] < len(self.hashes)]
            left = left[self.hashes[at[left]] == hashes[left]]
            same = _equal(keys, left, self.keys, at[left])
            places[left[same]] = at[left[same]]
            # Different keys with the same hash stand behind each other.
            left = left[~same]
            at[left] += 1
        return places


def _without_nulls(rows: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    for name in keys:
        if rows.column(name).null_count:
            rows = rows.filter(rows.column(name).is_valid())
    return rows


def _equal(
    some: Sequence[pa.Array], mine: Integers, others: Sequence[pa.Array], theirs: Integers
) -> npt.NDArray[np.bool_]:
    same = np.ones(len(mine), np.bool_)
    for one, other in zip(some, others, strict=True):
        pair = _bits(one.take(pa.array(mine))), _bits(other.take(pa.array(theirs)))
        same &= pc.equal(*pair).to_numpy(zero_copy_only=False)
    return same


def _bits(column: pa.Array) -> pa.Array:
    """Plain keys are equal if their bits are, and NaN equals NaN."""
    if not pt.is_floating(column.type):
        return column
    return column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
