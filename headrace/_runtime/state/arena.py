"""An append-only Arrow array of any type in growable buffers.

The buffers are laid out as Arrow wants them, so `view` costs nothing and a gather from it copies only the
values asked for. Offsets are 64 bits wide whatever the declared type says: an arena may outgrow 2 GB
where no single result does. Appended values are not null themselves; inside them nulls are fine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.state.arrays import Arrays, Block

__all__ = ["Arena"]

#: An array of the block, where in it to write, and what.
Piece: TypeAlias = tuple[str, int, npt.NDArray[Any]]

_FIRST_CAPACITY = 256
#: Items that lie together are copied as they lie if there are so many on average.
_STRETCH = 64
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
            _write(self.block, list(self._node.pieces(self.block, values, first)))
            self.block.counters[0] = first + len(values)
        return first

    def take(self, rows: pa.Array) -> pa.Array:
        """The values with these numbers, null where the number is null, in the declared type."""
        return _restore(self._node.view(self.block, self.rows).take(rows), self._type)

    def raw(self, row: int) -> bytes:
        """The bytes of one text or byte string."""
        offsets = self.block[":offsets"]
        content: bytes = self.block[":values"][offsets.item(row) : offsets.item(row + 1)].tobytes()
        return content

    def items(
        self, rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64] | None = None
    ) -> pa.Array:
        """What the lists with these numbers hold, one behind the other, or what of it stands at some places.

        Far faster than lists of it.
        """
        items = self._node.items(self.block, rows, self.rows, places)
        return _restore(items, _entry(self._type))


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

    def pieces(self, block: Block, values: pa.Array, rows: int) -> Iterator[Piece]:
        """What values behind the `rows` there are add to each array."""
        if self._has_validity:
            yield _bits(block, f"{self._path}:valid", rows, _flags(values.is_valid()))
        if _is_list(self._kind):
            piece, start, end, below = self._offsets(block, np.asarray(values.offsets))
            yield piece
            entries = _entries(values).slice(start, end - start)
            yield from self._children[0].pieces(block, entries, below)
        elif pt.is_struct(self._kind):
            for child, column in zip(self._children, values.flatten(), strict=True):
                yield from child.pieces(block, column, rows)
        elif _is_bytes(self._kind):
            yield from self._byte_pieces(block, values)
        elif pt.is_boolean(self._kind):
            bits = _flags(pc.fill_null(values, False))
            yield _bits(block, f"{self._path}:values", rows, bits)
        else:
            width = self._kind.bit_width // 8
            raw = np.frombuffer(values.buffers()[1], dtype=np.uint8)
            first = values.offset * width
            content = raw[first : first + len(values) * width]
            yield f"{self._path}:values", rows * width, content

    def _offsets(self, block: Block, offsets: npt.NDArray[Any]) -> tuple[Piece, int, int, int]:
        """Offsets on top of those that are there, the range they cover, and how much lies below it."""
        field = f"{self._path}:offsets"
        length = block.length(field)
        below = int(block[field][length - 1]) if length else 0
        start, end = int(offsets[0]), int(offsets[-1])
        # The first offset is that of the last value there is; only an empty array lacks it.
        content = offsets[1 if length else 0 :].astype(np.int64) + (below - start)
        return (field, length, content), start, end, below

    def _byte_pieces(self, block: Block, values: pa.Array) -> Iterator[Piece]:
        large = values.cast(_storage(self._kind))
        _, limits, content = large.buffers()
        offsets = np.frombuffer(limits, np.int64, len(large) + 1, large.offset * 8)
        piece, start, end, below = self._offsets(block, offsets)
        yield piece
        if end > start:
            raw = np.frombuffer(content, np.uint8, end - start, start)
            yield f"{self._path}:values", below, raw

    def view(self, block: Block, rows: int) -> pa.Array:
        """The first `rows` values without copying any."""
        children, buffers = [], []
        if pt.is_struct(self._kind):
            children = [child.view(block, rows) for child in self._children]
        elif _is_list(self._kind):
            offsets = block[f"{self._path}:offsets"]
            children = [self._children[0].view(block, int(offsets[rows]))]
            buffers = [pa.py_buffer(offsets)]
        else:
            if _is_bytes(self._kind):
                buffers = [pa.py_buffer(block[f"{self._path}:offsets"])]
            buffers.append(pa.py_buffer(block[f"{self._path}:values"]))
        valid = pa.py_buffer(block[f"{self._path}:valid"]) if self._has_validity else None
        kind = _storage(self._kind)
        seen = pa.Array.from_buffers(kind, rows, [valid, *buffers], children=children)
        if valid is None or seen.null_count:
            return seen
        # What is known to have no nulls is gathered several times faster.
        return pa.Array.from_buffers(kind, rows, [None, *buffers], children=children)

    def items(
        self,
        block: Block,
        rows: npt.NDArray[np.int64],
        below: int,
        chosen: npt.NDArray[np.int64] | None,
    ) -> pa.Array:
        """The items of some of the first `below` lists, or the chosen ones among them."""
        offsets = block[f"{self._path}:offsets"]
        seen = self._children[0].view(block, int(offsets[below]))
        starts, stops = offsets[rows], offsets[rows + 1]
        if chosen is None and len(rows):
            # Lists that came together lie together, and to copy a stretch is far cheaper than to gather it.
            first = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
            last = np.append(first[1:], len(rows)) - 1
            if len(first) * _STRETCH <= int((stops - starts).sum()):
                stretches = zip(starts[first].tolist(), stops[last].tolist(), strict=True)
                return pa.concat_arrays([seen.slice(a, b - a) for a, b in stretches])
        ends = np.cumsum(stops - starts)
        if chosen is None:
            chosen = np.arange(int((stops - starts).sum()))
        owners = np.searchsorted(ends, chosen, side="right")
        return seen.take(pa.array(chosen + (stops - ends)[owners]))


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


def _bits(block: Block, field: str, bits: int, flags: npt.NDArray[np.bool_]) -> Piece:
    """Flags behind the `bits` that a bitmap holds: its last byte may be half full and is written again."""
    whole, rest = divmod(bits, 8)
    if rest:
        last = np.unpackbits(block[field][whole : whole + 1], bitorder="little")[:rest]
        flags = np.concatenate([last.view(np.bool_), flags])
    return field, whole, np.packbits(flags, bitorder="little")


def _write(block: Block, pieces: Sequence[Piece]) -> None:
    """Write all pieces; the block moves at most once, however many arrays grow."""
    ends = {field: start + len(content) for field, start, content in pieces}
    block.secure(ends)
    for field, start, content in pieces:
        block[field][start : ends[field]] = content
        block.set_length(field, ends[field])
