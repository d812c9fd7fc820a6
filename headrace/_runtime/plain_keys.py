"""Key columns in the form in which they are grouped and stored: equal keys have equal bytes.

Dictionaries and views become plain arrays, -0.0 becomes 0.0, every NaN the same one, and null is a value, as in
`headrace.keys`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace.keys import hash_keys

__all__ = [
    "ALL",
    "key_columns",
    "number_by_hash",
    "number_keys",
    "plain_key",
    "plain_key_type",
    "plain_keys_schema",
]

#: The one key of a step without keys: a column that no result shows.
ALL = pa.field("__all", pa.int8())

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

#: Whole numbers are near each other if there are so many places for each row.
_NEAR = 4
_GREATEST = 2**63


def plain_key_type(kind: pa.DataType) -> pa.DataType:
    """The type of `plain_key`."""
    if pt.is_dictionary(kind):
        return plain_key_type(kind.value_type)
    if pt.is_string_view(kind):
        return pa.large_string()
    if pt.is_binary_view(kind):
        return pa.large_binary()
    if pt.is_fixed_size_list(kind):
        return pa.list_(kind.value_field)
    return kind


def plain_keys_schema(names: Sequence[str], schema: pa.Schema) -> pa.Schema:
    """These columns of a schema, as they are stored; of no columns, the one that stands for them."""
    if not names:
        return pa.schema([ALL])
    return pa.schema([pa.field(name, plain_key_type(schema.field(name).type)) for name in names])


def plain_key(column: pa.Array) -> pa.Array:
    """The column as it is grouped and stored."""
    kind = plain_key_type(column.type)
    if kind != column.type:
        column = column.cast(kind)
    if not pt.is_floating(kind):
        return column
    column = pc.add(column, pa.scalar(0, kind))
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), kind), column)


def key_columns(names: Sequence[str], columns: Mapping[str, pa.Array], rows: int) -> list[pa.Array]:
    """The key columns of so many rows as they are grouped and stored."""
    if not names:
        return [pa.array(np.zeros(rows, np.int8))]
    return [plain_key(columns[name]) for name in names]


def number_keys(columns: Sequence[pa.Array]) -> tuple[Integers, Integers]:
    """A number for each row, equal for equal keys, counted from 0 by first appearance; and the first rows."""
    codes, many = _codes(columns[0])
    for column in columns[1:]:
        more, width = _codes(column)
        codes, many = _codes(pa.array(codes * width + more))
    firsts = np.empty(many, np.int64)
    # Written backwards, so the first row of each number is the one that stays.
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, firsts


def number_by_hash(columns: Sequence[pa.Array]) -> tuple[Integers, list[pa.Array], Hashes]:
    """A number for each row, equal for equal keys, in the order of their hashes; the distinct keys and their hashes.

    Unlike that of first appearance this order is the same wherever rows lie.
    """
    numbers, firsts = number_keys(columns)
    distinct = [column.take(pa.array(firsts)) for column in columns]
    hashes = hash_keys(distinct)
    order = np.argsort(hashes, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[numbers], [column.take(pa.array(order)) for column in distinct], hashes[order]


def _codes(column: pa.Array) -> tuple[Integers, int]:
    found = _codes_of_near(column) if pt.is_integer(column.type) else None
    if found is not None:
        return found
    encoded = column.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _codes_of_near(column: pa.Array) -> tuple[Integers, int] | None:
    """The same for whole numbers that lie near each other, without a hash table; None if they do not."""
    if not len(column) or column.null_count:
        return None
    span = pc.min_max(column).as_py()
    width = span["max"] - span["min"] + 1
    if width > _NEAR * len(column) or span["max"] >= _GREATEST:
        return None
    numbers = column.to_numpy().astype(np.int64) - span["min"]
    rows = np.arange(len(numbers))
    first = np.empty(width, np.int64)
    first[numbers[::-1]] = rows[::-1]
    mine = first[numbers]
    codes = np.cumsum(mine == rows) - 1
    return codes[mine], int(codes[-1]) + 1
