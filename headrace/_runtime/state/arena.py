"""An append-only Arrow array of any type in growable buffers.

The buffers are laid out as Arrow wants them, so `view` costs nothing and a gather from it copies only the
values asked for. Offsets are 64 bits wide whatever the declared type says: an arena may outgrow 2 GB
where no single result does. Appended values are not null themselves; inside them nulls are fine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.state.arrays import Arrays, Block

__all__ = ["Arena"]

_FIRST_CAPACITY = 256
_OFFSET = np.dtype(np.int64)
_BYTE = np.dtype(np.uint8)


class Arena:
    """Values of one type, numbered in the order they came."""

    def __init__(self, kind: pa.DataType, arrays: Arrays, name: str | None = None) -> None:
        self._type = kind
        self._node = _Node(kind, "", top=True)
        dtypes = self._node.dtypes()
        if name is None:
            self.block = Block.create(arrays, dtypes, dict.fromkeys(dtypes, _FIRST_CAPACITY))
        else:
            self.block = Block(arrays, dtypes, name=name)

    @property
    def rows(self) -> int:
        """How many values were appended."""
        return int(self.block.counters[0])

    def append(self, values: pa.Array) -> int:
        """Add values, none of them null; the number of the first."""
        first = self.rows
        if len(values):
            self._node.append(self.block, values, first)
            self.block.counters[0] = first + len(values)
        return first

    def take(self, rows: pa.Array) -> pa.Array:
        """The values with these numbers, null where the number is null, in the declared type."""
        return _restore(self._node.view(self.block, self.rows).take(rows), self._type)


class _Node:
    """One level of a nested type: which buffers it has, how values are added and seen."""

    def __init__(self, kind: pa.DataType, path: str, *, top: bool = False) -> None:
        self._kind = kind
        self._path = path
        self._has_validity = not top
        self._children: list[_Node] = []
        if _is_list(kind):
            self._children = [_Node(_entry(kind), f"{path}/item")]
        elif pt.is_struct(kind):
            self._children = [_Node(f.type, f"{path}/{i}") for i, f in enumerate(kind)]

    def dtypes(self) -> Mapping[str, np.dtype[Any]]:
        """The arrays of this node and of those below."""
        names: dict[str, np.dtype[Any]] = {}
        if self._has_validity:
            names[f"{self._path}:valid"] = _BYTE
        if _is_list(self._kind) or _is_bytes(self._kind):
            names[f"{self._path}:offsets"] = _OFFSET
        if not self._children:
            names[f"{self._path}:values"] = _BYTE
        for child in self._children:
            names.update(child.dtypes())
        return names

    def append(self, block: Block, values: pa.Array, rows: int) -> None:
        """Add values behind the `rows` there are."""
        if self._has_validity:
            _append_bits(block, f"{self._path}:valid", rows, _flags(values.is_valid()))
        if _is_list(self._kind):
            start, end, below = self._append_offsets(block, np.asarray(values.offsets))
            self._children[0].append(block, _entries(values).slice(start, end - start), below)
        elif pt.is_struct(self._kind):
            for child, column in zip(self._children, values.flatten(), strict=True):
                child.append(block, column, rows)
        elif _is_bytes(self._kind):
            self._append_bytes(block, values)
        elif pt.is_boolean(self._kind):
            bits = _flags(pc.fill_null(values, False))
            _append_bits(block, f"{self._path}:values", rows, bits)
        else:
            width = self._kind.bit_width // 8
            raw = np.frombuffer(values.buffers()[1], dtype=np.uint8)
            first = values.offset * width
            block.append(f"{self._path}:values", raw[first : first + len(values) * width])

    def _append_offsets(self, block: Block, offsets: npt.NDArray[Any]) -> tuple[int, int, int]:
        """Rebase offsets on what is there: the range they cover, and how much lies below it."""
        field = f"{self._path}:offsets"
        if block.length(field) == 0:
            block.append(field, np.zeros(1, dtype=np.int64))
        below = int(block[field][block.length(field) - 1])
        start, end = int(offsets[0]), int(offsets[-1])
        block.append(field, offsets[1:].astype(np.int64) + (below - start))
        return start, end, below

    def _append_bytes(self, block: Block, values: pa.Array) -> None:
        large = values.cast(_storage(self._kind))
        _, limits, content = large.buffers()
        offsets = np.frombuffer(limits, np.int64, len(large) + 1, large.offset * 8)
        start, end, _ = self._append_offsets(block, offsets)
        if end > start:
            raw = np.frombuffer(content, np.uint8, end - start, start)
            block.append(f"{self._path}:values", raw)

    def view(self, block: Block, rows: int) -> pa.Array:
        """The first `rows` values without copying any."""
        valid = pa.py_buffer(block[f"{self._path}:valid"]) if self._has_validity else None
        if pt.is_struct(self._kind):
            children = [child.view(block, rows) for child in self._children]
            return pa.Array.from_buffers(_storage(self._kind), rows, [valid], children=children)
        if _is_list(self._kind):
            offsets = block[f"{self._path}:offsets"]
            item = self._children[0].view(block, int(offsets[rows]))
            buffers = [valid, pa.py_buffer(offsets)]
            return pa.Array.from_buffers(_storage(self._kind), rows, buffers, children=[item])
        buffers = [valid, pa.py_buffer(block[f"{self._path}:values"])]
        if _is_bytes(self._kind):
            buffers.insert(1, pa.py_buffer(block[f"{self._path}:offsets"]))
        return pa.Array.from_buffers(_storage(self._kind), rows, buffers)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_string(kind)
        or pt.is_large_binary(kind)
    )


def _entry(kind: pa.DataType) -> pa.DataType:
    """What a list holds; a map is a list of key and value."""
    if pt.is_map(kind):
        return pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return kind.value_type


def _storage(kind: pa.DataType) -> pa.DataType:
    """The type in which an arena keeps values: the same with 64-bit offsets."""
    if pt.is_string(kind):
        return pa.large_string()
    if pt.is_binary(kind):
        return pa.large_binary()
    if _is_list(kind):
        return pa.large_list(_storage(_entry(kind)))
    if pt.is_struct(kind):
        return pa.struct([pa.field(f.name, _storage(f.type)) for f in kind])
    return kind


def _entries(values: pa.Array) -> pa.Array:
    """The values behind the offsets of a list or map."""
    if pt.is_map(values.type):
        return pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
    return values.values


def _restore(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """From the stored type back to the declared one; `values` is a fresh result of `take`."""
    if values.type.equals(kind):
        return values
    if not (_is_list(kind) or pt.is_struct(kind)):
        return values.cast(kind)
    valid = values.buffers()[0]
    if pt.is_struct(kind):
        children = [_restore(values.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(values), [valid], children=children)
    item = _restore(values.values, _entry(kind))
    if pt.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        item = pa.Array.from_buffers(entry, len(item), [None], children=item.flatten())
    offsets = values.offsets if pt.is_large_list(kind) else values.offsets.cast(pa.int32())
    buffers = [valid, offsets.buffers()[1]]
    return pa.Array.from_buffers(kind, len(values), buffers, children=[item])


def _flags(values: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return flags


def _append_bits(block: Block, field: str, bits: int, flags: npt.NDArray[np.bool_]) -> None:
    """Add flags to a bitmap that holds `bits` of them: the last byte may be half full."""
    whole, rest = divmod(bits, 8)
    if rest:
        last = np.unpackbits(block[field][whole : whole + 1], bitorder="little")[:rest]
        flags = np.concatenate([last.view(np.bool_), flags])
    block.set_length(field, whole)
    block.append(field, np.packbits(flags, bitorder="little"))
