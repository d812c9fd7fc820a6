"""Slices of event time, and which of them are kept together.

A slice is a quarter of the time that a row is of use, so rows go soon after it. Where rows lie in many slices, because an epoch
covers much time or the watermark is far behind, a run of 2, 4, 8, ... slices is one bucket: there are never many, and a
row far in the future has one of its own. A bucket's number tells its last slice and how long it is:

    slices       0 1 2 3 4 5 6 7 8 9
    level 0              4 5              bucket 4 * 64,  5 * 64
    level 1                  6-7          bucket 7 * 64 + 1
    level 2      0-----3                  bucket 3 * 64 + 2

so that all rows of a bucket are behind an instant if, and only if, its number is below that of the instant's slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headrace.watermarks import END_OF_TIME

__all__ = ["Slices"]

Integers = npt.NDArray[np.int64]

_TO_AN_INTERVAL = 4
_LEAST_US = 1_000
_LEVELS = 64
#: New rows lie in so many buckets at most.
_MOST_NEW = 16
#: With so many more buckets that are there, the next ones are twice as long.
_MANY = 16


class Slices:
    """The slices of an interval of this length."""

    def __init__(self, interval_us: int) -> None:
        self._us = max(interval_us // _TO_AN_INTERVAL, _LEAST_US)

    def parts(self, times: Integers, live: int) -> Iterator[tuple[int, slice]]:
        """The bucket of each part of rows in order of time, where so many buckets are there already."""
        slices = times // self._us
        level = max(_level(slices), live // _MANY)
        slices |= (1 << level) - 1
        edges = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), len(slices)]
        for start, stop in pairwise(edges):
            if stop > start:
                yield int(slices[start]) * _LEVELS + level, slice(start, stop)

    def span(self, bucket: int) -> tuple[int, int]:
        """The first and the last instant of a bucket."""
        last, level = divmod(bucket, _LEVELS)
        return (last + 1 - (1 << level)) * self._us, (last + 1) * self._us - 1

    def horizon(self, instant: int) -> int:
        """Buckets below this number have no rows behind the instant."""
        return END_OF_TIME if instant == END_OF_TIME else (instant + 1) // self._us * _LEVELS


def _level(slices: Integers) -> int:
    """How long buckets are, so that these slices, in order, lie in few of them."""
    level = 0
    distinct = _distinct(slices)
    while len(distinct) > _MOST_NEW:
        level += 1
        distinct = _distinct(distinct >> 1)
    return level


def _distinct(ordered: Integers) -> Integers:
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))]
