"""The two kinds of column: numbers in a slot-aligned array, everything else in an arena.

Both are views on the block of slots that their table owns, so they hold nothing when it moves. Key columns
compare exactly: floats by their canonical bits, so NaN equals NaN and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.state.arena import Arena
from headrace._runtime.state.arrays import Arrays, Block
from headrace._runtime.state.index import Mask, Same, Slots
from headrace._runtime.state.spec import ValueSpec, fixed_dtype, storage_bits

__all__ = [
    "Column",
    "FixedColumn",
    "VarColumn",
    "open_column",
    "plain",
    "same_keys",
    "to_arrow",
    "to_numpy",
    "write_initial",
]

_COMPACT_ROWS = 4_096


class FixedColumn:
    """A column of numbers. Nulls are possible in keys only and kept beside the numbers."""

    def __init__(self, field: str, kind: pa.DataType, dtype: np.dtype[Any]) -> None:
        self.field = field
        self.type = kind
        self._dtype = dtype
        self._nulls = f"{field}?"

    def dtypes(self, *, key: bool) -> dict[str, np.dtype[Any]]:
        """The slot-aligned arrays of this column."""
        flags = {self._nulls: np.dtype(np.bool_)} if key else {}
        return {self.field: self._dtype} | flags

    def prepare(self, values: pa.Array) -> tuple[npt.NDArray[Any], Mask | None]:
        """Key values of a batch in the form that `same` and `store` take."""
        nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        numbers = to_numpy(values, self.type)
        if self._dtype.kind == "f":
            numbers = numbers + self._dtype.type(0)
            numbers[np.isnan(numbers)] = np.nan
            numbers = numbers.view(f"i{self._dtype.itemsize}")
        return numbers, nulls

    def same(
        self,
        block: Block,
        slots: Slots,
        prepared: tuple[npt.NDArray[Any], Mask | None],
        rows: Slots,
    ) -> Mask:
        """Whether the keys in these slots equal those of these rows."""
        numbers, nulls = prepared
        stored = block[self.field].view(numbers.dtype)
        equal: Mask = stored[slots] == numbers[rows]
        if nulls is not None or block.counters[_HAS_NULLS]:
            equal &= block[self._nulls][slots] == (False if nulls is None else nulls[rows])
        return equal

    def store(
        self,
        block: Block,
        slots: Slots,
        prepared: tuple[npt.NDArray[Any], Mask | None],
        rows: Slots,
    ) -> None:
        """Write the keys of these rows to new slots."""
        numbers, nulls = prepared
        block[self.field].view(numbers.dtype)[slots] = numbers[rows]
        if nulls is not None:
            block[self._nulls][slots] = nulls[rows]
            block.counters[_HAS_NULLS] = 1

    def gather(self, block: Block, slots: Slots) -> pa.Array:
        """The values in these slots, as the declared type."""
        nulls = None
        if self._nulls in block and block.counters[_HAS_NULLS]:
            nulls = block[self._nulls][slots]
        return to_arrow(block[self.field][slots], self.type, nulls)


class VarColumn:
    """A column in an arena: the block holds the value's number + 1, 0 is null."""

    def __init__(self, field: str, kind: pa.DataType, arrays: Arrays, name: str | None) -> None:
        self.field = field
        self.type = kind
        self._arrays = arrays
        self.arena = Arena(kind, arrays, name)

    def dtypes(self, *, key: bool) -> dict[str, np.dtype[Any]]:
        """The slot-aligned arrays of this column."""
        del key
        return {self.field: np.dtype(np.int64)}

    def prepare(self, values: pa.Array) -> pa.Array:
        """Key values of a batch in the form that `same` and `store` take."""
        return values if values.type.equals(self.type) else values.cast(self.type)

    def same(self, block: Block, slots: Slots, prepared: pa.Array, rows: Slots) -> Mask:
        """Whether the keys in these slots equal those of these rows."""
        stored, wanted = self.gather(block, slots), prepared.take(plain(rows))
        equal = pc.equal(stored, wanted)
        if equal.null_count:
            both = pc.and_(stored.is_null(), wanted.is_null())
            equal = pc.coalesce(equal, both)
        flags: Mask = equal.to_numpy(zero_copy_only=False)
        return flags

    def store(self, block: Block, slots: Slots, prepared: pa.Array, rows: Slots) -> None:
        """Write the keys of these rows to new slots."""
        self.write(block, slots, prepared.take(plain(rows)))

    def write(self, block: Block, slots: Slots, values: pa.Array) -> None:
        """Write values, null where they are null."""
        values = self.prepare(values)
        if values.null_count:
            block[self.field][slots] = 0
            valid = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            slots, values = slots[valid], values.drop_null()
        first = self.arena.append(values) + 1
        block[self.field][slots] = np.arange(first, first + len(slots))

    def gather(self, block: Block, slots: Slots) -> pa.Array:
        """The values in these slots, as the declared type."""
        numbers = block[self.field][slots]
        nulls = numbers == 0
        numbers -= 1
        return self.arena.take(plain(numbers, nulls))

    def gather_items(self, block: Block, slots: Slots, places: Slots | None = None) -> pa.Array:
        """The items of the lists in these slots, none of them null, one list behind the other; or some of them."""
        return self.arena.items(block[self.field][slots] - 1, places)

    def is_wasteful(self, size: int) -> bool:
        """Whether most of the arena is values that no slot has any more."""
        return self.arena.rows > max(_COMPACT_ROWS, 2 * size)

    def compact(self, block: Block, live: Slots) -> None:
        """Keep only the values of live slots."""
        values, old = self.gather(block, live), self.arena
        self.arena = Arena(self.type, self._arrays)
        block[self.field][:] = 0
        self.write(block, live, values)
        old.block.release()


