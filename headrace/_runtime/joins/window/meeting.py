"""Who meets whom among the rows of one window: matching is by key alone, so counts of keys say everything.

Some rows may have met before (the *old* ones, which stand first on each side); then only what the new ones add is told:

    pairs                new left x all right, old left x new right
    alone                new rows whose key the other side does not have
    no longer alone      old rows whose key the other side has now, and had not before
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.joins.matching import expand, portions
from headrace._runtime.ordering import stable_order, starts_of
from headrace._runtime.plain_keys import number_keys

__all__ = ["Meeting"]

Integers = npt.NDArray[np.int64]


class Meeting:
    """The rows of both sides by the columns of their keys, of which so many are old."""

    def __init__(self, keys: Sequence[Sequence[pa.Array]], old: Sequence[int]) -> None:
        codes, firsts = number_keys([pa.concat_arrays(both) for both in zip(*keys, strict=True)])
        left = len(keys[0][0])
        self._codes = (codes[:left], codes[left:])
        self._old = old
        self._keys = len(firsts)
        #: How many rows of each key a side has, and how many old ones.
        self._counts = [self._count(side) for side in self._codes]
        self._before = [
            self._count(side[:number]) for side, number in zip(self._codes, old, strict=True)
        ]

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        """(place of the left row, place of the right row) of all new pairs, some at a time."""
        left, right = self._codes
        starts, sizes = starts_of(self._counts[1])[left], self._counts[1][left]
        # The old rows of a key stand before the new ones also in the order of keys.
        known = self._before[1][left[: self._old[0]]]
        starts[: self._old[0]] += known
        sizes[: self._old[0]] -= known
        order: Integers | None = None
        for part in portions(sizes):
            order = stable_order(right) if order is None else order
            places, at = expand(starts[part], sizes[part])
            yield places + part.start, order[at]

    def alone(self, side: int) -> Integers:
        """The places of new rows without a partner."""
        new = self._codes[side][self._old[side] :]
        return np.flatnonzero(self._counts[1 - side][new] == 0) + self._old[side]

    def no_longer_alone(self, side: int) -> Integers:
        """The places of old rows whose first partners are new."""
        old = self._codes[side][: self._old[side]]
        others = 1 - side
        return np.flatnonzero((self._before[others][old] == 0) & (self._counts[others][old] > 0))

    def accompanied(self, side: int) -> Integers:
        """The places of new rows with a partner, and of old ones that have one now."""
        new = self._codes[side][self._old[side] :]
        found = np.flatnonzero(self._counts[1 - side][new]) + self._old[side]
        return np.concatenate([self.no_longer_alone(side), found]) if self._old[side] else found

    def _count(self, codes: Integers) -> Integers:
        return np.bincount(codes, minlength=self._keys)
