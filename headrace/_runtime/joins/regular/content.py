"""Rows told apart by all their columns, as withdrawing one needs it: a null equals a null, a NaN a NaN, -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.joins.sides import Columns, Side
from headrace._runtime.ordering import places_within
from headrace._runtime.plain_keys import number_keys, plain_key
from headrace.keys import check_key_type, hash_keys

__all__ = ["cancelled", "content_codes", "content_hashes"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]


def content_hashes(side: Side, columns: Columns) -> Hashes:
    """A hash of each row's columns but for nested ones, which equal rows have in common anyway."""
    names = [*side.key_names, *side.carried.names]
    return hash_keys([columns[name] for name in names if check_key_type(columns[name].type)])


def content_codes(side: Side, parts: Sequence[Columns]) -> list[Integers]:
    """Numbers of rows, equal where all columns are; those of several sets of rows, each in its own array."""
    names = [*side.key_names, *side.carried.names]
    sizes = [len(part[names[0]]) for part in parts]
    columns = [_numbered(pa.concat_arrays([part[name] for part in parts])) for name in names]
    return np.split(number_keys(columns)[0], np.cumsum(sizes)[:-1])


def cancelled(codes: Integers, minus: Mask) -> tuple[Integers, Integers]:
    """Rows of equal content cancel out: those that come in the end, and those that withdraw what was there before."""
    many = int(codes.max()) + 1
    plus_of = np.bincount(codes[~minus], minlength=many)
    minus_of = np.bincount(codes[minus], minlength=many)
    kept = []
    for mask, surplus in ((~minus, plus_of - minus_of), (minus, minus_of - plus_of)):
        rows = np.flatnonzero(mask)
        sizes = np.bincount(codes[rows], minlength=many)
        # The last ones stay: what was before them is over.
        place = places_within(codes[rows], sizes)
        kept.append(rows[place >= sizes[codes[rows]] - surplus[codes[rows]]])
    return kept[0], kept[1]


def _numbered(column: pa.Array) -> pa.Array:
    """Whole numbers, equal where the values are."""
    kind = column.type
    if pt.is_integer(kind) and not column.null_count:
        return column
    if pt.is_struct(kind):
        return _together([column.is_valid(), *column.flatten()])
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
        return _lists(column)
    if not check_key_type(kind):
        # What nobody can be keyed by and nothing is made of: decimals of 256 bits, intervals.
        return _encoded(pa.array([None if v is None else repr(v) for v in column.to_pylist()]))
    return _encoded(plain_key(column))


def _together(columns: Sequence[pa.Array]) -> pa.Array:
    return pa.array(number_keys([_numbered(column) for column in columns])[0])


def _lists(column: pa.Array) -> pa.Array:
    """A list is a text whose letters are the numbers of its items."""
    if pt.is_map(column.type):
        items = _together([column.keys, column.items])
    else:
        items = _numbered(column.values)
    letters: Integers = items.to_numpy().astype(np.int64)
    limits = np.asarray(column.offsets).astype(np.int64) * letters.itemsize
    valid = column.is_valid().buffers()[1] if column.null_count else None
    buffers = [valid, pa.py_buffer(limits), pa.py_buffer(letters)]
    return _encoded(pa.Array.from_buffers(pa.large_binary(), len(column), buffers))


def _encoded(column: pa.Array) -> pa.Array:
    return column.dictionary_encode(null_encoding="encode").indices.cast(pa.int64())