Column: TypeAlias = FixedColumn | VarColumn

#: The counter of a table's block that says whether any fixed-width key is null.
_HAS_NULLS = 2


def _column_of(field: str, kind: pa.DataType, arrays: Arrays, arena: str | None = None) -> Column:
    """The column that fits a type."""
    dtype = fixed_dtype(kind)
    if dtype is None:
        return VarColumn(field, kind, arrays, arena)
    return FixedColumn(field, kind, dtype)


def open_column(field: str, kind: pa.DataType, arrays: Arrays, names: list[str]) -> Column:
    """A column, with the next arena of the replica if it needs one."""
    column = _column_of(field, kind, arrays, names[0] if names else None)
    if isinstance(column, VarColumn) and names:
        names.pop(0)
    return column


def same_keys(columns: Sequence[Column], block: Block, prepared: list[Any], start: int) -> Same:
    """Whether rows from `start` on have the keys of slots, as far as there are prepared columns."""

    def same(rows: Slots, slots: Slots) -> Mask:
        places = rows + start if start else rows
        equal = columns[0].same(block, slots, prepared[0], places)
        for key, values in zip(columns[1:], prepared[1:], strict=False):
            equal &= key.same(block, slots, values, places)
        return equal

    return same


def write_initial(block: Block, column: Column, value: ValueSpec, slots: Slots) -> None:
    """Give these slots the value that a new key starts with."""
    if isinstance(column, FixedColumn):
        block[column.field][slots] = 0 if value.initial is None else value.initial
    elif value.initial is None:
        block[column.field][slots] = 0
    else:
        column.write(block, slots, pa.array([value.initial] * slots.size, type=value.type))


def to_numpy(values: pa.Array | npt.NDArray[Any], kind: pa.DataType) -> npt.NDArray[Any]:
    """Numbers of a fixed-width type; nulls become zeros."""
    if isinstance(values, np.ndarray):
        return values
    if not values.type.equals(kind):
        values = values.cast(kind)
    bits = storage_bits(kind)
    if bits is not None:
        values = values.view(bits)
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def to_arrow(numbers: npt.NDArray[Any], kind: pa.DataType, nulls: Mask | None = None) -> pa.Array:
    """Numbers as an Arrow array of a fixed-width type, null where `nulls` is true."""
    content = np.packbits(numbers, bitorder="little") if pt.is_boolean(kind) else numbers
    valid = None
    if nulls is not None and nulls.any():
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(content)])


def plain(numbers: npt.NDArray[np.int64], nulls: Mask | None = None) -> pa.Array:
    """Indices as an Arrow array, without copying them (and without what `pa.array` loads first)."""
    return to_arrow(numbers, pa.int64(), nulls)
