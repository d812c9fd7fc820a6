"""Aggregates over many ranges of one array at once, with no loop over ranges.

A range is cut into pieces whose lengths are powers of two, one for each bit of its length:

    length 11 = 1 + 2 + 8        [x][x x][x x x x x x x x]

Level k holds, for every place, what 2**k values from there on are together, and is made from level k - 1. So a range of n
values costs log n steps, whatever the operation, if only it is associative; and nothing from outside the range is ever
added and taken off again, so sums of floats keep their digits, and an infinity spoils no range but its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Combine", "Ranges"]

Integers: TypeAlias = npt.NDArray[np.int64]
Columns: TypeAlias = tuple[npt.NDArray[Any], ...]
#: What two neighbours are together; each is a tuple of columns.
Combine: TypeAlias = Callable[[Columns, Columns], Columns]


class Ranges:
    """Ranges [start, end) of an array, none of them empty."""

    def __init__(self, starts: Integers, ends: Integers) -> None:
        self.starts = starts
        self.ends = ends
        self.sizes = ends - starts

    def reduce(self, values: Columns, combine: Combine) -> Columns:
        """What the values of each range are together."""
        found: Columns = tuple(np.empty(len(self.starts), column.dtype) for column in values)
        for bit, (rows, places, is_first) in enumerate(self._steps):
            if bit:
                half = 1 << (bit - 1)
                values = combine(
                    tuple(column[:-half] for column in values),
                    tuple(column[half:] for column in values),
                )
            _add(found, values, combine, rows, places, is_first)
        return found

    def count(self, flags: npt.NDArray[np.bool_]) -> Integers:
        """How many are true."""
        return self.add(flags.astype(np.int64))

    def add(self, numbers: Integers) -> Integers:
        """The sums, exact if they fit 64 bits: what wraps on the way wraps back."""
        totals = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(numbers, out=totals[1:])
        sums: Integers = totals[self.ends] - totals[self.starts]
        return sums

    def first(self, flags: npt.NDArray[np.bool_]) -> Integers:
        """The first place that is true; at or behind the end if there is none."""
        places = np.where(flags, np.arange(len(flags)), len(flags))
        following: Integers = np.minimum.accumulate(places[::-1])[::-1]
        return following[self.starts]

    def last(self, flags: npt.NDArray[np.bool_]) -> Integers:
        """The last place that is true; before the start if there is none."""
        places = np.where(flags, np.arange(len(flags)), -1)
        preceding: Integers = np.maximum.accumulate(places)
        return preceding[self.ends - 1]

    @cached_property
    def _steps(self) -> Sequence[tuple[Integers, Integers, npt.NDArray[np.bool_]]]:
        """For each bit: the ranges that have it, the place of that piece, and whether it is their first."""
        places = self.starts.copy()
        steps = []
        for bit in range(int(self.sizes.max(initial=0)).bit_length()):
            rows = np.flatnonzero(self.sizes >> bit & 1)
            at = places[rows]
            steps.append((rows, at, at == self.starts[rows]))
            places[rows] = at + (1 << bit)
        return steps


def _add(
    found: Columns, values: Columns, combine: Combine, rows: Integers, places: Integers,
    is_first: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    pieces = tuple(column[places] for column in values)
    if not is_first.all():
        rest = np.flatnonzero(~is_first)
        before = tuple(column[rows[rest]] for column in found)
        both = combine(before, tuple(piece[rest] for piece in pieces))
        for piece, column in zip(pieces, both, strict=True):
            piece[rest] = column
    for column, piece in zip(found, pieces, strict=True):
        column[rows] = piece
