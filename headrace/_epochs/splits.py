"""Which task reads what: the ranges of an epoch in nearly equal parts. Pure.

Every task costs tens of milliseconds whatever it reads, so a small epoch is one task. The parts of one
partition stay in order within a task, and each is one contiguous range. A partition is not cut if its source
cannot be, or if a watermark generator must see its rows in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from headrace._epochs.offset import Offset
from headrace.endpoints import Source

__all__ = ["ROWS_PER_TASK", "Slice", "split"]

#: A task is worth its cost from about so many rows on.
ROWS_PER_TASK = 20_000
#: What one position of a source that counts in files may hold; nothing better is known here.
_ROWS_PER_FILE = 10_000


class Slice(NamedTuple):
    """A range of one source partition."""

    source: str
    partition: str
    start: int
    end: int


def split(
    offset: Offset, sources: Mapping[str, Source], tasks: int, *, whole: Collection[str] = ()
) -> list[list[Slice]]:
    """At least one task (ticks ride with the first), at most `tasks`, none empty but a lone one.

    The partitions of the sources in `whole` are read by one task each.
    """
    slices = list(_slices(offset))
    weights = [_weight(piece, sources) for piece in slices]
    total = sum(weights)
    count = max(1, min(tasks, total // ROWS_PER_TASK))
    parts: list[list[Slice]] = [[] for _ in range(count)]
    done = 0
    for piece, weight in zip(slices, weights, strict=True):
        divisible = sources[piece.source].splittable and piece.source not in whole
        for number, part in _cut(piece, weight, done, total, count, divisible=divisible):
            parts[number].append(part)
        done += weight
    return [part for part in parts if part] or [[]]


def _slices(offset: Offset) -> Iterator[Slice]:
    for source, parts in sorted(offset.ranges.items()):
        for partition, (start, end) in sorted(parts.items()):
            if end > start:
                yield Slice(source, partition, start, end)


def _weight(piece: Slice, sources: Mapping[str, Source]) -> int:
    rows = 1 if sources[piece.source].row_positions else _ROWS_PER_FILE
    return (piece.end - piece.start) * rows


def _cut(
    piece: Slice, weight: int, done: int, total: int, count: int, *, divisible: bool
) -> Iterator[tuple[int, Slice]]:
    """The parts of a range by task; `done` is the weight of all ranges before it."""
    if not divisible:
        yield min(count - 1, (done + weight // 2) * count // total), piece
        return
    length, start = piece.end - piece.start, piece.start
    first, last = done * count // total, (done + weight - 1) * count // total
    for number in range(first, last + 1):
        border = -(-(number + 1) * total // count)
        end = piece.start + min(length, (border - done) * length // weight)
        end = piece.end if number == last else end
        if end > start:
            yield number, piece._replace(start=start, end=end)
            start = end
