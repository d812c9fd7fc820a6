"""Records without lists and maps, written field by field for all rows at once.

Every field is a piece: how many bytes it takes in each message, and how these are put there. When all pieces are known
so is the place of each message, and the pieces are put one after the other, each into all messages with a few numpy
calls.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.formats.messages.avro.leaves import physical
from headrace.formats.messages.avro.schema import AvroType

__all__ = ["can_write", "write"]

Numbers = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

_SCALARS = frozenset("null boolean int long float double bytes string enum fixed".split())


@dataclass(frozen=True, slots=True)
class _Piece:
    rows: Numbers
    sizes: Numbers
    put: Callable[[Octets, Numbers], None]


def can_write(kind: AvroType) -> bool:
    """Whether the type is made of nothing but fields that are there once."""
    if kind.kind == "record":
        return all(can_write(field.type) for field in kind.fields)
    return kind.kind in _SCALARS


def write(rows: pa.StructArray, record: AvroType, header: bytes) -> pa.Array:
    """The messages of rows whose columns are those of the record, in its order."""
    every = np.arange(len(rows), dtype=np.int64)
    pieces = [_repeated(every, header)] if header else []
    _add_fields(pieces, rows, record, every)
    sizes = np.zeros(len(rows), dtype=np.int64)
    for piece in pieces:
        sizes[piece.rows] += piece.sizes
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    content = np.empty(offsets[-1], dtype=np.uint8)
    at = offsets[:-1].copy()
    for piece in pieces:
        piece.put(content, at[piece.rows])
        at[piece.rows] += piece.sizes
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers).cast(pa.binary())


def _add_fields(
    pieces: list[_Piece], rows: pa.StructArray, record: AvroType, where: Numbers
) -> None:
    for column, field in zip(rows.flatten(), record.fields, strict=True):
        _add(pieces, column, field.type, where)


def _add(pieces: list[_Piece], column: pa.Array, kind: AvroType, where: Numbers) -> None:
    if kind.null_branch is not None:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        pieces.append(_varints(where, np.where(valid, 1 - kind.null_branch, kind.null_branch)))
        column, where = column.drop_null(), where[valid]
    elif column.null_count and kind.kind != "null":
        raise pa.ArrowInvalid("a field that may not be null is null")
    if kind.kind == "record":
        _add_fields(pieces, column, kind, where)
    elif kind.kind != "null":
        _add_leaf(pieces, physical(column, kind), kind, where)


def _add_leaf(pieces: list[_Piece], column: pa.Array, kind: AvroType, where: Numbers) -> None:
    if kind.kind in ("int", "long", "enum"):
        pieces.append(_varints(where, column.to_numpy().astype(np.int64)))
    elif kind.kind in ("boolean", "float", "double"):
        values = np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
        octets = values.view(np.uint8).reshape(len(values), values.dtype.itemsize)
        pieces.append(_fixed(where, octets))
    else:
        _, ends, content = column.buffers()
        offsets = np.frombuffer(ends, dtype=np.int64)[column.offset :][: len(column) + 1]
        if kind.kind != "fixed":
            pieces.append(_varints(where, np.diff(offsets)))
        octets = np.frombuffer(content or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
        pieces.append(_slices(where, offsets - offsets[0], octets))


def _repeated(where: Numbers, header: bytes) -> _Piece:
    octets = np.frombuffer(header, dtype=np.uint8)
    return _fixed(where, np.broadcast_to(octets, (len(where), len(header))))


def _fixed(where: Numbers, octets: Octets) -> _Piece:
    width = octets.shape[1]

    def put(content: Octets, at: Numbers) -> None:
        content[at[:, None] + np.arange(width)] = octets

    return _Piece(where, np.full(len(where), width, dtype=np.int64), put)


def _varints(where: Numbers, values: Numbers) -> _Piece:
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(values), dtype=np.int64)
    for bits in range(7, 64, 7):
        longer = zigzag >= np.uint64(1 << bits)
        if not longer.any():
            break
        sizes += longer

    def put(content: Octets, at: Numbers) -> None:
        rest, left, place = zigzag, sizes, at
        while len(rest):
            more = left > 1
            content[place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more * np.uint8(0x80))
            rest, left, place = rest[more] >> np.uint64(7), left[more] - 1, place[more] + 1

    return _Piece(where, sizes, put)


def _slices(where: Numbers, offsets: Numbers, octets: Octets) -> _Piece:
    sizes = np.diff(offsets)

    def put(content: Octets, at: Numbers) -> None:
        content[np.repeat(at - offsets[:-1], sizes) + np.arange(len(octets))] = octets

    return _Piece(where, sizes, put)
