"""What a table of state looks like: its key columns, its value columns and how each is kept.

A type whose values all fit one machine word is kept in a numpy array and has no nulls in a value column;
every other Arrow type is kept in an arena and is nullable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

__all__ = ["Spread", "TableSpec", "ValueSpec", "fixed_dtype", "storage_bits"]

#: What becomes of the rows of a table when the number of shards changes.
Spread: TypeAlias = Literal["by key", "everywhere", "dealt", "union"]


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """One value column. A new key starts with `initial`: a number for fixed-width types, else any or null."""

    name: str
    type: pa.DataType
    initial: object = None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table: `keys` identify a row inside a bucket, `values` are what is kept for it.

    In a grouped table the last key column tells the members of a group apart, and those before it are the
    group's key; the hash of a row is `extend_hashes` of the group's hash.

    `spread` says what becomes of the rows when the number of shards changes. Rows of keys go where their key group
    goes. All other tables belong to the shard as a whole: their key columns are the shard's home (`home_in`), an
    int64, and one that tells the rows apart; where every shard has the same rows, one or more.

        by key        each row has one owner
        everywhere    every shard has the same rows: each new shard gets them all
        dealt         the second key column numbers the rows: all of them are dealt out anew, one by one
        union         as dealt, but each new shard gets all rows of all old shards
    """

    name: str
    keys: pa.Schema
    values: tuple[ValueSpec, ...] = ()
    grouped: bool = False
    spread: Spread = "by key"

    def ungrouped(self) -> TableSpec:
        """The same rows where nobody asks for members."""
        return replace(self, grouped=False)


def fixed_dtype(kind: pa.DataType) -> np.dtype[np.generic] | None:
    """The numpy type that holds values of this type, or None if they go to an arena."""
    if pt.is_boolean(kind):
        return np.dtype(np.bool_)
    bits = storage_bits(kind)
    if bits is None:
        return None
    dtype: np.dtype[np.generic] = np.dtype(bits.to_pandas_dtype())
    return dtype


def storage_bits(kind: pa.DataType) -> pa.DataType | None:
    """The plain number type with the same bits: int64 for a timestamp, int32 for a date."""
    if pt.is_temporal(kind) and not pt.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pt.is_integer(kind) or kind in (pa.float32(), pa.float64()):
        return kind
    return None
