"""Text files as records: where each begins, and which of them does not parse.

A file is read in blocks of whole records, and a block is decoded at once. If that fails, the block is
halved until what is left is single bad records: one bad line costs a few more decodings of small parts,
and every record is judged by the same decoder.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.formats.format import BadRecord, Decoded

__all__ = ["Block", "Decoder", "IsBlank", "TooManyBad", "blocks", "decode", "halved"]

_BLOCK_BYTES = 4 * 2**20
_NEWLINE, _QUOTE = 10, 34
_WHITE = np.frombuffer(b" \t\r\n", dtype=np.uint8)

Part = TypeVar("Part")

Int64s = npt.NDArray[np.int64]

#: Whether a record is nothing at all; asked only of those that begin with white space.
IsBlank = Callable[[bytes], bool]

#: Bytes of whole records to a batch of as many rows; raises ValueError if any of them is bad.
Decoder = Callable[[bytes], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records: where each begins in `content`, and at which line of the file."""

    content: bytes
    starts: Int64s
    lines: Int64s

    def part(self, first: int, last: int) -> bytes:
        """The bytes of records `[first, last)`."""
        end = len(self.content) if last == len(self.starts) else int(self.starts[last])
        return self.content[int(self.starts[first]) : end]


def blocks(
    file: BinaryIO, first_line: int, *, quoted_newlines: bool, is_blank: IsBlank
) -> Iterator[Block]:
    """Cut a file into blocks, blank records left out.

    With `quoted_newlines` a line break between double quotes belongs to its record.
    """
    rest, line = b"", first_line
    while True:
        chunk = file.read(_BLOCK_BYTES)
        content = rest + chunk
        ends = _record_ends(content, quoted_newlines=quoted_newlines)
        if not chunk and len(content) > (ends[-1] if len(ends) else 0):
            ends = np.append(ends, len(content))
        if len(ends):
            yield _block(content[: int(ends[-1])], ends, line, is_blank)
            line += content.count(b"\n", 0, int(ends[-1]))
            rest = content[int(ends[-1]) :]
        else:
            rest = content
        if not chunk:
            return


class TooManyBad(Exception):
    """More records are bad than `halved` was to look for."""


def decode(
    block: Block, decoder: Decoder, schema: pa.Schema, *, most: int | None = None
) -> Decoded:
    """The rows of a block and the records that are bad; `TooManyBad` if those are more than `most`."""

    def attempt(first: int, last: int) -> tuple[pa.RecordBatch, Int64s]:
        part = _decoded(block.part(first, last), decoder, last - first)
        return part, block.lines[first:last]

    good, failed = halved(len(block.starts), attempt, most)
    kept = [lines for _, lines in good]
    lines = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
    bad = tuple(_bad(block, place, error) for place, error in failed)
    return Decoded(_joined([batch for batch, _ in good], schema), lines, bad)


def halved(
    count: int, attempt: Callable[[int, int], Part], most: int | None = None
) -> tuple[list[Part], list[tuple[int, ValueError]]]:
    """What `attempt(first, last)` gives for all records, in parts that leave out those that it fails for."""
    good: list[Part] = []
    failed: list[tuple[int, ValueError]] = []
    pending = [(0, count)] if count else []
    while pending:
        first, last = pending.pop()
        try:
            good.append(attempt(first, last))
        except ValueError as error:
            if last - first == 1:
                failed.append((first, error))
                if most is not None and len(failed) > most:
                    raise TooManyBad from error
            else:
                middle = (first + last) // 2
                pending += [(middle, last), (first, middle)]
    return good, failed


def _decoded(content: bytes, decoder: Decoder, records: int) -> pa.RecordBatch:
    batch = decoder(content)
    if batch.num_rows != records:
        raise ValueError("a line must hold exactly one record")
    return batch


def _bad(block: Block, place: int, error: ValueError) -> BadRecord:
    text = block.part(place, place + 1).decode("utf-8", "replace").rstrip("\r\n")
    return BadRecord(int(block.lines[place]), str(error), text)


def _joined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)


def _record_ends(content: bytes, *, quoted_newlines: bool) -> Int64s:
    """The place behind the last byte of each record that ends with a line break."""
    octets = np.frombuffer(content, dtype=np.uint8)
    newlines = np.flatnonzero(octets == _NEWLINE)
    if quoted_newlines and len(newlines):
        quotes = np.flatnonzero(octets == _QUOTE)
        newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return newlines + 1


def _block(content: bytes, ends: Int64s, first_line: int, is_blank: IsBlank) -> Block:
    starts = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))
    octets = np.frombuffer(content, dtype=np.uint8)
    newlines = np.flatnonzero(octets == _NEWLINE)
    lines = first_line + np.searchsorted(newlines, starts)
    doubtful = np.flatnonzero(np.isin(octets[starts], _WHITE))
    blank = [
        place for place in doubtful if is_blank(content[int(starts[place]) : int(ends[place])])
    ]
    if not blank:
        return Block(content, starts, lines)
    pieces = np.delete(np.column_stack((starts, ends)), blank, axis=0)
    packed = b"".join(content[int(first) : int(last)] for first, last in pieces)
    sizes = pieces[:, 1] - pieces[:, 0]
    return Block(packed, np.cumsum(sizes) - sizes, np.delete(lines, blank))
