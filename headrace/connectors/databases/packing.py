"""Columns to the bytes of PostgreSQL's binary COPY, without a Python object per value.

A row on the wire is the pieces of its fields one behind the other: the number of fields, then for each a length (-1
for NULL) and the value. So everything here is one operation, `weave`: join the pieces of each row. Numbers are pieces
of a fixed width, texts are ragged ones, and an array is itself woven from its elements.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["END", "HEADER", "Bytes", "Piece", "Ragged", "fields", "rows", "texts", "weave"]

Bytes = npt.NDArray[np.uint8]

#: What a binary COPY begins and ends with.
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class Ragged:
    """A value for each row, each of its own length, all one behind the other."""

    content: Bytes
    lengths: npt.NDArray[np.int64]


#: A value for each row: bytes of one width (rows by width), or ragged ones.
Piece = Bytes | Ragged


def weave(pieces: Sequence[Piece]) -> Ragged:
    """The pieces of each row joined, row behind row."""
    joined = list(_neighbours_joined(pieces))
    if len(joined) == 1:
        return _as_ragged(joined[0])
    lengths = sum((_lengths(piece) for piece in joined), np.zeros(1, np.int64))
    ends = np.cumsum(lengths)
    content = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    place = ends - lengths
    for piece in joined:
        if isinstance(piece, Ragged):
            content[_spots(place, piece.lengths)] = piece.content
        else:
            content[place[:, None] + np.arange(piece.shape[1])] = piece
        place = place + _lengths(piece)
    return Ragged(content, lengths)


def fields(values: Piece, valid: npt.NDArray[np.bool_] | None) -> list[Piece]:
    """A value as it stands in a row: its length and itself, or only the length -1."""
    lengths = _lengths(values)
    if valid is None:
        return [_big_endian(lengths, ">i4"), values]
    if isinstance(values, Ragged):
        # Arrow may keep bytes below a NULL; `texts` leaves none.
        return [_big_endian(np.where(valid, lengths, -1), ">i4"), values]
    present = Ragged(values[valid].reshape(-1), np.where(valid, lengths, 0))
    return [_big_endian(np.where(valid, lengths, -1), ">i4"), present]


def rows(columns: Sequence[Sequence[Piece]], count: int) -> bytes:
    """Whole rows from the fields of their columns."""
    header = _big_endian(np.full(count, len(columns)), ">i2")
    return weave([header, *(piece for column in columns for piece in column)]).content.tobytes()


def texts(array: pa.Array) -> Ragged:
    """The bytes of a string or binary column; nothing for NULL."""
    if array.null_count:
        array = array.fill_null(b"" if pa.types.is_binary(array.type) else "")
    _, offsets, content = array.buffers()
    edges = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    whole = np.frombuffer(content or b"", np.uint8)
    return Ragged(whole[edges[0] : edges[-1]], np.diff(edges).astype(np.int64))


def fixed(numbers: npt.NDArray[np.generic], wire: str) -> Bytes:
    """Numbers in the byte order of the wire."""
    return _big_endian(numbers, wire)


def _big_endian(numbers: npt.NDArray[np.generic], wire: str) -> Bytes:
    kind = np.dtype(wire)
    return np.ascontiguousarray(numbers.astype(kind)).view(np.uint8).reshape(-1, kind.itemsize)


def _neighbours_joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces of a fixed width that stand side by side are one of them all."""
    run: list[Bytes] = []
    for piece in pieces:
        if not isinstance(piece, Ragged):
            run.append(piece)
            continue
        if run:
            yield np.hstack(run)
            run = []
        yield piece
    if run:
        yield np.hstack(run)


def _lengths(piece: Piece) -> npt.NDArray[np.int64]:
    if isinstance(piece, Ragged):
        return piece.lengths
    return np.full(len(piece), piece.shape[1], np.int64)


def _as_ragged(piece: Piece) -> Ragged:
    if isinstance(piece, Ragged):
        return piece
    return Ragged(piece.reshape(-1), _lengths(piece))


def _spots(place: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each byte goes, when a row's bytes go to `place` of the row."""
    before = np.cumsum(lengths) - lengths
    spots: npt.NDArray[np.int64] = np.repeat(place - before, lengths)
    return spots + np.arange(len(spots))
