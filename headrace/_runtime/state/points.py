"""Single members of groups, found one at a time.

A loop that asks for one row now and for another one later cannot probe a batch, and numpy takes a hundred
times as long for one row as it takes for each of many. So this is the same probing in plain Python, with the
same hashes: those of `headrace.keys`, one value at a time for the types that keys mostly have. The group is told by
its number, so only the last key column is compared.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.state.columns import VarColumn
from headrace._runtime.state.index import ABSENT, Hashes, Slots
from headrace._runtime.state.table import Table
from headrace.keys import extend_hashes

__all__ = ["Points"]

Word: TypeAlias = Callable[[Any], int]
Same: TypeAlias = Callable[[int, Any], bool]

_BITS = (1 << 64) - 1
_LOW_BITS = (1 << 57) - 1
_PRIME = 0xD6E8FEB86659FD93
_MIX_1 = 0xFF51AFD7ED558CCD
_MIX_2 = 0xC4CEB9FE1A85EC53
_NAN = 0x7FF8000000000000
_LONG_BYTES = 1024


class Points:
    """Finds rows of a grouped table by group and last key column. Values of keys are as they come out of it."""

    def __init__(self, table: Table) -> None:
        assert table.groups is not None
        self._table = table
        self._groups = table.groups
        self._kind = table.spec.keys.types[-1]
        self._word = _word_of(self._kind)
        self._same = _same_of(table, self._kind)

    def groups(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Slots:
        """The numbers of groups, for `find`; they hold for the epoch."""
        return self._groups.find(hashes, self._table.same_as(keys))

    def find(self, group: int, group_hash: int, member: Any) -> int:
        """The slot of a member, or `ABSENT`."""
        wanted = self._extend(group_hash, member)
        cells, stored = self._table.block["cells"], self._table.block["hash"]
        owners, places = self._groups.block["group"], self._groups.block["place"]
        last, step = len(cells) - 1, 0
        cell = wanted & last
        while (slot := cells.item(cell) - 1) >= 0:
            # A dead slot has no place in its group.
            if (
                stored.item(slot) == wanted
                and owners.item(slot) == group
                and places.item(slot) >= 0
                and self._same(slot, member)
            ):
                return int(slot)
            step += 1
            cell = (cell + step) & last
        return ABSENT

    def _extend(self, group_hash: int, member: Any) -> int:
        """`extend_hashes` of one value."""
        if self._word is None:
            hashes = np.array([group_hash], dtype=np.uint64)
            return int(extend_hashes(hashes, [pa.array([member], type=self._kind)])[0])
        longer = _finalise((group_hash * _PRIME & _BITS) ^ self._word(member))
        return longer & _LOW_BITS | group_hash & ~_LOW_BITS


def _word_of(kind: pa.DataType) -> Word | None:
    """The canonical word of a value; None where it takes an array to tell."""
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return lambda value: int(value) & _BITS
    if kind in (pa.float32(), pa.float64()):
        return _float_word
    if pt.is_string(kind) or pt.is_large_string(kind):
        return lambda value: _bytes_word(value.encode())
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return _bytes_word
    return None


def _same_of(table: Table, kind: pa.DataType) -> Same:
    """Whether a slot has this value in the last key column."""
    column = table.key_columns[-1]
    if isinstance(column, VarColumn) and _word_of(kind) is not None:
        field, text = column.field, pt.is_string(kind) or pt.is_large_string(kind)

        def same_bytes(slot: int, value: Any) -> bool:
            number = table.block[field].item(slot)
            wanted = value.encode() if text else value
            return bool(number > 0 and column.arena.raw(number - 1) == wanted)

        return same_bytes

    def same(slot: int, value: Any) -> bool:
        prepared: Any = column.prepare(pa.array([value], type=kind))
        slots, rows = np.array([slot]), np.array([0])
        return bool(column.same(table.block, slots, prepared, rows)[0])

    def same_number(slot: int, value: Any) -> bool:
        # The hash has told a null from a zero.
        found = table.block[column.field].item(slot)
        return bool(found == value or (isnan(found) and isnan(value)))

    return same if _word_of(kind) is None else same_number


def _finalise(word: int) -> int:
    word ^= word >> 33
    word = word * _MIX_1 & _BITS
    word ^= word >> 33
    word = word * _MIX_2 & _BITS
    return word ^ word >> 33


def _float_word(value: float) -> int:
    if isnan(value):
        return _NAN
    word: int = struct.unpack("<Q", struct.pack("<d", value + 0.0))[0]
    return word


def _bytes_word(content: bytes) -> int:
    word = len(content) * _PRIME & _BITS
    if len(content) > _LONG_BYTES:
        digest = hashlib.blake2b(content, digest_size=8).digest()
        return _finalise(word ^ int.from_bytes(digest, "little"))
    for start in range(0, len(content), 8):
        word ^= int.from_bytes(content[start : start + 8], "little")
        word = word * _MIX_1 & _BITS
        word ^= word >> 32
    return _finalise(word)
